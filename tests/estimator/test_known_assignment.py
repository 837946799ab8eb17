"""Assignments that are known, of all rows or of some: exact weights, exact means, mixed fits."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.doses.bases.polynomials import Legendre
from doseforest.estimator.assignment import known_weights
from doseforest.estimator.fit_plan import fit_basis, fold_numbers
from doseforest.estimator.training_rows import check_training
from doseforest.estimator.treatment_means import treatment_means
from doseforest.nuisance.treatment import Strata, known_rows, marginal_density
from recipes import recipe


def cheap(**parameters):
    settings = {
        "outcome_model": LinearRegression(),
        "n_trees": 8,
        "random_state": 0,
        "n_jobs": 1,
    }
    correction = recipe(parameters.pop("correction", "orthogonal"), n_rounds=1, leaves=(20,))
    return GeneralizedCausalForest(correction=correction, **{**settings, **parameters})


def arms(n=240, n_levels=3, seed=0):
    """Levels drawn with each row's own probabilities, which are known."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    shares = rng.dirichlet(np.full(n_levels, 8.0), size=n)
    dose = (rng.random(n)[:, None] > shares.cumsum(axis=1)).sum(axis=1).astype(float)
    return x, shares, dose


# --- weights ------------------------------------------------------------------------------------


def test_probabilities_of_levels_give_their_weights_exactly():
    x, shares, dose = arms()
    given = known_weights(shares, x, dose)
    level = dose.astype(int)
    r = shares.mean(axis=0)[level] / shares[np.arange(240), level]
    np.testing.assert_allclose(given.r, r / r.mean(), rtol=1e-12)
    on_grid = given.density.out_of_fold(x, np.array([2.0, 0.0]))
    np.testing.assert_allclose(on_grid, shares[:, [2, 0]], rtol=1e-12)


def test_levels_may_be_any_numbers_in_any_numbers_of_rows():
    x, shares, dose = arms()
    levels = np.array([-7.5, 2.0, 100.0])
    named = known_weights(shares, x, levels[dose.astype(int)])
    np.testing.assert_array_equal(named.r, known_weights(shares, x, dose).r)


class Normal:
    """A density N(0, 2^2) in the trial and N(x1, 1) beside it."""

    def __init__(self, in_trial):
        self.in_trial = in_trial

    def density(self, X, doses):
        table = np.broadcast_to(doses, (len(X), doses.shape[-1]))
        return stats.norm.pdf(table, scale=2) if self.in_trial else stats.norm.pdf(table - X[:, :1])


class Oracle:
    """A learner that gives the true density of the one kind of rows that it may be shown."""

    def fit(self, X, dose, *, support=None, weights=None, seed=0, n_threads=1):
        assert np.ptp(X[:, 2]) == 0
        return Normal(in_trial=bool(X[0, 2]))


