"""Variants of the ablation: the default and the printed algorithm, one thing changed at a time."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

from bench.designs import DESIGNS
from bench.studies import ablation, ablation_variants, printed_variants
from bench.studies.request import Request
from doseforest.doses.grids import BaselineWarning
from doseforest.estimator.corrections import stabilized_kernels
from doseforest.estimator.corrections.shape_stack import stack_shapes


@pytest.fixture(scope="module")
def trained():
    data = DESIGNS["steps"].draw(n=150, seed=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BaselineWarning)  # of so few rows at dose 0
        forest, own = ablation_variants.train(data, seed=0, n_trees=40)
    return data, forest, own


def test_the_default_variant_is_the_default(trained):
    data, forest, own = trained
    variant = ablation_variants.VariantCurves(own.outcome.full, ablation_variants.sieve(own))
    doses = [1.0, 3.0]
    np.testing.assert_array_equal(
        variant.dose_response(data.X, doses), forest.dose_response(data.X, doses)
    )


def curves_of(trained, name, variants=ablation_variants.SIEVE_VARIANTS):
    data, _, own = trained
    model = ablation_variants.VariantCurves(own.outcome.full, variants[name](own))
    return model.dose_response(data.X[:20], np.array([1.0, 3.0, 5.0]))


def test_without_forests_the_outcome_model_is_left(trained):
    data, forest, _ = trained
    np.testing.assert_array_equal(
        curves_of(trained, ablation_variants.NO_FORESTS),
        forest.outcome_model_.dose_response(data.X[:20], [1.0, 3.0, 5.0]),
    )


@pytest.fixture(scope="module")
def boosted(trained):
    data, forest, own = trained
    return data, forest, ablation_variants.with_outcome(own, ablation_variants.boosting_alone)


@pytest.fixture
def without_safety_net(monkeypatch):
    """Of so few rows the safety net would leave all forests out, whatever their settings."""
    sieve, free = ablation_variants.sieve, ablation_variants.not_shrunk
    monkeypatch.setattr(
        ablation_variants,
        "sieve",
        lambda trained, *others, **settings: sieve(trained, *others, **{"stack": free, **settings}),
    )


OWN_STACK = (ablation_variants.DEFAULT, ablation_variants.NO_FORESTS, "no shrinkage")


@pytest.mark.parametrize(
    "name", [own for own in ablation_variants.SIEVE_VARIANTS if own not in OWN_STACK]
)
def test_every_variant_of_the_correction_changes_it(boosted, without_safety_net, name):
    data, _, own = boosted
    default = ablation_variants.VariantCurves(own.outcome.full, ablation_variants.sieve(own))
    first = default.dose_response(data.X[:20], np.array([1.0, 3.0, 5.0]))
    found = curves_of(boosted, name)
    assert np.isfinite(found).all()
    assert np.abs(found - first).max() > 1e-3


@pytest.mark.parametrize("designs", [("polynomial",), ("slope_abs",)])
def test_an_ablation_of_some_designs_says_what_it_lacks(designs):
    text = "\n".join(ablation.report([], Request(designs=designs, simulations=2)).parts)
    assert "Not asked for in this run." in text
    assert designs[0] in text


def test_a_stack_without_powers_has_none(trained):
    data, _, own = trained
    other = ablation_variants.without_powers(own)
    assert len(own.outcome.full.members["core"].terms.power_low) > 0
    assert len(other.outcome.full.members["core"].terms.power_low) == 0
    assert np.isfinite(curves_of((data, None, other), ablation_variants.NO_FORESTS)).all()


def test_variants_of_the_stabilised_form_change_it(boosted, monkeypatch):
    def even_shares(shapes, target, **others):
        found = stack_shapes(shapes, target, **others)
        return replace(found, shares=np.full(shapes.shape[1], 1.0 / shapes.shape[1]))

    monkeypatch.setattr(stabilized_kernels, "stack_shapes", even_shares)
    variants = ablation_variants.KERNEL_VARIANTS
    # On these rows L1 splits as L2 does.
    names = [ablation_variants.STABILIZED, "weights: none", "distance Linf", "Gaussian kernel"]
    first, *others = [curves_of(boosted, name, variants) for name in names]
    assert [np.abs(own - first).max() > 1e-3 for own in others] == [True, True, True]


def test_variants_of_the_kernel_forms_give_curves_of_their_own(trained):
    names = [
        ablation_variants.FORMULA,
        ablation_variants.NOT_STABILIZED,
        ablation_variants.WEIGHTS_ALONE,
    ]
    found = [curves_of(trained, name, ablation_variants.KERNEL_VARIANTS) for name in names]
    alone = curves_of(trained, ablation_variants.NO_FORESTS)
    assert all(np.isfinite(own).all() for own in found)
    # None has a safety net: they differ from the outcome model, and from each other.
    for place, own in enumerate(found):
        assert all(np.abs(own - other).max() > 0.1 for other in (alone, *found[:place]))


@pytest.fixture(scope="module")
def as_printed():
    data = DESIGNS["steps"].draw(n=200, seed=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BaselineWarning)  # of so few rows at dose 0
        forest, own = printed_variants.fit_printed(data, seed=0, n_trees=20)
    return data, forest, own


def printed_curves(as_printed, name):
    data, _, own = as_printed
    fitted = printed_variants.PRINTED_VARIANTS[name](own)
    model = ablation_variants.VariantCurves(own.outcome.full, fitted)
    return model.dose_response(data.X[:20], np.array([1.0, 3.0, 5.0]))


def test_the_printed_variant_is_paper_mode(as_printed):
    data, forest, _ = as_printed
    np.testing.assert_array_equal(
        printed_curves(as_printed, printed_variants.PAPER),
        forest.dose_response(data.X[:20], [1.0, 3.0, 5.0]),
    )


def test_the_printed_variants_without_forests_are_mu_hat(as_printed):
    data, forest, _ = as_printed
    np.testing.assert_array_equal(
        printed_curves(as_printed, printed_variants.MU_HAT),
        forest.outcome_model_.dose_response(data.X[:20], [1.0, 3.0, 5.0]),
    )


def test_everyone_in_one_leaf_has_one_curve(as_printed):
    curves = printed_curves(as_printed, "everyone in one leaf")
    np.testing.assert_allclose(curves, np.tile(curves[0], (len(curves), 1)), rtol=1e-6)
    narrow = printed_curves(as_printed, "everyone in one leaf, a quarter of the bandwidth")
    assert np.abs(narrow - curves).max() > 0.05


@pytest.mark.parametrize(
    "name",
    [
        "a quarter of the bandwidth",
        "bandwidth: left-one-out",
        "leaves of 50",
        "outcomes in leaves less linear terms of the covariates",
        "split by derivatives",
    ],
)
def test_every_change_to_the_printed_algorithm_changes_its_curves(as_printed, name):
    curves = printed_curves(as_printed, name)
    assert np.isfinite(curves).all()
    assert np.abs(curves - printed_curves(as_printed, printed_variants.PAPER)).max() > 1e-3


def test_trees_stay_the_same_where_only_outcomes_in_leaves_change(as_printed):
    _, _, own = as_printed
    forests = [
        printed_variants.PRINTED_VARIANTS[name](own).correction.forest
        for name in (
            printed_variants.PAPER,
            "outcomes in leaves less linear terms of the covariates",
        )
    ]
    np.testing.assert_array_equal(forests[0].apply(own.rows.X), forests[1].apply(own.rows.X))


def test_stacks_without_a_safety_net():
    rng = np.random.default_rng(0)
    shapes = rng.normal(size=(400, 3))
    target = 0.3 * shapes[:, 1] + rng.normal(size=400)
    alone = ablation_variants.best_alone(0.3 * shapes, target)
    assert alone.shares.tolist() == [0.0, 1.0, 0.0]
    useless = ablation_variants.best_alone(9.0 * shapes, target)
    assert useless.shares.tolist() == [0.0, 0.0, 0.0]
    free = ablation_variants.not_shrunk(shapes, target)
    assert free.strength == 1.0
    assert free.shares[1] == pytest.approx(0.3, abs=0.1)
    assert free.shares.sum() <= 1.0
