"""Densities of the dose against known ones; weights against what they have to undo."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from doseforest.doses.smoothing.boundary import local_linear_weights
from doseforest.estimator.assignment import known_weights
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.treatment import (
    DENSITIES,
    WEIGHTS,
    BinnedClassifier,
    CrossFittedDensity,
    ForestDensity,
    Gaussian,
    LocationScale,
    Strata,
    TreatmentWeights,
    choose_weights,
    cross_fit_density,
    dose_support,
    marginal_density,
    stabilised_weights,
    weigher,
)
from doseforest.nuisance.treatment.balance_functions import fit_balance_terms
from doseforest.nuisance.treatment.conditional_mean import fit_conditional_mean
from doseforest.nuisance.treatment.density_tables import smoothed_density
from doseforest.nuisance.treatment.entropy import RIDGE, balanced
from doseforest.nuisance.treatment.tied_classifier import fit_multinomial

ALL_WEIGHTS = [*DENSITIES, *WEIGHTS]
REAL_WEIGHTS = [name for name in ALL_WEIGHTS if name != "none"]


def confounded(n=2000, p=3, seed=0):
    """T = x1 + N(0, 1): half of the dose's variance is the confounder's."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    return rng, x, x[:, 0] + rng.normal(size=n)


def folds_of(dose, n_folds=4):
    return np.arange(len(dose)) % n_folds


def integrals(density, x, support, n_points=4001):
    """Integral of each unit's density beside the masses, plus the masses' probabilities."""
    grid = np.linspace(support.low, support.high, n_points)
    grid = grid[~support.at_mass(grid)]
    inside = np.trapezoid(density.density(x, grid), grid, axis=1) if support.continuous else 0.0
    return inside + density.density(x, np.array(support.masses)).sum(axis=1)