def mixed_normals(n=600, seed=0):
    """Half the rows N(0, 2^2) by an experiment, half N(x1, 1) and only observed; x3 tells which."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    tried = np.arange(n) % 2 == 0
    x[:, 2] = tried
    dose = np.where(tried, 2 * rng.normal(size=n), x[:, 0] + rng.normal(size=n))
    return x, tried, dose


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", ["function", "values"])
def test_weights_of_mixed_rows_compare_each_row_with_the_mixture(form, weighted):
    x, _, dose = mixed_normals()
    own = np.random.default_rng(1).uniform(0.5, 1.5, 600) if weighted else np.ones(600)
    own = own / own.mean()

    def function(X, t):
        return np.where(X[:, 2:] == 1, stats.norm.pdf(t, scale=2), np.nan)

    density = function if form == "function" else function(x, dose[:, None])[:, 0]
    given = known_weights(density, x, dose, learner=Oracle(), weights=own if weighted else None)
    trial, history = stats.norm.pdf(dose, scale=2), stats.norm.pdf(dose - x[:, 0])
    chance = given.density.estimates.chance
    assert ((chance > 0) & (chance < 1)).all()
    pi = chance * trial + (1 - chance) * history
    np.testing.assert_allclose(given.density.observed, pi, rtol=1e-12)
    r = np.minimum(marginal_density(dose, own).at(dose) / pi, np.sqrt(600))
    np.testing.assert_allclose(given.r, r / np.average(r, weights=own), rtol=1e-12)
    assert given.name == "partly known"


def test_the_chance_of_being_in_the_trial_is_that_given_the_covariates():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    truth = stats.norm.cdf(x[:, 0])
    tried = rng.random(2000) < truth
    given = known_weights(np.where(tried, 0.25, np.nan), x, rng.uniform(0, 4, 2000))
    # Boosted lines of 2,000 coins: the chance is found to about .07.
    assert np.sqrt(np.mean((given.density.estimates.chance - truth) ** 2)) < 0.1


def test_strata_of_none_are_rows_that_were_only_observed():
    x, tried, dose = mixed_normals()
    labels = np.where(tried, "trial", None)
    for own in (labels, labels.tolist(), pd.Series(labels), np.where(tried, 1.0, np.nan)):
        given = known_weights(Strata(own), x, dose, learner=Oracle())
        np.testing.assert_array_equal(given.density.given.known, tried)
    grid = np.array([-1.0, 0.0, 1.0])
    on_grid, chance = given.density.out_of_fold(x, grid), given.density.estimates.chance[:, None]
    pi = chance * stats.norm.pdf(grid, scale=2) + (1 - chance) * stats.norm.pdf(grid - x[:, :1])
    np.testing.assert_allclose(on_grid[~tried], pi[~tried], rtol=1e-12)
    # Of the trial a kernel density of 300 doses is known, at its mode to some 10 %, and smoothed.
    np.testing.assert_allclose(on_grid[tried, 1], pi[tried, 1], rtol=0.3)


def test_a_point_mass_of_one_kind_of_rows_is_one_for_both():
    rng = np.random.default_rng(0)
    x, tried = rng.normal(size=(800, 1)), np.arange(800) % 2 == 0
    dose = np.where(tried & (rng.random(800) < 0.5), 0.0, rng.uniform(1, 3, 800))
    given = known_weights(Strata(np.where(tried, "trial", None)), x, dose)
    # The covariate tells nothing: p and pi are the same, .25 at the mass and .75 / 2 beside it.
    np.testing.assert_allclose(given.r[dose == 0], 1.0, atol=0.1)
    assert given.r[dose > 0].mean() == pytest.approx(1.0, abs=0.05)


# --- means of the dose functions ----------------------------------------------------------------


def test_means_under_a_function_are_its_integrals():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    dose = x[:, 0] + rng.normal(size=300)
    functions = Legendre(4).fit(dose)
    means = known_rows(lambda X, t: stats.norm.pdf(t - X[:, :1]), x, dose).means(functions.evaluate)
    for row in (0, 7, 123):
        wanted = [
            integrate.quad(
                lambda t, k=k, row=row: (
                    functions.evaluate([t])[0, k] * stats.norm.pdf(t - x[row, 0])
                ),
                dose.min(),
                dose.max(),
                limit=200,
            )[0]
            for k in range(functions.n_functions)
        ]
        np.testing.assert_allclose(means[row], np.array(wanted) / wanted[0], atol=1e-4)


def test_means_under_a_density_that_jumps_and_has_a_mass_are_near():
    rng = np.random.default_rng(0)
    ends = rng.uniform(1, 4, size=(500, 1))
    dose = np.where(rng.random(500) < 0.3, 0.0, rng.uniform(0, ends[:, 0]))

    def density(X, t):
        return np.where(t == 0, 0.3, np.where(t <= X, 0.7 / X, 0.0))

    means = known_rows(density, ends, dose).means(lambda t: np.stack([t, t == 0], axis=1))
    low, high = dose[dose > 0].min(), np.minimum(ends[:, 0], dose.max())  # doses that rows have
    total = 0.3 + 0.7 * (high - low) / ends[:, 0]
    # A jump may lie anywhere in a cell, of at most 1 / 500 of a range of 4: half of it is missed.
    np.testing.assert_allclose(means[:, 1], 0.3 / total, atol=0.002)
    expected = 0.35 * (high**2 - low**2) / ends[:, 0] / total
    np.testing.assert_allclose(means[:, 0], expected, atol=0.01)


def test_means_within_strata_are_those_of_their_rows():
    rng = np.random.default_rng(0)
    dose, labels = rng.normal(size=90), np.repeat(["a", "b", None], 30)
    own = rng.uniform(0.5, 1.5, 90)
    means = known_rows(Strata(labels), np.zeros((90, 1)), dose, own).means(lambda t: t[:, None])
    for label in "ab":
        rows = labels == label
        expected = np.average(dose[rows], weights=own[rows])
        np.testing.assert_allclose(means[rows, 0], expected, rtol=1e-12)
    assert np.isnan(means[60:]).all()


def indicators(levels):
    return (levels[:, None] == np.arange(1, 3)).astype(float)


def test_means_of_levels_are_their_probabilities():
    x, shares, dose = arms()
    np.testing.assert_allclose(known_rows(shares, x, dose).means(indicators), shares[:, 1:])


def test_values_tell_the_means_where_they_tell_every_probability():
    x, shares, dose = arms(n_levels=2)
    observed = shares[np.arange(240), dose.astype(int)]
    two = known_rows(observed, x, dose).means(lambda t: t[:, None])
    np.testing.assert_allclose(two[:, 0], shares[:, 1], rtol=1e-12)
    three = np.arange(240) % 3.0
    alike = known_rows(np.array([0.5, 0.2, 0.3])[three.astype(int)], x, three)
    np.testing.assert_allclose(alike.means(indicators), np.tile([0.2, 0.3], (240, 1)))
    np.testing.assert_array_equal(
        alike.densities(np.arange(2), np.array([0.0, 2.0])), [[0.5, 0.3]] * 2
    )
    # Not where rows differ, where a probability is missing, or where the dose is no set of levels.
    x, shares, dose = arms()
    assert known_rows(shares[np.arange(240), dose.astype(int)], x, dose).means(indicators) is None
    assert known_rows(np.full(240, 0.2), x, three).means(indicators) is None
    assert known_rows(np.full(240, 0.2), x, np.arange(240.0)).means(lambda t: t[:, None]) is None


def test_means_of_observed_rows_come_from_observed_rows():
    x, _, dose = arms()
    rows = check_training(x, line(x, dose), dose)
    plan = SimpleNamespace(
        density=partly(SHARES),
        basis=fit_basis("auto", rows),
        treatment_model=DummyRegressor(),
        seed=0,
        n_threads=1,
    )
    means = treatment_means(rows, np.arange(240) % 4, plan)
    # A constant out of fold has the mean of its rows as its best shrinkage.
    unknown = np.arange(240) % 3 == 0
    shares = [(dose[unknown] == level).mean() for level in (1, 2)]
    np.testing.assert_allclose(means.values[unknown], np.tile(shares, (80, 1)), rtol=1e-9)
    np.testing.assert_allclose(means.values[~unknown], SHARES[~unknown, 1:], rtol=1e-12)


def line(x, dose, seed=0):
    return x[:, 0] + dose + np.random.default_rng(seed).normal(size=len(dose))


def partly(values):
    """The same, of two rows in three."""
    out = np.array(values, dtype=object if np.asarray(values).dtype.kind in "OU" else float)
    out[::3] = None if out.dtype == object else np.nan
    return out


SHARES = np.tile([0.25, 0.35, 0.4], (240, 1))
FORMS = {
    "a name": ("none", "estimated"),
    "values of unlike rows": (np.tile([0.3, 0.4], 120), "estimated"),
    "probabilities": (SHARES, "known"),
    "a function": (lambda X, t: 0.25 + 0.15 * (t > 1) + 0.1 * (t == 1), "known"),
    "strata": (Strata(np.arange(240) % 2), "known"),
    "probabilities of some": (partly(SHARES), "partly known"),
    "a function of some": (
        lambda X, t: np.where(X[:, 1:] > 0, 1 / 3, np.nan) + 0 * t,
        "partly known",
    ),
    "strata of some": (Strata(partly(np.repeat(["a", "b"], 120))), "partly known"),
    "values of some unlike rows": (partly(np.tile([0.3, 0.4], 120)), "estimated"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_says_where_its_treatment_means_come_from(form):
    x, _, dose = arms()
    density, source = FORMS[form]
    forest = cheap(density=density).fit(x, line(x, dose), treatment=dose)
    assert forest.treatment_means_ == source
    assert forest.average_effect(2.0, 0.0).value == pytest.approx(2.0, abs=0.5)


@pytest.mark.parametrize("correction", ["stabilized", "kernel", "none"])
def test_every_correction_takes_rows_of_both_kinds(correction):
    x, _, dose = arms()
    forest = cheap(correction=correction, density=partly(SHARES))
    forest.fit(x, line(x, dose, seed=1), treatment=dose)
    assert forest.treatment_means_ is None
    effect = forest.average_effect(2.0, 0.0)
    assert abs(effect.value - 2.0) < 3 * effect.standard_error < 0.8


def test_halves_swapped_take_rows_of_both_kinds():
    x, _, dose = arms()
    forest = cheap(honesty="swap", density=partly(SHARES)).fit(x, line(x, dose), treatment=dose)
    assert forest.treatment_means_ == "partly known"


# --- what it is good for ------------------------------------------------------------------------


def test_a_two_armed_trial_has_the_doubly_robust_mean_of_the_textbook():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    chance = stats.norm.cdf(x[:, 1])
    dose = (rng.random(300) < chance).astype(float)
    y = x[:, 0] + dose * (1 + x[:, 1] ** 2) + rng.normal(size=300)
    forest = cheap(
        correction="none", density=np.where(dose == 1, chance, 1 - chance), random_state=3
    )
    forest.fit(x, y, treatment=dose)
    folds = fold_numbers(np.arange(300), forest._fitted.plan)
    curves = np.empty((300, 2))
    for fold in range(4):
        kept, out = folds != fold, folds == fold
        model = LinearRegression().fit(np.column_stack([x, dose])[kept], y[kept])
        for arm in (0, 1):
            curves[out, arm] = model.predict(np.column_stack([x, np.full(300, arm)])[out])
    wanted = []
    for arm, pi in ((0, 1 - chance), (1, chance)):
        inverse = (dose == arm) / pi
        wanted.append(curves[:, arm].mean() + inverse @ (y - curves[:, arm]) / inverse.sum())
    # Weights are capped at the root of n, 17, times p: about 1 / 35, below every chance here.
    assert min(chance[dose == 1].min(), (1 - chance)[dose == 0].min()) > 1 / 30
    np.testing.assert_allclose(forest.average_dose_response().values, wanted, rtol=1e-5)


def trial_beside_history(seed, n=600):
    """A third of the rows from a trial; the others' dose and outcome both follow x1 x2 > 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    tried = np.arange(n) % 3 == 0
    side = np.where(x[:, 0] * x[:, 1] > 0, 1.0, -1.0)
    drawn = np.clip(2 + 1.2 * side + 0.6 * rng.normal(size=n), 0, 4)
    dose = np.where(tried, rng.uniform(0, 4, n), drawn)
    y = dose + 2 * side + 0.5 * rng.normal(size=n)
    return x, tried, dose, y


