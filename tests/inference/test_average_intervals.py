"""Standard errors, intervals and bands of average curves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.base.estimates import Estimate
from doseforest.base.intervals import (
    normal_quantile,
    simultaneous_quantile,
    student_quantile,
)
from doseforest.doses.smoothing.boundary import local_linear_weights
from doseforest.doses.smoothing.local_polynomials import local_polynomials
from doseforest.estimator.averages.average_curves import (
    AverageDoseResponse,
    average_of_units,
    centred_influence,
    residual_influence,
)
from doseforest.estimator.trained_parts import out_of_bag

KERNEL = "epanechnikov"


@pytest.fixture(scope="module")
def fitted():
    """A forest with a line for an outcome model, on a curve that bends; rows in pairs."""
    rng = np.random.default_rng(3)
    x, dose = rng.normal(size=(400, 2)), rng.uniform(0.0, 4.0, size=400)
    y = np.sin(dose) + x[:, 0] + rng.normal(size=400)
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=LinearRegression(),
        density="none",
        baseline=1.0,
        n_jobs=1,
        random_state=0,
    )
    return forest.fit(x, y, treatment=dose, groups=np.arange(400) // 2)


def errors_of_one_draw(seed):
    """Value, and standard errors with and without c(t), where the outcome model says nothing."""
    rng, doses = np.random.default_rng(seed), np.array([0.5])
    dose = rng.uniform(size=400)
    residual = 3 + dose + rng.normal(size=400)
    options = {"kernel": KERNEL, "bandwidth": 0.2, "treatment_weights": np.ones(400)}
    mean, said = centred_influence(dose, residual, doses, **options)
    found = average_of_units(mean + said, None, np.arange(400))
    naive = residual_influence(dose, residual, doses, **options)
    return (
        found.values[0],
        found.standard_errors[0],
        average_of_units(naive, None, np.arange(400)).standard_errors[0],
    )


def test_the_influence_function_has_the_right_size_where_the_outcome_model_is_wrong():
    values, errors, naive = np.transpose([errors_of_one_draw(seed) for seed in range(200)])
    # A standard deviation of 200 draws is off by 5 %; 1.00 and 3.4 were measured.
    assert 0.87 < errors.mean() / values.std() < 1.13
    assert naive.mean() / values.std() > 2


@pytest.mark.parametrize("degree", [1, 2])
def test_influence_is_the_change_of_the_value_when_a_row_is_left_out(degree):
    rng = np.random.default_rng(1)
    dose, outcome, weights = rng.uniform(size=60), rng.normal(size=60), rng.uniform(1, 2, size=60)
    doses = np.array([0.1, 0.6])
    shared = {"kernel": KERNEL, "degree": degree}
    fit = local_polynomials(dose, outcome, doses, 0.3, weights=weights, **shared)
    inner = np.setdiff1d(np.arange(60), [dose.argmin(), dose.argmax()])  # bandwidths stay
    changes = []
    for row in inner:
        kept = np.arange(60) != row
        without = local_polynomials(
            dose[kept], outcome[kept], doses, 0.3, weights=weights[kept], **shared
        )
        changes.append(60 * (fit.values - without.values))
    gaps = np.array(changes) - fit.influence[inner]
    np.testing.assert_allclose(gaps, np.broadcast_to(gaps[0], gaps.shape), atol=1e-9)


def test_local_lines_are_those_of_the_equivalent_weights_and_parabolas_fit_parabolas():
    rng = np.random.default_rng(2)
    dose, outcome, r = rng.uniform(size=200), rng.normal(size=200), rng.uniform(1, 3, size=200)
    doses = np.linspace(0.0, 1.0, 6)
    line = local_polynomials(dose, outcome, doses, 0.2, KERNEL, r)
    weights = local_linear_weights(dose, doses, 0.2, KERNEL, r)
    np.testing.assert_allclose(line.values, (weights * outcome[:, None]).mean(axis=0), atol=1e-5)
    bent = 1 - 2 * dose + 3 * dose**2
    parabola = local_polynomials(dose, bent, doses, 0.2, KERNEL, r, degree=2)
    np.testing.assert_allclose(parabola.values, 1 - 2 * doses + 3 * doses**2, atol=1e-9)


def test_too_few_distinct_doses_lower_the_degree():
    dose, outcome = np.repeat([0.0, 1.0, 9.0], 10), np.repeat([1.0, 3.0, 5.0], 10)
    found = local_polynomials(dose, outcome, np.array([0.5, 9.0]), 1.0, "uniform", degree=2)
    np.testing.assert_allclose(found.values, [2.0, 5.0])  # a line, and a mean


def test_a_dose_that_the_kernel_does_not_reach_is_told():
    with pytest.raises(ValueError, match=r"'grid' parameter must hold doses that the kernel"):
        local_polynomials(np.array([0.0, 1.0, 9.0]), np.zeros(3), np.array([5.0]), 1.0, KERNEL)


def test_levels_have_the_errors_of_their_means():
    rng = np.random.default_rng(0)
    dose, residual = np.repeat([0.0, 1.0], 100), 4 + rng.normal(size=200)
    mean, said = centred_influence(
        dose,
        residual,
        np.array([1.0]),
        kernel="exact",
        bandwidth=1.0,
        treatment_weights=np.ones(200),
    )
    error = average_of_units(mean + said, None, np.arange(200)).standard_errors
    assert mean[0] == pytest.approx(residual[100:].mean(), rel=1e-6)
    error_of_200 = np.sqrt(200 / 199) * residual[100:].std() / 10  # all 200 are clusters
    assert error[0] == pytest.approx(error_of_200, rel=1e-5)


def test_values_of_least_error_are_curves_plus_the_chosen_correction(fitted):
    doses, averager = np.array([1.0, 2.0]), fitted._fitted.averager
    rows = averager.parts[0].rows
    curves, _ = out_of_bag(averager.parts, doses)
    said = residual_influence(
        rows.dose.values,
        averager.residual,
        doses,
        kernel=averager.kernel,
        bandwidth=averager.bandwidth,
        treatment_weights=averager.weights.r,
    )
    average = fitted.average_dose_response(doses)
    np.testing.assert_array_equal(
        average.values, np.average(curves + averager.strength * said, axis=0, weights=np.ones(400))
    )
    assert average.method == "least_error"
    assert average.bandwidth == averager.bandwidth


def test_bias_correction_is_told_and_makes_the_correction_in_full(fitted):
    doses, averager = np.array([1.5, 2.5]), fitted._fitted.averager
    rows = averager.parts[0].rows
    found = fitted.average_dose_response(doses, bias_correction=True)
    assert found.method == "bias_corrected"
    assert found.bandwidth == min(averager.bandwidth, averager.error_bandwidth)
    curves, _ = out_of_bag(averager.parts, doses)
    bent = local_polynomials(
        rows.dose.values, averager.residual, doses, found.bandwidth, KERNEL, degree=2
    )
    np.testing.assert_allclose(found.values, curves.mean(axis=0) + bent.values)
    plain = fitted.average_dose_response(doses)
    assert (found.standard_errors > plain.standard_errors).all()


def test_errors_of_effects_agree_with_the_covariance_of_the_curve(fitted):
    for correct in (False, True):
        curve = fitted.average_dose_response([1.0, 3.0], bias_correction=correct)
        effect = fitted.average_effect(3.0, 1.0, bias_correction=correct)
        slope = fitted.average.partial_effect(1.0, 3.0, bias_correction=correct)
        contrast = np.array([-1.0, 1.0])
        assert effect.value == pytest.approx(contrast @ curve.values)
        variance = contrast @ curve.covariance @ contrast
        assert effect.standard_error == pytest.approx(np.sqrt(variance))
        assert slope.value == pytest.approx(effect.value / 2)
        assert slope.standard_error == pytest.approx(effect.standard_error / 2)


def test_a_slope_is_the_same_in_either_direction(fitted):
    up, down = fitted.average.partial_effect(1.0, 3.0), fitted.average.partial_effect(3.0, 1.0)
    assert (up.value, up.standard_error) == pytest.approx((down.value, down.standard_error))


def test_intervals_are_normal_and_bands_reach_further():
    covariance = np.array([[1.0, 0.5], [0.5, 4.0]])
    curve = AverageDoseResponse(np.zeros(2), np.array([1.0, 2.0]), covariance, np.array([0.0, 1.0]))
    np.testing.assert_allclose(curve.interval()[1], [1.959964, 3.919928], rtol=1e-6)
    low, high = curve.band()
    np.testing.assert_allclose(high, -low)
    assert high[1] / high[0] == pytest.approx(2.0)
    assert 1.96 < high[0] < 2.2415  # of two independent ones
    assert Estimate(1.0, 1.0).interval()[1] == pytest.approx(2.959964)


def test_the_band_is_that_of_multipliers_shared_by_all_doses(fitted):
    curve = fitted.average_dose_response()
    averager = fitted._fitted.averager
    scores = averager.scores(curve.doses)
    ids = averager.parts[0].rows.ids
    centred = scores - scores.mean(axis=0)
    sums = np.stack([np.bincount(ids, column) for column in centred.T], axis=1) / len(ids)
    multipliers = np.random.default_rng(0).standard_normal((4000, len(sums)))
    largest = np.abs(multipliers @ sums / curve.standard_errors).max(axis=1)
    # A quantile of 4,000 draws is off by .03.
    reach = simultaneous_quantile(curve.covariance)
    assert reach == pytest.approx(np.quantile(largest, 0.95), abs=0.1)
    assert reach > normal_quantile(0.95)


def test_one_value_has_its_interval_for_a_band_and_more_coverage_is_wider():
    assert simultaneous_quantile(np.eye(1)) == pytest.approx(1.96, abs=0.03)
    assert simultaneous_quantile(np.diag([0.01, np.inf])) == simultaneous_quantile(np.eye(1))
    assert simultaneous_quantile(np.ones((3, 3))) == pytest.approx(1.96, abs=0.03)
    assert simultaneous_quantile(np.zeros((2, 2))) == pytest.approx(1.96, abs=0.01)
    assert simultaneous_quantile(np.eye(3), 0.99) > simultaneous_quantile(np.eye(3), 0.9)


@pytest.mark.parametrize("n", [4, 20])
def test_means_of_few_clusters_are_covered(n):
    rng = np.random.default_rng(n)
    covered, normal = 0, 0
    for _ in range(1000):
        said = np.repeat(rng.normal(size=n), 5)[:, None]
        found = average_of_units(said, None, np.repeat(np.arange(n), 5))
        effect = found.at(0)
        covered += effect.interval()[0] <= 0 <= effect.interval()[1]
        normal += abs(effect.value) <= 1.96 * effect.standard_error
    assert 930 <= covered <= 970  # three standard errors of a binomial
    assert normal < covered - 10


def test_few_units_near_a_dose_make_for_wide_ends(fitted):
    curve = fitted.average_dose_response([0.1, 2.0], bias_correction=True)
    reach = (curve.interval()[1] - curve.values) / curve.standard_errors
    np.testing.assert_allclose(reach, student_quantile(curve.degrees, 0.95))
    assert curve.degrees[0] < curve.degrees[1]
    assert 1.96 < reach[1] < reach[0]
    band = (curve.band()[1] - curve.values) / curve.standard_errors
    assert (band > reach).all()


def test_levels_are_matched_and_have_no_bandwidth():
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 3, size=200).astype(float)
    forest = GeneralizedCausalForest(
        correction="none", outcome_model=LinearRegression(), density="none", n_jobs=1
    ).fit(rng.normal(size=(200, 2)), dose + rng.normal(size=200), treatment=dose)
    plain, corrected = (forest.average_dose_response(bias_correction=own) for own in (False, True))
    assert plain.bandwidth is None
    assert corrected.bandwidth is None
    np.testing.assert_allclose(plain.values, corrected.values, rtol=1e-6)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 95, True, "95", None, np.nan])
def test_a_coverage_is_a_share(fitted, coverage):
    curve, effect = fitted.average_dose_response([2.0]), fitted.average_effect(2.0)
    for asked in (curve.interval, curve.band, effect.interval):
        with pytest.raises(ValueError, match=r"'coverage' parameter must be a float in \(0, 1\)"):
            asked(coverage)


@pytest.mark.parametrize("flag", ["yes", 1, None])
def test_bias_correction_is_a_flag(fitted, flag):
    rule = "'bias_correction' parameter must be True or False"
    with pytest.raises(ValueError, match=rule):
        fitted.average_dose_response(bias_correction=flag)
    with pytest.raises(ValueError, match=rule):
        fitted.average_effect(2.0, bias_correction=flag)


def test_slopes_need_two_doses(fitted):
    with pytest.raises(ValueError, match="'high' parameter must differ from 'low'"):
        fitted.average.partial_effect(2.0, 2.0)
    with pytest.raises(ValueError, match="'high' parameter must lie in the support"):
        fitted.average.partial_effect(2.0, 99.0)
    with pytest.raises(ValueError, match="'low' parameter must be one dose"):
        fitted.average.partial_effect([1.0, 2.0], 3.0)


def test_one_cluster_has_no_error_to_tell():
    # The deviations of a single cluster add up to 0, which would be an error of 1e-16.
    said = np.random.default_rng(0).normal(size=(50, 2))
    found = average_of_units(said, None, np.zeros(50, int))
    assert np.allclose(found.values, said.mean(axis=0))
    assert np.isposinf(found.standard_errors).all()
    assert np.isposinf(found.covariance).all()
    weights = np.repeat([1.0, 0.0], 25)  # the second cluster has no weight
    assert np.isposinf(average_of_units(said, weights, np.repeat([0, 1], 25)).standard_errors).all()