def with_a_mass(n=2000, seed=0):
    """A dose that is 0 with probability logit(x1), otherwise positive and skewed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    probability = 1 / (1 + np.exp(-x[:, 0]))
    dose = np.where(rng.random(n) < probability, 0.0, np.exp(0.5 * x[:, 1] + rng.normal(size=n)))
    return x, dose, probability


# --- tables, the marginal density ---------------------------------------------------------------


def test_a_tabulated_density_equals_the_sum_of_kernels():
    rng = np.random.default_rng(0)
    sample, weights = rng.gamma(2.0, size=200), rng.uniform(0.5, 2, size=200)
    table = smoothed_density(sample, weights, 0.3)
    points = np.linspace(-1, 8, 50)
    direct = stats.norm.pdf((points[:, None] - sample) / 0.3) @ weights / (0.3 * weights.sum())
    np.testing.assert_allclose(table.density(points), direct, atol=1e-3 * direct.max())
    below = stats.norm.cdf((points[:, None] - sample) / 0.3) @ weights / weights.sum()
    np.testing.assert_allclose(table.cdf(points), below, atol=1e-3)


def test_a_reflected_density_equals_the_sum_of_kernels_and_their_mirror_images():
    sample = np.array([0.0, 0.1, 0.2, 0.7, 1.0])
    table = smoothed_density(sample, np.ones(5), 0.1, (0.0, 1.0))
    points = np.linspace(0, 1, 41)
    images = np.concatenate([sample, -sample, 2 - sample])
    direct = stats.norm.pdf((points[:, None] - images) / 0.1).sum(axis=1) / (0.1 * 5)
    np.testing.assert_allclose(table.density(points), direct, rtol=5e-3)
    assert table.density(np.array([-0.01, 1.01])).tolist() == [0.0, 0.0]


def test_the_marginal_density_of_a_uniform_dose_is_flat_up_to_the_edges():
    dose = np.random.default_rng(0).uniform(0, 2, size=20_000)
    values = marginal_density(dose).at(np.array([0.001, 0.01, 1.0, 1.99]))
    # About 900 rows in a window at an edge: a standard error of 3 %.
    np.testing.assert_allclose(values, 0.5, rtol=0.12)


def test_the_marginal_density_has_masses_and_integrates_to_one():
    x, dose, _ = with_a_mass()
    weights = np.random.default_rng(1).uniform(size=len(dose))
    density = marginal_density(dose, weights)
    share = weights[dose == 0].sum() / weights.sum()
    assert density.at(np.array([0.0, -1.0])) == pytest.approx([share, 0.0])
    np.testing.assert_allclose(integrals(density, x[:2], density.support), 1.0, atol=2e-3)
    assert density.density(x[:2], np.array([[0.0], [1.0]])).shape == (2, 1)


def test_a_dose_of_levels_has_nothing_but_masses():
    density = marginal_density([0, 0, 5, 10])
    assert density.at(np.array([0.0, 5.0, 7.0, 10.0])).tolist() == [0.5, 0.25, 0.0, 0.25]


# --- regressions behind the densities -----------------------------------------------------------


def test_the_conditional_mean_of_noise_is_its_mean():
    rng, x, _ = confounded(p=10)
    y = 5 + rng.normal(size=len(x))
    fitted = fit_conditional_mean(x, y)
    # A line of 10 covariates would move by sqrt(10 / 2000) = .07, trees by more.
    assert fitted.predict(x).std() < 0.03
    assert fitted.out_of_fold.mean() == pytest.approx(y.mean(), abs=0.01)


def test_the_conditional_mean_finds_lines_and_steps_and_predicts_out_of_fold():
    rng, x, _ = confounded()
    truth = x[:, 0] + 2 * (x[:, 1] > 0)
    fitted = fit_conditional_mean(x, truth + rng.normal(size=len(x)))
    assert np.sqrt(np.mean((fitted.predict(x) - truth) ** 2)) < 0.25
    # Out-of-fold residuals are as large as the noise; those of a fit on itself are smaller.
    assert np.mean((fitted.out_of_fold - truth) ** 2) < 0.1


def test_multinomial_regression_equals_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng, z, _ = confounded(n=500)
    labels = rng.integers(0, 3, size=500)
    labels[z[:, 0] > 0.5] = 2
    fitted = fit_multinomial(z, labels, np.eye(3), ridge=5.0)
    oracle = LogisticRegression(C=0.2, tol=1e-8, max_iter=1000).fit(z, labels)
    expected = oracle.predict_log_proba(z)
    np.testing.assert_allclose(fitted.log_probabilities(z), expected, atol=5e-3)


# --- densities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_integrate_to_one_for_every_unit(name):
    _, x, dose = confounded(n=600)
    x[::7, 1] = np.nan
    density = DENSITIES[name]().fit(x, dose, weights=np.linspace(0.5, 1.5, 600))
    far = np.vstack([x[:50], 10 * x[:50]])
    np.testing.assert_allclose(integrals(density, far, dose_support(dose)), 1.0, atol=5e-3)


@pytest.mark.parametrize("name", DENSITIES)
def test_masses_have_their_probability_and_the_rest_integrates_to_what_is_left(name):
    x, dose, probability = with_a_mass()
    density = DENSITIES[name]().fit(x, dose)
    np.testing.assert_allclose(integrals(density, x[:50], dose_support(dose)), 1.0, atol=1e-2)
    error = density.density(x, np.array([0.0]))[:, 0] - probability
    # A logistic regression of 2,000 rows: coefficients within .05, probabilities within .015.
    assert np.sqrt(np.mean(error**2)) < 0.04
    own = density.density(x, dose[:, None])[:, 0]
    np.testing.assert_array_equal(own[dose == 0], density.density(x[dose == 0], [0.0])[:, 0])


def test_a_dose_of_levels_gets_probabilities():
    rng, x, _ = confounded(n=1500)
    dose = np.digitize(x[:, 0] + rng.normal(size=1500), [-1, 0, 1]).astype(float)
    fitted = cross_fit_density(LocationScale(), x, dose, folds_of(dose))
    levels = np.arange(4.0)
    shares = fitted.out_of_fold(x, levels)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    cuts = np.array([-np.inf, -1, 0, 1, np.inf]) - x[:, :1]
    truth = np.diff(stats.norm.cdf(cuts), axis=1)
    assert np.sqrt(np.mean((shares - truth) ** 2)) < 0.05
    assert fitted.full.density(x, np.array([0.5])).max() == 0.0


def test_doses_may_be_a_grid_or_each_units_own():
    _, x, dose = confounded(n=300)
    for make in DENSITIES.values():
        density = make().fit(x, dose)
        grid = np.array([-1.0, 0.3, 99.0])
        values = density.density(x[:20], grid)
        np.testing.assert_allclose(values, density.density(x[:20], np.tile(grid, (20, 1))))
        assert (values[:, 2] == 0).all()  # outside the observed doses


def test_the_gaussian_density_is_that_of_least_squares_cut_off_at_the_range():
    _, x, dose = confounded(n=4000)
    design = np.column_stack([np.ones(4000), x])
    line, left, *_ = np.linalg.lstsq(design, dose)
    mean, deviation = (design @ line)[:200, None], np.sqrt(left[0] / (4000 - 4))
    ends = stats.norm.cdf(np.array([dose.min(), dose.max()]), mean, deviation)
    grid = np.linspace(-2, 2, 21)
    expected = stats.norm.pdf(grid, mean, deviation) / np.diff(ends, axis=1)
    values = Gaussian().fit(x, dose).density(x[:200], grid)
    # A ridge of one row in 4,000.
    np.testing.assert_allclose(values, expected, atol=1e-3)
    # On linear Gaussian data that is the truth, up to coefficients within 1 / sqrt(4000) each.
    assert np.sqrt(np.mean((values - stats.norm.pdf(grid - x[:200, :1])) ** 2)) < 0.01


def test_the_location_scale_density_approaches_a_gaussian_location_model():
    grid = np.linspace(-2, 2, 21)
    errors = []
    for n in (300, 4000):
        _, x, dose = confounded(n=n)
        _, fresh, _ = confounded(n=200, seed=9)
        truth = stats.norm.pdf(grid - fresh[:, :1])
        values = LocationScale().fit(x, dose).density(fresh, grid)
        errors.append(np.sqrt(np.mean((values - truth) ** 2)))
    assert errors[1] < 0.6 * errors[0]
    assert errors[1] < 0.03  # of a peak of .4


def test_the_location_scale_density_follows_a_scale_that_depends_on_covariates():
    rng, x, _ = confounded(n=3000)
    scale = np.exp(0.7 * x[:, 1])
    dose = x[:, 0] + scale * rng.normal(size=3000)
    density = LocationScale().fit(x, dose).density(x, dose[:, None])[:, 0]
    truth = stats.norm.logpdf(dose, x[:, 0], scale).mean()
    assert np.log(density).mean() > truth - 0.06
    constant = Gaussian().fit(x, dose).density(x, dose[:, None])[:, 0]
    assert np.log(constant).mean() < truth - 0.2


@pytest.mark.parametrize("learner", [BinnedClassifier(), ForestDensity(), LocationScale()])
def test_densities_beat_the_marginal_one_on_rows_they_have_not_seen(learner):
    rng, x, _ = confounded(n=1500)
    dose = rng.gamma(2.0, size=1500) * np.exp(0.7 * x[:, 0])  # skewed, no location model
    fitted = cross_fit_density(learner, x, dose, folds_of(dose))
    gain = np.log(fitted.observed) - np.log(marginal_density(dose).at(dose))
    # The gain possible is the mutual information, .26 for log-doses of that signal and noise.
    assert gain.mean() > 0.12
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))


def test_out_of_fold_densities_come_from_fits_that_have_not_seen_the_fold():
    _, x, dose = confounded(n=400)
    folds = folds_of(dose)
    fitted = cross_fit_density(Gaussian(), x, dose, folds)
    changed = np.where(folds == 1, np.clip(-dose, dose.min(), dose.max()), dose)
    changed[np.argmin(dose)], changed[np.argmax(dose)] = dose.min(), dose.max()
    other = cross_fit_density(Gaussian(), x, changed, folds)
    grid = np.array([-1.0, 0.0, 1.0])
    mine, theirs = fitted.out_of_fold(x, grid), other.out_of_fold(x, grid)
    np.testing.assert_array_equal(mine[folds == 1], theirs[folds == 1])
    assert np.abs(mine - theirs)[folds == 0].max() > 0.01
    own = fitted.out_of_fold(x, dose[:, None])[:, 0]
    np.testing.assert_array_equal(own, fitted.observed)
    assert fitted.observed.min() > 0  # the extreme doses too


# --- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_WEIGHTS)
def test_weights_are_near_one_when_the_dose_is_random(name):
    rng, x, _ = confounded(n=2000, p=5)
    dose = rng.uniform(0, 10, size=2000)  # hard edges
    weights = rng.uniform(0.5, 1.5, size=2000)
    r = weigher(name)(x, dose, folds_of(dose), weights=weights).r
    assert np.average(r, weights=weights) == pytest.approx(1.0)
    # 15 products of covariates and dose functions, each off balance by 1 / sqrt(2000), spread the
    # weights by sqrt(15 / 2000) = .09; a line without a choice of its penalty by as much.
    assert r.std() < 0.15


def average_curve_bias(name, seeds=(0, 1)):
    """Mean absolute error at doses within a standard deviation of a curve that only weights mend.

    Y = T + 2 x1 without noise: what is left is confounding.
    """
    grid = np.linspace(-1.4, 1.4, 9)
    errors = []
    for seed in seeds:
        _, x, dose = confounded(n=3000, seed=seed)
        r = weigher(name)(x, dose, folds_of(dose)).r
        rows = local_linear_weights(dose, grid, 0.5, "epanechnikov", r)
        errors.append(rows.T @ (dose + 2 * x[:, 0]) / len(dose) - grid - 2 * x[:, 0].mean())
    return np.abs(np.mean(errors, axis=0)).mean()


@pytest.mark.parametrize("name", REAL_WEIGHTS)
def test_weights_at_least_halve_the_confounding_of_an_average_curve(name):
    unweighted = average_curve_bias("none")
    # E[2 x1 | T = t] = t, so the bias is |t|, .78 on average over the grid.
    assert unweighted == pytest.approx(0.78, abs=0.08)
    assert average_curve_bias(name) < unweighted / 2


def test_true_values_give_the_true_weights():
    _, x, dose = confounded(n=5000)
    pi = stats.norm.pdf(dose - x[:, 0])
    truth = stats.norm.pdf(dose, scale=np.sqrt(2)) / pi
    r = known_weights(pi, x, dose).r
    by_function = known_weights(lambda x, t: stats.norm.pdf(t - x[:, :1]), x, dose)
    middle = np.abs(dose) < 2
    # 5,000 rows know the density of the dose within 5 % in the middle.
    for own in (r, by_function.r):
        np.testing.assert_allclose(own[middle] / truth[middle], 1.0, atol=0.12)
    np.testing.assert_array_equal(by_function.density.observed, pi)


def test_caps_bound_weights_by_the_root_of_the_sample():
    dose = np.linspace(0, 1, 400)
    pi = np.ones(400)
    pi[7] = 1e-12
    r = stabilised_weights(pi, dose)
    assert r[7] / np.median(r) == pytest.approx(20.0, rel=0.02)
    assert r.mean() == pytest.approx(1.0)


def test_entropy_weights_balance_their_moments():
    _, x, dose = confounded(n=2000)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, size=2000)
    terms = fit_balance_terms(x, dose, weights=weights)
    rows = np.arange(2000)
    columns = terms.columns(rows, rows)
    before = np.average(columns, axis=0, weights=weights)
    exact = balanced(columns, weights, ridge=1e-7)
    after = np.average(columns, axis=0, weights=weights * exact)
    assert np.abs(before).max() > 0.6  # the correlation of x1 and the dose is .7
    assert np.abs(after).max() < 1e-3
    assert np.average(exact, weights=weights) == pytest.approx(1.0)
    # With the default ridge the moments left are -ridge lambda: less, and vanishing with n.
    tolerant = balanced(columns, weights)
    left = np.abs(np.average(columns, axis=0, weights=weights * tolerant)).max()
    assert left < RIDGE / np.sqrt(2000) * 2
    assert (tolerant**2).mean() < (exact**2).mean()


def test_many_products_are_limited_to_the_most_unbalanced():
    _, x, dose = confounded(n=500, p=120)
    terms = fit_balance_terms(x, dose)
    assert len(terms.pairs) == 300
    assert [0, 0] in terms.pairs.tolist()  # x1 with the linear function of the dose


def test_shrinking_goes_from_ones_to_the_weights():
    weights = TreatmentWeights("known", np.array([0.2, 1.8]))
    np.testing.assert_array_equal(weights.shrunk(1.0).r, weights.r)
    np.testing.assert_array_equal(weights.shrunk(0.0).r, [1.0, 1.0])
    half = weights.shrunk(0.5, np.array([3.0, 1.0]))
    assert np.average(half.r, weights=[3.0, 1.0]) == pytest.approx(1.0)
    assert half.r[1] / half.r[0] == pytest.approx(3.0)
    assert half.shrinkage == 0.5


def test_fits_do_not_depend_on_threads():
    _, x, dose = confounded(n=300)
    means = [fit_conditional_mean(x, dose, seed=3, n_threads=k) for k in (1, 2)]
    np.testing.assert_array_equal(*(mean.predict(x) for mean in means))
    forests = [ForestDensity(n_trees=20).fit(x, dose, seed=3, n_threads=k) for k in (1, 2)]
    np.testing.assert_array_equal(*(forest.density(x, dose[:5]) for forest in forests))


@pytest.mark.parametrize("name", ALL_WEIGHTS)
def test_weights_of_a_dose_with_a_mass_follow_from_the_seed(name):
    x, dose, _ = with_a_mass(n=400)
    one, two = (weigher(name)(x, dose, folds_of(dose), seed=3).r for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert one.mean() == pytest.approx(1.0)
    assert one.min() > 0
    if name != "none":
        # Where the mass is likely (x1 high) rows at it are many, and count for less.
        at_mass = dose == 0
        assert np.corrcoef(x[at_mass, 0], np.log(one[at_mass]))[0, 1] < -0.3


@pytest.mark.parametrize("name", DENSITIES)
def test_a_dose_with_far_tails_has_a_smooth_density(name):
    rng, x, _ = confounded(n=1000)
    dose = np.exp(2 * rng.normal(size=1000))  # half of the rows within 4, the last beyond 100
    weights = weigher(name)(x, dose, folds_of(dose))
    support = dose_support(dose)
    grid = support.scale.back(np.linspace(*support.scaled_ends, 4001))
    grid = np.clip(grid, support.low, support.high)
    integral = np.trapezoid(weights.density.full.density(x[:20], grid), grid, axis=1)
    np.testing.assert_allclose(integral, 1.0, atol=2e-2)
    # As near to one as for a dose without tails (see above).
    assert weights.r.std() < 0.2


def test_the_highest_dose_has_a_density_whatever_its_last_digit():
    rng = np.random.default_rng(0)
    for _ in range(200):  # ends whose difference over steps, times steps, is off by a rounding
        dose = rng.normal(size=60) * 3.7
        assert (marginal_density(dose).at(dose) > 0).all()


# --- known densities ----------------------------------------------------------------------------


def test_strata_have_the_density_of_their_own_doses():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b"], 3000)
    low, high = np.zeros(6000), np.where(labels == "a", 1.0, 2.0)
    dose = np.where(rng.random(6000) < 0.2, 0.0, rng.uniform(low, high))
    weights = known_weights(Strata(labels), np.zeros((6000, 1)), dose)
    away = (dose > 0.05) & (dose < 0.95)
    # .8 / 1 and .8 / 2; about 500 rows in a window: 5 %.
    np.testing.assert_allclose(weights.density.observed[away & (labels == "a")], 0.8, rtol=0.2)
    np.testing.assert_allclose(weights.density.observed[away & (labels == "b")], 0.4, rtol=0.2)
    # p is .6 there, and 1 / 5 at the mass as in both strata. Stratum a has no doses above 1, so
    # weights of mean 1 are known up to a factor.
    at_mass = weights.r[dose == 0].mean()
    np.testing.assert_allclose(weights.r[away & (labels == "a")] / at_mass, 0.75, rtol=0.2)
    np.testing.assert_allclose(weights.r[away & (labels == "b")] / at_mass, 1.5, rtol=0.2)
    np.testing.assert_allclose(weights.r[dose == 0], at_mass, rtol=0.1)


def test_small_and_constant_strata_are_named():
    dose = np.linspace(0, 1, 100)
    labels = np.where(np.arange(100) < 5, "tiny", "large")
    with pytest.raises(ValueError, match="Got stratum tiny with 5 rows"):
        known_weights(Strata(labels), np.zeros((100, 1)), dose)
    same = np.where(np.arange(100) < 50, 0.5, dose)
    with pytest.raises(ValueError, match="Got stratum 0 with 50 rows and 1 distinct"):
        known_weights(Strata(np.arange(100) // 50), np.zeros((100, 1)), same)


def test_strata_answer_for_training_rows_only():
    dose = np.linspace(0, 1, 100)
    weights = known_weights(Strata(np.arange(100) % 2), np.zeros((100, 1)), dose)
    with pytest.raises(ValueError, match=r"must be the training table \(100 rows\)"):
        weights.density.out_of_fold(np.zeros((3, 1)), dose[:1])


def test_known_densities_are_checked():
    _, x, dose = confounded(n=100)
    pi = np.ones(100)
    pi[[3, 5]] = 0.0
    with pytest.raises(ValueError, match=r"must be positive .* Got 0.0 in row 3 instead"):
        known_weights(pi, x, dose)
    with pytest.raises(ValueError, match=r"one value per row \(100\). Got shape \(99,\)"):
        known_weights(pi[1:], x, dose)
    with pytest.raises(ValueError, match=r"must give values of shape .* Got shape \(100,\)"):
        known_weights(lambda x, t: np.ones(len(x)), x, dose)
    with pytest.raises(ValueError, match=r"must be positive .* Got -1.0 in row 0"):
        known_weights(lambda x, t: -np.ones(t.shape), x, dose)
    with pytest.raises(ValueError, match=r"not negative. Got -1.0 in row 0"):
        known_weights(lambda x, t: np.where(t == dose[:, None], 1.0, -1.0), x, dose)
    with pytest.raises(ValueError, match="must integrate to 1"):
        known_weights(lambda x, t: 3 * stats.norm.pdf(t - x[:, :1]), x, dose)


def test_wrong_shapes_are_named():
    _, x, dose = confounded(n=100)
    with pytest.raises(ValueError, match=r"Got shapes \(99,\) and \(100, 3\)"):
        Gaussian().fit(x, dose[1:])
    with pytest.raises(ValueError, match=r"must have two distinct values\. Got only 2 instead"):
        Gaussian().fit(x, np.full(100, 2.0))
    density = Gaussian().fit(x, dose)
    with pytest.raises(ValueError, match=r"\(100, n_doses\).* Got shape \(5, 2\)"):
        density.density(x, np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"must hold numbers\. Got NaN"):
        density.density(x, np.array([np.nan]))
    fitted = CrossFittedDensity(FoldModels(np.zeros(100, int), (density,), density), np.ones(100))
    with pytest.raises(ValueError, match=r"training table \(100 rows\). Got 5 rows"):
        fitted.out_of_fold(x[:5], dose[:2])
    with pytest.raises(ValueError, match=r"one value per dose \(99\). Got shape \(100,\)"):
        stabilised_weights(fitted, dose[1:])


# --- the choice ---------------------------------------------------------------------------------


def test_candidates_and_residuals_are_checked():
    _, x, dose = confounded(n=100)
    with pytest.raises(ValueError, match=r"must hold names in .* Got 'magic' instead"):
        choose_weights(x, dose, dose, folds_of(dose), dose[:2], candidates=["magic"])
    with pytest.raises(ValueError, match=r"one number per dose \(100\)\. Got shape \(99,\)"):
        choose_weights(x, dose, dose[1:], folds_of(dose), dose[:2])


def test_scores_equal_bias_and_variance_computed_directly():
    rng, x, dose = confounded(n=300)
    residual = x[:, 0] + rng.normal(size=300)
    grid = np.array([-1.0, 0.0, 1.0])
    given = TreatmentWeights("mine", np.exp(-0.5 * x[:, 0] * dose))
    choice = choose_weights(
        x, dose, residual, folds_of(dose), grid, candidates=[given], shrinkages=[1.0], bandwidth=0.8
    )
    from doseforest.nuisance.outcome.spline_core import fit_spline_core

    fit = fit_spline_core(x, dose, residual)
    target = fit.curves(x, grid).mean(axis=0)
    for name, r in (("none", np.ones(300)), ("mine", given.r)):
        error = 0.0
        for t, wanted, h in zip(grid, target, (0.8, 0.8, 0.8), strict=True):
            kernel = np.maximum(1 - ((dose - t) / h) ** 2, 0) * r
            design = np.column_stack([np.ones(300), dose - t])
            line = np.linalg.solve(design.T * kernel @ design, design.T * kernel)[0]
            bias = line @ fit.predict(x, dose) - wanted
            error += (bias**2 + (line**2) @ residual**2) / 3
        assert choice.scores[name] == pytest.approx(error, rel=1e-4)
    assert choice.scores["no correction"] == pytest.approx(np.mean(target**2))
    assert choice.chosen.scores == choice.scores


def test_weights_are_kept_where_the_fit_of_residuals_cannot_see_the_confounding():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 4))
    sign = np.sign(x[:, 0] * x[:, 1])  # splines of single covariates see nothing of it
    dose = 0.8 * sign + rng.normal(size=4000)
    residual = sign - 0.8 * dose / 1.64 + rng.normal(size=4000)
    grid = np.linspace(-1.2, 1.2, 9)
    choice = choose_weights(x, dose, residual, folds_of(dose), grid)
    assert choice.correct
    assert choice.chosen.name in ("location_scale", "binned")
    rows = local_linear_weights(dose, grid, 0.5, "epanechnikov", choice.chosen.r)
    found = choice.strength * (rows.T @ residual) / 4000
    truth = -0.8 / 1.64 * grid  # without weights, 0 would be found
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.6 * np.sqrt(np.mean(truth**2))


def test_nothing_is_corrected_where_there_is_only_noise():
    rng, x, _ = confounded(n=1500)
    dose = rng.uniform(0, 10, size=1500)
    residual = rng.normal(size=1500)
    choice = choose_weights(x, dose, residual, folds_of(dose), np.linspace(1, 9, 9))
    assert not choice.correct
    assert choice.strength < 0.5
    # None, or weights that are ones but for a few percent.
    assert choice.chosen.r.std() < 0.1


def test_a_wrong_outcome_model_on_confounded_data_gets_weights():
    rng, x, dose = confounded(n=1500)
    residual = 2 * x[:, 0] + rng.normal(size=1500)  # x1 was missed
    grid = np.linspace(-1.4, 1.4, 9)
    choice = choose_weights(x, dose, residual, folds_of(dose), grid)
    assert choice.chosen.name != "none"
    assert choice.chosen.shrinkage >= 0.5
    assert choice.scores[min(choice.scores, key=choice.scores.get)] < choice.scores["none"] / 4
    # The truth to find is 0; without weights the correction is |t|, .78 on average.
    rows = local_linear_weights(dose, grid, 0.5, "epanechnikov", choice.chosen.r)
    assert np.abs(rows.T @ residual / len(dose)).mean() < 0.78 / 2
    assert set(choice.scores) >= {"none", "no correction", "entropy", "binned^0.5"}
