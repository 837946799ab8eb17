"""Elasticities of average curves, and the covariance that their standard errors come from."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from doseforest import GeneralizedCausalForest
from doseforest.estimator.averages.average_curves import AverageDoseResponse

DOSES = np.array([1.0, 2.0, 4.0])


def curve(values, covariance=None, doses=DOSES):
    spread = np.eye(len(doses)) if covariance is None else covariance
    return AverageDoseResponse(np.array(values), np.sqrt(np.diag(spread)), spread, np.array(doses))


@pytest.fixture(scope="module")
def power_law():
    """A forest on outcomes 5 T^-0.4 with noise, and an outcome model that knows powers."""
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(500, 2)), rng.uniform(1.0, 4.0, size=500)
    y = 5 * dose**-0.4 + 0.3 * x[:, 0] + 0.2 * rng.normal(size=500)
    bend = FunctionTransformer(lambda table: np.column_stack([table, np.log(table[:, -1])]))
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=make_pipeline(bend, LinearRegression()),
        density="none",
        baseline=1.0,
        n_jobs=1,
        random_state=0,
    )
    return forest.fit(x, y, treatment=dose, groups=np.arange(500) // 2)


def test_a_power_of_the_dose_has_that_power_as_its_elasticity():
    assert curve(7 * DOSES**-0.3).elasticity().value == pytest.approx(-0.3)


def test_the_standard_error_is_the_spread_of_elasticities_of_noisy_curves():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3)) / 50
    values, covariance = 2 * DOSES**-0.5, root @ root.T + np.eye(3) / 2500
    draws = rng.multivariate_normal(values, covariance, size=4000)
    spread = np.std([curve(draw).elasticity().value for draw in draws])
    # The spread of 4,000 draws is known to 1/sqrt(8,000), about 1.1 %; noise of 2 % to 5 % makes
    # the delta method miss by well under a per cent.
    assert curve(values, covariance).elasticity().standard_error == pytest.approx(spread, rel=0.05)


def test_a_forest_finds_the_elasticity_of_a_power_law(power_law):
    found = power_law.average_dose_response([1.5, 2.0, 2.5, 3.0, 3.5]).elasticity()
    # The line over these doses of an exact power law: -0.4. Three standard errors, which are small.
    assert abs(found.value + 0.4) < 3 * found.standard_error < 0.1


def test_the_covariance_agrees_with_standard_errors_and_with_those_of_effects(power_law):
    average = power_law.average_dose_response([1.5, 3.0])
    variances = np.diag(average.covariance)
    np.testing.assert_allclose(np.sqrt(variances), average.standard_errors, rtol=1e-12)
    of_difference = variances.sum() - 2 * average.covariance[0, 1]
    effect = power_law.average_effect(3.0, 1.5)
    # Smoothing weights are single floats, so that contrasts agree to about six digits.
    assert np.sqrt(of_difference) == pytest.approx(effect.standard_error, rel=1e-5)


@pytest.mark.parametrize("doses", [[0.0, 1.0, 2.0], [-1.0, 1.0, 2.0], [2.0, 2.0, 2.0]])
def test_elasticities_need_two_positive_doses(doses):
    with pytest.raises(ValueError, match=r"'doses' .* two doses, all of them positive.*Got \["):
        curve([1.0, 2.0, 3.0], doses=doses).elasticity()


def test_elasticities_need_positive_averages():
    with pytest.raises(ValueError, match=r"'values' .* positive .* Got -2 at dose 2 instead"):
        curve([1.0, -2.0, 3.0]).elasticity()
