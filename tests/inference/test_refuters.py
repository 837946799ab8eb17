"""Refuters: changed data, and verdicts on what became of the effect."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from causal_tables import small
from doseforest.inference.doubts.refuters import (
    REFUTERS,
    Refutation,
    given_rows,
    refute_effect,
    with_column,
)


def rows(n=200, seed=300, **more):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 2)), rng.uniform(0, 4, size=n)
    return x, x[:, 0] + 2 * dose + rng.normal(size=n), dose


def slope(given):
    """A least-squares line stands for a forest: fast, and right about these rows."""
    design = np.column_stack([np.ones(given.n_rows), given.treatment, np.asarray(given.X)])
    solved, *_ = np.linalg.lstsq(design, given.y, rcond=None)
    left = given.y - design @ solved
    spread = np.linalg.inv(design.T @ design)[1, 1] * (left @ left) / (given.n_rows - 4)
    return float(solved[1]), float(np.sqrt(spread))


def refuted(kind, fitted=slope, n_repeats=10, **more):
    settings = {"low": 0.0, "high": 1.0, "share": 0.8, "seed": 0}
    return refute_effect(fitted, given_rows(*rows()), kind, n_repeats=n_repeats, **settings | more)


@pytest.mark.parametrize("kind", sorted(REFUTERS))
def test_right_answers_are_not_refuted(kind):
    found = refuted(kind)
    assert found.passed
    assert found.value == pytest.approx(2.0, abs=0.25)
    assert found.expected == (0.0 if kind == "placebo" else found.value)
    assert ": passed. Effect of dose 1 against 0: " in str(found)


def test_placebos_shuffle_doses_and_leave_the_rest():
    given = given_rows(*rows())
    changed = REFUTERS["placebo"].change(given, 0.8, np.random.default_rng(0))
    assert changed.X is given.X
    np.testing.assert_array_equal(np.sort(changed.treatment), np.sort(given.treatment))
    assert (changed.treatment != given.treatment).mean() > 0.9


def test_an_effect_that_does_not_need_the_dose_is_refuted_by_placebos():
    rng = np.random.default_rng(0)
    found = refuted("placebo", lambda given: (2.0 + 0.1 * rng.normal(), 0.1))
    assert not found.passed
    assert found.p_value < 1e-6
    assert "Placebo treatment: NOT PASSED" in str(found)


def test_an_effect_that_hangs_on_the_number_of_columns_is_refuted_by_a_common_cause():
    rng = np.random.default_rng(0)
    found = refuted(
        "random_common_cause", lambda given: (given.X.shape[1] + 0.1 * rng.normal(), 0.1)
    )
    assert not found.passed


def test_an_effect_that_jumps_between_parts_is_refuted_by_subsets():
    rng = np.random.default_rng(0)
    assert not refuted("subset", lambda given: (5 * rng.normal(), 0.1)).passed


def test_p_values_of_subsets_are_those_of_parts_of_a_sample():
    values = []
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(size=400)
        given = given_rows(noise[:, None], noise, np.arange(400.0))

        def mean(part):
            return float(part.y.mean()), float(part.y.std() / np.sqrt(part.n_rows))

        found = refute_effect(
            mean, given, "subset", low=0, high=1, n_repeats=4, share=0.5, seed=seed
        )
        values.append(found.p_value)
    # Uniform: 10 % of 200 draws below .1 has a standard error of 2.1 %.
    assert 0.04 < np.mean(np.array(values) < 0.1) < 0.16


def test_a_small_shift_that_is_sure_is_no_refutation():
    shift = np.array([0.010, 0.011, 0.009])
    found = Refutation(2.0, 0.1, "placebo", 0, 1, shift, 0.0, p_value=0.003)
    assert found.passed


def test_groups_stay_together_in_subsets():
    x, y, dose = rows(120)
    groups = np.repeat(np.arange(30), 4)
    given = given_rows(x, y, dose, np.ones(120), groups)
    part = REFUTERS["subset"].change(given, 0.5, np.random.default_rng(0))
    labels, sizes = np.unique(part.groups, return_counts=True)
    assert len(labels) == 15
    assert (sizes == 4).all()
    assert len(part.sample_weight) == 60


def test_frames_keep_their_kind_and_index_with_a_column_more():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9])
    wider = with_column(frame, np.array([3.0, 4.0]))
    assert wider.columns.tolist() == ["a", "random_common_cause"]
    assert wider.index.tolist() == [7, 9]
    assert wider["random_common_cause"].tolist() == [3.0, 4.0]
    again = with_column(wider, np.zeros(2))
    assert again.columns[-1] == "random_common_cause_"
    assert with_column(pl.DataFrame({"a": [1.0]}), np.ones(1)).columns[-1] == "random_common_cause"


def test_frames_can_be_cut_into_subsets():
    for frame in (pd.DataFrame({"a": np.arange(9.0)}), pl.DataFrame({"a": np.arange(9.0)})):
        part = given_rows(frame, np.arange(9), np.arange(9)).where(np.array([2, 5]))
        assert np.asarray(part.X)[:, 0].tolist() == [2.0, 5.0]


@pytest.fixture(scope="module")
def forest():
    x, y, dose = rows()
    return small(correction="none", density="none").fit(x, y, treatment=dose)


@pytest.mark.parametrize("kind", sorted(REFUTERS))
def test_forests_refute_themselves(forest, kind):
    x, y, dose = rows()
    found = forest.tests.refute(x, y, dose, kind=kind, low=1.0, high=3.0, n_repeats=3)
    assert found.value == pytest.approx(4.0, abs=5 * found.standard_error)
    assert found.passed
    assert found.refuted.shape == (3,)


def test_subsets_that_miss_the_highest_dose_are_asked_at_their_own():
    x, y, dose = rows()
    dose[0] = 8.0  # a lone row, whose dose the forest knows, and few subsets of a half have
    known = small(correction="none", density="none").fit(x, y, treatment=dose)
    found = known.tests.refute(x, y, dose, kind="subset", low=1.0, high=8.0, share=0.5, n_repeats=3)
    assert np.isfinite(found.refuted).all()


def test_clones_may_have_other_parameters_and_the_forest_stays_as_it_is(forest):
    x, y, dose = rows()
    before = forest.get_params()
    forest.tests.refute(pd.DataFrame(x), y, dose, n_repeats=2, params={"n_folds": 2})
    assert forest.get_params() == before
    with pytest.raises(ValueError, match="nobody"):
        forest.tests.refute(x, y, dose, params={"nobody": 1})


def test_a_known_assignment_is_forgotten_by_placebos():
    x, y, dose = rows()
    known = small(correction="none", density=np.full(200, 0.25)).fit(x, y, treatment=dose)
    settings = {"n_repeats": 2, "low": 1.0, "high": 3.0}
    cheap = {"density": "none"}
    assert known.tests.refute(x, y, dose, params=cheap, **settings).passed
    # As it is given for the forest's rows it would not fit a part of them.
    assert known.tests.refute(x, y, dose, kind="random_common_cause", **settings).passed


def test_bad_arguments_of_refuters_are_refused(forest):
    x, y, dose = rows()
    with pytest.raises(ValueError, match=r"'kind' parameter must be one of placebo.*Got 'luck'"):
        forest.tests.refute(x, y, dose, kind="luck")
    with pytest.raises(ValueError, match=r"'n_repeats' .* at least 2. Got 1 instead"):
        forest.tests.refute(x, y, dose, n_repeats=1)
    with pytest.raises(ValueError, match=r"'share' parameter must be a float in \(0, 1\). Got 1"):
        forest.tests.refute(x, y, dose, share=1)
    with pytest.raises(ValueError, match=r"'random_state' .* at least 0"):
        forest.tests.refute(x, y, dose, random_state=-3)
    with pytest.raises(ValueError, match=r"'treatment' parameter of refute must be given"):
        forest.tests.refute(x, y, None)
    with pytest.raises(ValueError, match=r"'y' parameter must have one entry per row of X \(200\)"):
        forest.tests.refute(x, y[:9], dose)
    with pytest.raises(ValueError, match=r"'high' parameter must lie in the support"):
        forest.tests.refute(x, y, dose, high=77.0)
