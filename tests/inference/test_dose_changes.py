"""Shifts of everyone's dose and average derivatives: doubly robust, whole and by covariates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from bench.designs import DESIGNS
from bench.studies.coverage.average_draws import (
    change_coverage,
    change_truths,
    curve_coverage,
    summarised,
)
from doseforest import GeneralizedCausalForest, load_forest
from doseforest.doses.grids import DoseRange
from doseforest.estimator.trained_parts import out_of_bag, own_out_of_bag
from doseforest.inference.changes.dose_moves import Move, shift_contrast, shift_of, slope_contrast
from doseforest.inference.changes.pairs import pair_variance
from doseforest.inference.changes.representers import known_part
from doseforest.inference.changes.riesz import fit_riesz_terms, representer
from doseforest.nuisance.treatment.conditional_mean import fit_conditional_mean
from doseforest.nuisance.treatment.treatment_support import dose_support
from recipes import recipe

TEN = DoseRange(0.0, 10.0)


def plain_forest(outcome_model=None, **options):
    return GeneralizedCausalForest(
        **{
            "correction": "none",
            "outcome_model": LinearRegression() if outcome_model is None else outcome_model,
            "density": "none",
            "n_jobs": 1,
            "random_state": 0,
            **options,
        }
    )


def confounded_rows(n, seed=0):
    """Doses x0 + N(0, 1) and outcomes 2 T + 3 x0 + [x1 > 0] T + N(0, 1): slope 2.5 on average."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    dose = x[:, 0] + rng.normal(size=n)
    y = 2 * dose + 3 * x[:, 0] + (x[:, 1] > 0) * dose + rng.normal(size=n)
    return x, dose, y


