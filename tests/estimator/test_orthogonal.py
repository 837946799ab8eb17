"""The orthogonal correction: what it repairs, what it leaves alone, and by what it is judged."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression

from doseforest.doses.bases.dose_basis import Indicators
from doseforest.doses.bases.polynomials import Legendre
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.corrections.moments import moment_channels, sieve_coefficients
from doseforest.estimator.corrections.orthogonal import OrthogonalSettings, fit_orthogonal
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.corrections.shape_stack import stack_shapes
from doseforest.estimator.training_rows import FeatureRoles, check_training
from doseforest.nuisance.cross_fit import draw_folds
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.treatment.conditional_means import cross_fit_means, shrunk_to_mean

DOSES = np.linspace(-1.5, 1.5, 7)


def mean(x, t):
    """Confounded by the first covariate, with an effect that differs by the second."""
    return 2 * x[:, 0] + 0.5 * t**2 + 2 * t * (1 + 0.5 * x[:, 1])


def draw(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], size=(n, 3))
    t = np.clip(x[:, 0] + rng.normal(size=n), -3, 3)
    return x, t, mean(x, t) + 0.5 * rng.normal(size=n)


class RightForm(RegressorMixin, BaseEstimator):
    """Least squares on the terms that the mean is made of."""

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(self._terms(X), y)
        return self

    def predict(self, X):
        return self.line_.predict(self._terms(X))

    def _terms(self, X):
        dose = X[:, -1:]
        return np.hstack([X, dose**2, dose * X[:, 1:2]])


def corrected(x, t, y, *, outcome, treatment, seed=0, n_threads=1, grows=None, **settings):
    """Out-of-fold curves plus what the correction adds, at DOSES; also the fitted correction."""
    rows = check_training(x, y, t, roles=FeatureRoles(controls=[0]))
    folds = draw_folds(rows.ids, 4, seed)
    if grows is not None:
        rows, folds = rows.growing_on(grows), np.where(grows, folds, -1)
    fitted_outcome = cross_fit_outcome(member_fit(outcome), x, t, y, folds[None])
    growth = GrowthSettings(
        n_trees=20,
        sample_fraction=0.7,
        honesty="tree" if grows is None else "none",
        n_threads=n_threads,
    )
    fitted = fit_orthogonal(
        rows.binned(),
        fitted_outcome,
        Legendre(7).fit(t),
        OrthogonalSettings(
            leaf_sizes=(50, 200), treatment_model=treatment, growth=growth, seed=seed, **settings
        ),
        n_threads=n_threads,
    )
    return fitted_outcome.curves_out_of_fold(x, DOSES) + fitted.added.curves(DOSES), fitted


def average_error(n, seed, outcome, treatment):
    """Error of the average effect against the middle dose, root mean square over doses."""
    x, t, y = draw(n, seed)
    curves, _ = corrected(x, t, y, outcome=outcome, treatment=treatment, seed=seed)
    exact = np.stack([mean(x, np.full(n, dose)) for dose in DOSES], axis=1).mean(axis=0)
    gap = curves.mean(axis=0) - exact
    return np.sqrt(np.mean((gap - gap[3]) ** 2))


# Covariates are signs, so that a linear model of a function of the dose given them is right; the
# confounder is a control, so that no split can make up for a wrong one.
@pytest.mark.parametrize(
    ("outcome", "treatment", "least", "most"),
    [
        pytest.param(DummyRegressor(), LinearRegression(), 0.0, 0.45, id="outcome-wrong"),
        pytest.param(RightForm(), DummyRegressor(), 0.0, 0.45, id="treatment-wrong"),
        pytest.param(DummyRegressor(), DummyRegressor(), 0.8, 1.25, id="both-wrong"),
    ],
)
def test_one_right_nuisance_is_enough_and_two_wrong_ones_are_not(outcome, treatment, least, most):
    # A root-n error falls to a quarter from 1,000 to 16,000 rows; 20 draws know the ratio of mean
    # errors to about 15 % of itself.
    small, large = (
        np.mean([average_error(n, seed, outcome, treatment) for seed in range(20)])
        for n in (1000, 16000)
    )
    assert least <= large / small <= most


def test_a_right_outcome_model_is_left_alone():
    x, t, y = draw(2000, seed=3)
    curves, fitted = corrected(x, t, y, outcome=RightForm(), treatment=LinearRegression())
    exact = np.stack([mean(x, np.full(2000, dose)) for dose in DOSES], axis=1)
    # The noise of 2,000 rows moves a coefficient by .5 / sqrt(2000) = .011, and there are six of
    # them; effects reach 5.
    assert np.sqrt(np.mean((curves - exact) ** 2)) < 0.05
    assert all(report["strength"] < 0.9 for report in fitted.report)


def test_a_missing_effect_is_found_with_its_heterogeneity():
    x, t, y = draw(4000, seed=4)
    curves, fitted = corrected(x, t, y, outcome=DummyRegressor(), treatment=LinearRegression())
    slope = (curves[:, -1] - curves[:, 0]) / 3
    # Exact slopes are 1 and 3; trees of 50 rows and more, shrinkage and the other covariates' noise
    # leave a quarter of the difference at most.
    assert slope[x[:, 1] > 0].mean() - slope[x[:, 1] < 0].mean() == pytest.approx(2.0, abs=0.5)
    assert fitted.report[0]["strength"] > 0.95
    assert fitted.report[0]["corrected_risk"] < 0.5 * fitted.report[0]["risk"]


def test_the_penalty_on_a_point_mass_counts_the_rows_that_have_it():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2000, 5))
    at_zero = (x[:, 0] < 0) & (rng.random(2000) < 0.1)
    t = np.where(at_zero, 0.0, rng.uniform(1, 5, size=2000))
    slope = np.sign(x[:, 1])
    y = np.where(at_zero, 0.0, slope * (t - 3)) + rng.normal(size=2000)
    rows = check_training(x, y, t)
    folds = draw_folds(rows.ids, 4, 0)
    outcome = cross_fit_outcome(member_fit(DummyRegressor()), x, t, y, folds[None])
    growth = GrowthSettings(n_trees=20, sample_fraction=0.7)
    basis = Legendre(4, masses=(0.0,)).fit(t)
    fitted = fit_orthogonal(rows.binned(), outcome, basis, OrthogonalSettings(growth=growth))
    added = fitted.added.curves(np.array([1.0, 5.0]))
    assert np.corrcoef(added[:, 1] - added[:, 0], slope)[0, 1] > 0.9
    # Units that cannot have 0 bring nothing to its moments. A penalty in rows of all doses would be
    # a twentieth of that on a polynomial, and noise over next to nothing would be left.
    readings = [own for forest in fitted.correction.rounds[0].forests for own in forest.readings]
    offsets = [own.penalty for own in readings if own.penalty is not None]
    assert offsets
    for on_mass, on_slope, *_ in offsets:
        assert on_mass > 0.5 * on_slope


def test_new_units_get_what_the_rounds_add_up_to():
    x, t, y = draw(1000, seed=5)
    model = member_fit(LinearRegression())(x, t, y)["regressor"]
    _, fitted = corrected(x, t, y, outcome=LinearRegression(), treatment=LinearRegression())
    splits = np.ascontiguousarray(x[:50, 1:])
    on_grid = fitted.correction.curves(model, x[:50], splits, DOSES, 1)
    own = fitted.correction.curves(model, x[:50], splits, np.tile(DOSES, (50, 1)), 1)
    assert on_grid == pytest.approx(own, rel=1e-12)
    # Units of the same covariates have the same curve, and no other has it.
    same = (x[:50] == x[0]).all(axis=1)
    assert np.ptp(on_grid[same], axis=0) == pytest.approx(0.0, abs=1e-12)


def test_threads_do_not_change_the_correction():
    x, t, y = draw(1000, seed=6)
    one, two = (
        corrected(x, t, y, outcome=DummyRegressor(), treatment=LinearRegression(), n_threads=k)[0]
        for k in (1, 2)
    )
    assert np.array_equal(one, two)


def test_a_given_half_grows_and_the_other_fills():
    x, t, y = draw(2000, seed=7)
    grows = np.arange(2000) % 2 == 0
    changed = np.where(grows, y, y + 100 * (t > 0))
    _, fitted = corrected(
        x, t, y, outcome=DummyRegressor(), treatment=LinearRegression(), grows=grows, n_rounds=1
    )
    _, other = corrected(
        x,
        t,
        changed,
        outcome=DummyRegressor(),
        treatment=LinearRegression(),
        grows=grows,
        n_rounds=1,
    )
    # Outcomes of the filling half reach the leaves, but neither the nuisances nor the splits.
    first, second = (own.correction.rounds[0].forests[0].forest for own in (fitted, other))
    assert np.array_equal(first.nodes["threshold"], second.nodes["threshold"], equal_nan=True)
    assert not np.array_equal(first.leaf_sums, second.leaf_sums)


def test_means_given_covariates_miss_the_row_and_shrink_without_a_signal():
    rng = np.random.default_rng(0)
    x, folds = rng.normal(size=(800, 3)), np.arange(800) % 4
    noise = rng.normal(size=(800, 1))
    assert cross_fit_means(x, noise, folds).std() < 0.1
    signal = x[:, :1] + 0.1 * noise
    assert np.corrcoef(cross_fit_means(x, signal, folds)[:, 0], x[:, 0])[0, 1] > 0.97
    held = np.where(np.arange(800) < 100, -1, folds)
    other = signal.copy()
    other[:100] += 50  # rows that no model may see
    first, second = (cross_fit_means(x, own, held) for own in (signal, other))
    assert np.array_equal(first, second)


def test_a_prediction_is_shrunk_by_its_slope_and_never_stretched():
    target = np.array([0.0, 1.0, 2.0])
    predicted = np.column_stack([2 * target - 2, 0.1 * target + 0.9, -target, np.ones(3)])
    shrunk = shrunk_to_mean(predicted, np.tile(target[:, None], 4))
    expected = np.column_stack([target, predicted[:, 1], np.ones(3), np.ones(3)])
    assert shrunk == pytest.approx(expected)


def test_moments_give_back_the_coefficients_of_an_exact_relation():
    rng = np.random.default_rng(1)
    functions = rng.normal(size=(200, 4))
    coefficients = np.array([1.0, -2.0, 3.0, 0.5])
    channels = moment_channels(functions, functions @ coefficients).mean(axis=0)[None]
    solved = sieve_coefficients(channels, 4, (0.0,) * 4, 1)
    assert solved[0] == pytest.approx(coefficients)
    two = sieve_coefficients(channels, 4, (0.1, 0.2), 1)[0]
    gram = functions[:, :2].T @ functions[:, :2] / 200 + np.diag([0.1, 0.2])
    expected = np.linalg.solve(gram, functions[:, :2].T @ (functions @ coefficients) / 200)
    assert two == pytest.approx([*expected, 0, 0])


@pytest.mark.parametrize("dose", [np.linspace(0, 9, 400) ** 1.5, np.arange(400) % 5 * 2.0])
def test_a_combination_of_the_functions_is_projected_on_itself(dose):
    basis = Legendre(5).fit(dose) if len(np.unique(dose)) > 5 else Indicators().fit(dose)
    projection = fit_projection(basis, dose)
    coefficients = np.arange(1.0, basis.n_functions)
    curve = 3 + basis.evaluate(projection.nodes)[:, 1:] @ coefficients
    assert projection.coefficients(curve) == pytest.approx(coefficients)


def test_shares_are_those_of_a_non_negative_regression_up_to_one():
    rng = np.random.default_rng(2)
    shapes = rng.normal(size=(5000, 3))
    noise = rng.normal(size=5000)
    # Noise of 1 in 5,000 rows moves a share by .014.
    mild = stack_shapes(shapes, shapes @ [0.3, -0.5, 0.4] + noise)
    assert mild.shares == pytest.approx([0.3, 0.0, 0.4], abs=0.06)
    large = stack_shapes(shapes, shapes @ [2.0, 0.0, 1.0] + noise)
    assert large.shares.sum() == pytest.approx(1.0, abs=0.01)
    assert large.shares[0] > large.shares[2]
    assert large.corrected_risk < large.risk


def test_a_gain_that_cannot_be_told_from_noise_is_not_taken():
    rng = np.random.default_rng(3)
    strengths = []
    for _ in range(50):
        stack = stack_shapes(rng.normal(size=(300, 4)), rng.normal(size=300))
        strengths.append(stack.strength)
        assert stack.shares.sum() <= 1
    # Of four useless shapes the best has a t of about 1: most of the time little is left.
    assert np.median(strengths) < 0.5


def test_weights_are_copies_and_clusters_widen_the_noise():
    rng = np.random.default_rng(4)
    shapes, noise = rng.normal(size=(400, 2)), rng.normal(size=400)
    target = 0.2 * shapes[:, 0] + noise
    copies = rng.integers(1, 4, size=400)
    weighted = stack_shapes(shapes, target, weights=copies.astype(float), clusters=np.arange(400))
    repeated = np.repeat(np.arange(400), copies)
    written_out = stack_shapes(shapes[repeated], target[repeated], clusters=repeated)
    assert weighted.shares == pytest.approx(written_out.shares)
    assert weighted.t_value == pytest.approx(written_out.t_value)
    alone = stack_shapes(shapes[repeated], target[repeated])
    assert alone.t_value > written_out.t_value