def average_error(x, dose, y, density):
    """Root mean square error of the average curve, t + 2 E[side] = t, at inner doses."""
    doses = np.array([0.8, 1.4, 2.0, 2.6, 3.2])
    forest = cheap(correction="none", density=density, doses=doses, baseline=2.0)
    values = forest.fit(x, y, treatment=dose).average_dose_response(doses).values
    return np.sqrt(np.mean((values - doses) ** 2))


def test_rows_of_a_trial_repair_an_average_curve_of_confounded_rows():
    errors = {"both": [], "history": [], "trial, as if observed": []}
    for seed in range(4):
        x, tried, dose, y = trial_beside_history(seed)
        known = np.where(tried, 0.25, np.nan)
        errors["both"].append(average_error(x, dose, y, known))
        old = ~tried
        errors["history"].append(average_error(x[old], dose[old], y[old], "location_scale"))
        errors["trial, as if observed"].append(average_error(x, dose, y, "location_scale"))
    mean = {name: np.mean(values) for name, values in errors.items()}
    # A line cannot see the product of x1 and x2 and boosting sees it in part: the history alone is
    # off by 1.5, with a trial whose assignment is ignored by .6, and by .4 where it is known. One
    # draw has a standard deviation of about .15.
    assert mean["both"] < 0.6 * mean["history"]
    assert mean["both"] < mean["trial, as if observed"]