@pytest.fixture(scope="module")
def blind():
    """A forest whose outcome model knows nothing: every answer is in the residuals."""
    x, dose, y = confounded_rows(1500)
    return plain_forest(DummyRegressor(), random_state=1).fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def arms():
    """Arms 0, 1, 2 with chances that depend on x0, and an outcome that does too."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(900, 2))
    chances = np.exp(np.outer(x[:, 0], [0.0, 0.5, 1.0]))
    chances /= chances.sum(axis=1, keepdims=True)
    arm = (rng.random((900, 1)) > chances.cumsum(axis=1)).sum(axis=1).astype(float)
    y = np.array([0.0, 1.0, 3.0])[arm.astype(int)] + 2 * x[:, 0] + 0.5 * rng.normal(size=900)
    return x, arm, y, chances


def test_a_move_stops_at_the_ends_or_is_not_made():
    doses = np.array([0.0, 4.0, 9.5])
    assert Move(2.0, 1.0, TEN, "clip").apply(doses).tolist() == [2.0, 6.0, 10.0]
    assert Move(2.0, 1.0, TEN, "stay").apply(doses).tolist() == [2.0, 6.0, 9.5]
    assert Move(-2.0, 1.0, TEN, "clip").apply(doses).tolist() == [0.0, 2.0, 7.5]
    assert Move(0.0, 1.5, TEN, "clip").apply(doses).tolist() == [0.0, 6.0, 10.0]
    assert Move(2.0, 1.0, TEN, "clip").in_full(doses).tolist() == [True, True, False]


def test_levels_move_to_levels_whatever_their_rounding():
    levels = (0.1, 0.2, 0.30000000000000004, 0.4)
    move = shift_of(0.1, None, "clip", DoseRange(0.1, 0.4), levels)
    assert move.apply(np.array(levels)).tolist() == [*levels[1:], 0.4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, None, "clip"), "'delta' parameter must be given, or 'factor'"),
        ((1.0, 2.0, "clip"), "and not both. Got delta=1.0 and factor=2.0"),
        ((0, None, "clip"), "'delta' parameter must be a number other than 0"),
        ((10.0, None, "clip"), "of size below 10"),
        ((np.nan, None, "clip"), "'delta' parameter must be a number"),
        ((True, None, "clip"), "'delta' parameter must be a number"),
        (("1", None, "clip"), "'delta' parameter must be a number"),
        (([1.0], None, "clip"), "'delta' parameter must be a number"),
        ((None, 1, "clip"), "'factor' parameter must be a positive number other than 1"),
        ((None, -2.0, "clip"), "'factor' parameter must be a positive number"),
        ((None, np.inf, "clip"), "'factor' parameter must be a positive number"),
        ((1.0, None, "wrap"), "'at_edge' parameter must be one of clip, stay"),
        ((1.0, None, None), "'at_edge' parameter must be one of clip, stay"),
    ],
)
def test_what_is_no_shift_is_told(blind, arguments, message):
    with pytest.raises(ValueError, match=message):
        shift_of(*arguments, TEN)
    delta, factor, at_edge = arguments
    if delta != 10.0:  # longer than these ten, but not than every range
        with pytest.raises(ValueError, match=message):
            blind.average.shift_effect(delta, factor=factor, at_edge=at_edge)
        with pytest.raises(ValueError, match=message):
            blind.shifts.forest(delta, factor=factor, at_edge=at_edge)
        with pytest.raises(ValueError, match=message):
            blind.shifts.effects(np.zeros((1, 2)), 0.0, delta, factor=factor, at_edge=at_edge)


def test_a_shift_between_levels_is_told(arms):
    with pytest.raises(ValueError, match=r"move every level .* which moves 0 to 0.5, instead"):
        shift_of(0.5, None, "clip", DoseRange(0.0, 2.0), (0.0, 1.0, 2.0))
    x, arm, y, _ = arms
    forest = plain_forest().fit(x[:200], y[:200], treatment=arm[:200])
    with pytest.raises(ValueError, match="'delta' parameter must move every level"):
        forest.average.shift_effect(0.5)
    with pytest.raises(ValueError, match=r"'treatment' parameter .* must be a quantity"):
        forest.average.derivative()


def test_doses_of_several_components_are_told():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(120, 2)), rng.uniform(size=(120, 2))
    forest = plain_forest(baseline=[0.5, 0.5]).fit(x, dose.sum(axis=1), treatment=dose)
    for asked in (forest.average.derivative, lambda: forest.average.shift_effect(0.1)):
        with pytest.raises(ValueError, match="must have one component for changes of all doses"):
            asked()
    with pytest.raises(ValueError, match="'dose' parameter must have one component for a shift"):
        forest.shifts.effects(x[:1], [0.5, 0.5], 0.1)


def test_the_regression_finds_the_representers_of_a_normal_dose():
    x, dose, _ = confounded_rows(2000)
    z, folds = dose - x[:, 0], np.arange(2000) % 4
    terms = fit_riesz_terms(x, dose)
    slope = representer(terms, dose, slope_contrast(dose, None), folds)
    # The slope of the log-density is exactly z; .97 was measured, as for the ratio below.
    assert np.corrcoef(slope, z)[0, 1] > 0.93
    assert np.std(slope) == pytest.approx(1.0, abs=0.15)
    move = shift_of(0.7, None, "clip", DoseRange(float(dose.min()), float(dose.max())))
    ratio = representer(terms, dose, shift_contrast(move), folds)
    exact = np.exp(0.7 * z - 0.245) - 1
    assert np.corrcoef(ratio, exact)[0, 1] > 0.9
    assert abs(ratio.mean()) < 0.05


def test_a_randomised_dose_has_representers_without_covariates():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(1500, 3)), rng.normal(size=1500)
    values = representer(
        fit_riesz_terms(x, dose), dose, slope_contrast(dose, None), np.arange(1500) % 4
    )
    assert np.abs(np.corrcoef(np.column_stack([values, x]).T)[0, 1:]).max() < 0.1
    assert np.corrcoef(values, dose)[0, 1] > 0.95


class NormalDensity:
    """Doses N(x0, 1), as a forest that knows them sees them."""

    def out_of_fold(self, X, doses):
        return np.exp(-((doses - X[:, :1]) ** 2) / 2)


@pytest.mark.parametrize("factor", [None, 1.5])
def test_known_densities_give_exact_representers(factor):
    x, dose, _ = confounded_rows(300)
    within = DoseRange(float(dose.min()), float(dose.max()))
    delta = None if factor else 0.5
    contrast = shift_contrast(shift_of(delta, factor, "stay", within))
    values, rest = known_part(NormalDensity(), x, dose, contrast, dose_support(dose))
    assert not rest.any()
    for row in (0, 50, 299):
        own, move = dose[row], contrast.second
        comes_from = own / factor if factor else own - 0.5
        expected = -1.0 + (not move.in_full(dose[row : row + 1])[0])
        if within.low <= comes_from <= within.high:
            both = np.exp(-((np.array([comes_from, own]) - x[row, 0]) ** 2) / 2)
            expected += both[0] / both[1] / (factor or 1.0)
        assert values[row] == pytest.approx(expected)


def test_representers_reproduce_the_average_of_any_function():
    # E[a(T, X) f(T, X)] = E[f(moved T, X)] - E[f(T, X)], whatever f: here by 20,000 rows.
    x, dose, _ = confounded_rows(20000)
    within = DoseRange(float(dose.min()), float(dose.max()))
    for contrast in (
        shift_contrast(shift_of(0.5, None, "stay", within)),
        slope_contrast(dose, None),
    ):
        values, _ = known_part(NormalDensity(), x, dose, contrast, dose_support(dose))
        doses, shares = contrast.at(dose)
        for function in (np.sin, np.square):
            said = values * function(dose)
            wanted = (shares * function(doses)).sum(axis=1)
            gap = said - wanted
            assert abs(gap.mean()) < 4 * gap.std() / np.sqrt(len(gap))


def test_residuals_alone_find_derivative_and_shift(blind):
    slope = blind.average.derivative()
    assert slope.value == pytest.approx(2.5, abs=4 * slope.standard_error)
    # The efficient influence: (T - x0) e with e about 2.5 T + 3 x0, of deviation about 8.
    rows = blind._fitted.rows
    exact = np.std((rows.dose.values - rows.X[:, 0]) * (rows.y - rows.y.mean())) / np.sqrt(1500)
    assert slope.standard_error == pytest.approx(exact, rel=0.2)
    shift = blind.average.shift_effect(0.5, at_edge="stay")
    assert shift.value == pytest.approx(1.25, abs=4 * shift.standard_error)
    assert (slope.n, slope.representer) == (1500, "regression")
    assert 0 < shift.held < 0.01
    assert shift.interval()[0] < shift.value < shift.interval()[1]


def test_standard_errors_know_what_pairs_of_units_add(blind):
    changes, scores = blind._fitted.changes, blind._fitted.changes.slopes()
    alone = np.stack(
        [replace(changes, draws=(own,)).scores(scores.contrast).values for own in changes.draws]
    )
    np.testing.assert_allclose(alone.mean(axis=0), scores.values)
    n = len(scores.values)
    between = alone.mean(axis=1).var(ddof=1) - alone.var(axis=0, ddof=1).sum() / n**2
    variance, degrees = scores.pair_variance
    assert between > 0
    assert (variance, degrees) == (pytest.approx((3 + 1 / 3) * between), 2.0)  # four folds
    of_units = scores.values.var(ddof=1) / n
    average = scores.average()
    assert average.standard_error == pytest.approx(np.sqrt(of_units + variance), rel=1e-6)
    assert average.degrees < len(scores.values) - 1
    assert scores.of_outcomes().pair_variance == scores.pair_variance


def test_the_variance_of_pairs_has_weights_and_clusters():
    rng = np.random.default_rng(0)
    residual = rng.uniform(1, 2, size=40)
    draws = rng.normal(size=(3, 40)) + np.array([[0.0], [1.0], [3.0]])
    weights = np.r_[np.zeros(4), rng.uniform(1, 2, 36)]
    clusters = np.repeat(np.arange(20), 2)
    share = weights / weights.sum()
    sums = (draws * residual * share).reshape(3, 20, 2).sum(axis=2)
    shared = sums.sum(axis=1).var(ddof=1) - sums.var(axis=0, ddof=1).sum()
    assert shared > 0
    found = pair_variance(draws, residual, clusters, weights, n_folds=4)
    assert found == (pytest.approx(shared * (3 + 1 / 3)), 2.0)
    assert pair_variance(draws[:1], residual, clusters, n_folds=4) == (0.0, np.inf)


def test_draws_of_folds_tell_the_variance_that_pairs_have():
    # a_i = 1 + the mean of c_j e_j over the rows j of other folds: pairs (i, j) and (j, i) are one.
    rng = np.random.default_rng(0)
    n, n_folds, errors, told, plain = 60, 5, [], [], []
    for _ in range(3000):
        e = rng.normal(size=n)
        drawn = []
        for _ in range(3):
            folds = rng.permutation(n) % n_folds
            kept = folds[:, None] != folds
            drawn.append(3 * kept @ e / kept.sum(axis=1))
        a = np.stack(drawn)
        scores = a.mean(axis=0) * e
        errors.append(scores.mean())
        plain.append(scores.var(ddof=1) / n)
        told.append(plain[-1] + pair_variance(a, e, np.arange(n), n_folds=n_folds)[0])
    deviation = np.var(errors)  # 18 / n^2 to first order, of which the scores tell a half
    assert np.mean(plain) < 0.65 * deviation
    assert np.mean(told) == pytest.approx(deviation, rel=0.15)


def test_a_right_outcome_model_needs_no_representer():
    x, dose, y = confounded_rows(400, seed=1)
    y = 2 * dose + 3 * x[:, 0] + 0.01 * np.resize([1.0, -1.0], 400)
    forest = plain_forest().fit(x, y, treatment=dose)
    assert forest.average.derivative().value == pytest.approx(2.0, abs=0.01)
    assert forest.average.shift_effect(-0.5, at_edge="stay").value == pytest.approx(-1.0, abs=0.02)
    scaled = forest.average.shift_effect(factor=1.2, at_edge="stay")
    move = shift_of(None, 1.2, "stay", forest.model_.support)
    assert scaled.value == pytest.approx(2 * (move.apply(dose) - dose).mean(), abs=0.01)


def test_arms_move_to_the_next_arm(arms):
    x, arm, y, chances = arms
    exact = (chances @ [1.0, 2.0, 0.0]).mean()  # 0 to 1, 1 to 3, the last stays
    for density in ("none", chances):
        # An outcome model without the arm: residuals have to tell.
        forest = plain_forest(DummyRegressor(), density=density).fit(x, y, treatment=arm)
        found = forest.average.shift_effect(1.0)
        assert found.value == pytest.approx(exact, abs=4 * found.standard_error)
        assert found.standard_error < 0.3
        assert found.held == pytest.approx((arm == 2.0).mean())


def test_known_densities_are_used():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(300, 2)), rng.uniform(0.0, 2.0, size=300)
    forest = plain_forest(density=lambda X, doses: np.full(doses.shape, 0.5), baseline=1.0)
    forest.fit(x, dose + x[:, 0], treatment=dose)
    assert forest.average.shift_effect(0.3, at_edge="stay").representer == "known density"
    assert forest._fitted.changes.slopes().pair_variance == (0.0, np.inf)  # without folds
    assert forest.average.shift_effect(0.3).representer == "known density and regression"
    assert forest.average.derivative().representer == "known density"
    forest = plain_forest(density=np.full(300, 0.5), baseline=1.0)
    forest.fit(x, dose + x[:, 0], treatment=dose)
    assert forest.average.derivative().representer == "regression"  # values at own doses only


def test_the_outcome_after_a_shift_is_the_outcome_and_its_change(blind):
    change, level = blind.average.shift_effect(0.5), blind.average.shift_outcome(0.5)
    y = confounded_rows(1500)[2]
    assert level.value == pytest.approx(change.value + y.mean())
    assert level.held == change.held
    # The truth: 2.5 times half a dose, from a mean outcome of 0; outcomes of units vary more.
    assert abs(level.value - 1.25) < 4 * level.standard_error
    assert change.standard_error < level.standard_error < 0.3
    with pytest.raises(ValueError, match="'delta'"):
        blind.average.shift_outcome()


def test_groups_and_weights_count():
    x, dose, y = confounded_rows(300)
    twice = np.repeat(np.arange(300), 2)
    apart = plain_forest().fit(x[twice], y[twice], treatment=dose[twice])
    paired = plain_forest().fit(x[twice], y[twice], treatment=dose[twice], groups=twice)
    ratio = paired.average.derivative().standard_error / apart.average.derivative().standard_error
    # Folds differ: copies of a row are on both sides of them, and let the ridge be smaller.
    assert ratio == pytest.approx(np.sqrt(2), rel=0.15)
    extra = np.vstack([x, np.full((20, 2), 9.0)]), np.append(y, np.full(20, 99.0))
    weighted = plain_forest().fit(
        *extra,
        treatment=np.append(dose, np.full(20, 50.0)),
        sample_weight=np.repeat([1.0, 0.0], [300, 20]),
    )
    plain = plain_forest().fit(x, y, treatment=dose)
    assert weighted.average.shift_effect(0.5).value == pytest.approx(
        plain.average.shift_effect(0.5).value
    )


def test_binary_outcomes_and_categories_are_fine():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.choice(["u", "v", "w"], size=300)})
    dose = frame["a"] + rng.normal(size=300)
    y = (rng.random(300) < 1 / (1 + np.exp(-dose))).astype(float)
    forest = plain_forest().fit(frame, y, treatment=dose)
    found = forest.average.derivative()
    assert 0 < found.value < 0.4  # about .2
    grown = forest.shifts.forest(0.5, n_trees=20)
    assert np.isfinite(grown.predict(frame[:5])).all()


def test_a_forest_on_the_scores_tells_who_gains(blind):
    x, _, _ = confounded_rows(1500)
    grown = blind.shifts.derivative_forest(n_trees=60, min_node_size=50)
    assert grown.scores.mean() == pytest.approx(grown.average.value)
    steep = x[:, 1] > 0  # slope 3, against 2
    gap = grown.out_of_bag[steep].mean() - grown.out_of_bag[~steep].mean()
    assert gap > 0.2  # shrunk by noisy scores; .5 was measured
    assert grown.predict(x[:7]).shape == (7,)
    again = blind.shifts.derivative_forest(n_trees=60, min_node_size=50)
    np.testing.assert_array_equal(grown.out_of_bag, again.out_of_bag)
    for options in ({"n_trees": 0}, {"n_trees": 1.5}, {"min_node_size": 0}, {"n_trees": True}):
        with pytest.raises(ValueError, match=r"parameter must be an int of at least 1"):
            blind.shifts.derivative_forest(**options)


def test_units_have_shift_effects_in_training_and_in_serving(blind):
    folder = Path(__file__).parents[1] / "stored_forests"
    loaded = load_forest(folder / "effect_forest_format_1.dose")
    queries = np.load(folder / "effect_forest_format_1.queries.npy")
    for model, x in ((blind, confounded_rows(3)[0]), (loaded, queries[:3])):
        ends = model._model.support
        step = (ends.high - ends.low) / 4
        doses = [ends.low, ends.low + step, ends.high]
        moved = [ends.low + step, ends.low + 2 * step, ends.high]
        curves = model.dose_response(x, np.column_stack([doses, moved]))
        found = model.shifts.effects(x, doses, step)
        np.testing.assert_allclose(found, curves[:, 1] - curves[:, 0])
        assert found[2] == 0
        assert model.shifts.effects(x[:1], ends.high - step / 2, step, at_edge="stay")[0] == 0
        with pytest.raises(ValueError, match="'dose' parameter must lie in the support"):
            model.shifts.effects(x, 1e6, step)
    named = loaded.set_output(transform="pandas").shifts.effects(x, ends.high, factor=0.9)
    assert named.name == "shift_effect"


@pytest.mark.parametrize(
    "options",
    [
        {"correction": recipe("stabilized", leaves=(20,))},
        {"correction": recipe("orthogonal", leaves=(20,)), "honesty": "swap"},
    ],
)
def test_every_correction_has_its_out_of_bag_outcomes(options):
    x, dose, y = confounded_rows(300, seed=4)
    forest = plain_forest(n_trees=20, **options).fit(x, y, treatment=dose)
    found = forest.average.derivative()
    assert found.value == pytest.approx(2.5, abs=4 * found.standard_error)
    assert found.standard_error < 0.2  # .09 where the curves are right
    observed = own_out_of_bag(forest._fitted.parts, dose[:, None])[:, 0]
    np.testing.assert_allclose(
        observed, out_of_bag(forest._fitted.parts, forest._fitted.plan.grid)[1]
    )


def test_unfitted_forests_say_so():
    from sklearn.exceptions import NotFittedError

    forest = GeneralizedCausalForest()
    for asked in (
        lambda: forest.average.derivative(),
        lambda: forest.average.shift_effect(1.0),
        lambda: forest.average.partial_effect(0.0, 1.0),
        lambda: forest.average.best_linear_projection(dose=1.0),
    ):
        with pytest.raises(NotFittedError):
            asked()


def test_the_truth_of_a_study_is_that_of_its_design():
    # Curves 2 t + x'b: a slope of 2, and twice the mean move.
    data = DESIGNS["linear"].draw(n=500, seed=300)
    shift, slope = change_truths(data, 0.5, seed=0)
    assert slope == pytest.approx(2.0, abs=1e-6)
    assert shift == pytest.approx(1.0, abs=0.01)


def test_studies_of_coverage_run_and_add_up():
    found = change_coverage("linear", 200, 2, outcome_model="line", delta=0.5)
    assert found["derivative"].draws == 2
    assert abs(found["derivative"].bias) < 0.5
    curve, _ = curve_coverage("linear", 200, 2, outcome_model="line")
    assert abs(curve.bias) < 1.0
    records = [
        {"error": own, "standard_error": 1.0, "covered": abs(own) < 1.9}
        for own in np.linspace(-2.2, 2.2, 23)
    ]
    assert summarised(records).coverage == pytest.approx(19 / 23)  # 0, ±.2, …, ±1.8


def test_a_shift_from_between_levels_is_refused():
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(200, 2)), rng.integers(0, 3, 200).astype(float)
    forest = plain_forest(correction="orthogonal", n_trees=8)
    forest.fit(x, dose + x[:, 0], treatment=dose)
    assert forest.shifts.effects(x[:3], [0.0, 1.0, 1.0], 1.0).shape == (3,)
    with pytest.raises(ValueError, match=r"'dose' parameter must hold levels .* Got 0\.5 instead"):
        forest.shifts.effects(x[:3], [0.5, 1.0, 1.0], 1.0)


def test_means_of_a_row_have_not_seen_its_group():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    x, target = rng.normal(size=(60, 3))[groups], rng.normal(size=60)[groups]
    seen, unseen = (
        fit_conditional_mean(x, target, groups=own).out_of_fold for own in (None, groups)
    )
    # Nothing of the target can be told from x but by rows of the same group.
    assert np.corrcoef(seen, target)[0, 1] > 0.8
    assert np.mean((unseen - target) ** 2) > 0.8 * target.var()