# --- bad input ----------------------------------------------------------------------------------

X, _, LEVELS = arms()
BAD = {
    "nothing known": (np.full(240, np.nan), "must be known of some rows. Got none"),
    "a column too many": (
        np.full((240, 4), 0.25),
        r"levels \[0.0, 1.0, 2.0\].* Got shape \(240, 4\)",
    ),
    "a sum beyond 1": (SHARES * 1.1, r"add up to 1. Got \[.*\] in row 0"),
    "a negative probability": (SHARES - [0.5, 0.0, -0.5], r"add up to 1. Got \[-0.25"),
    "half a row": (
        np.where([True, True, False], SHARES, np.nan),
        r"add up to 1. Got .*nan\] in row 0",
    ),
    "few rows left": (
        np.where(np.arange(240) < 30, np.nan, 0.3),
        "at least 40.* Got 30 rows of which it is not known",
    ),
    "few rows known": (
        np.where(np.arange(240) < 39, 0.3, np.nan),
        "Got 39 rows of which it is known",
    ),
    "one dose left": (np.where(LEVELS == 1, np.nan, 0.3), "not known, with 1 distinct doses"),
    "labels of another table": (Strata([1, 2, 3]), r"one label per row \(240\). Got shape \(3,\)"),
    "strata of none": (Strata([None] * 240), "must be known of some rows"),
    "an impossible dose": (np.where(np.arange(240) == 5, 0.0, 0.3), "Got 0.0 in row 5"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_densities_are_named_before_anything_is_fitted(case):
    density, message = BAD[case]
    forest = cheap(density=density, outcome_model=NeverReached())
    with pytest.raises(ValueError, match=message):
        forest.fit(X, line(X, LEVELS), treatment=LEVELS)


class NeverReached:
    """An outcome model that must not be reached."""

    def fit(self, X, y):
        raise AssertionError

    def predict(self, X):
        raise AssertionError


def test_a_table_of_levels_needs_a_dose_of_levels():
    x, dose = np.zeros((240, 1)), np.linspace(0, 1, 240)
    with pytest.raises(ValueError, match=r"one value per row \(240\). Got shape \(240, 2\)"):
        known_rows(np.full((240, 2), 0.5), x, dose)


def test_the_published_correction_needs_densities_at_every_dose():
    unlike = np.tile([0.3, 0.4], 120)
    with pytest.raises(ValueError, match="for correction='kernel', which needs it at every dose"):
        cheap(correction="kernel", density=unlike).fit(X, line(X, LEVELS), treatment=LEVELS)


def test_groups_must_leave_every_fold_rows_to_estimate_from():
    groups = np.where(np.arange(240) % 3 == 0, np.arange(240) % 2, np.arange(240))
    with pytest.raises(ValueError, match=r"each of the 4 folds\. Got 2 groups without a density"):
        cheap(density=partly(SHARES)).fit(X, line(X, LEVELS), treatment=LEVELS, groups=groups)


def test_treatment_means_of_the_default_basis_are_known_too():
    rows = check_training(X, line(X, LEVELS), LEVELS)
    basis = fit_basis("auto", rows)
    means = known_rows(SHARES, X, LEVELS).means(lambda t: basis.evaluate(t)[:, 1:])
    np.testing.assert_allclose(means, SHARES[:, 1:])
