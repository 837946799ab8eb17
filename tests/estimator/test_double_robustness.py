"""Average curves of the kernel forms are right when the outcome model or the weights are.

Doses are x1 + N(0, 1), clipped far out; the average curve is judged at interior doses.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from doseforest.doses.smoothing.bandwidths import loo_bandwidth, rule_of_thumb
from doseforest.estimator.averages.average_curves import average_of_units, residual_influence
from doseforest.estimator.corrections.published_kernels import doubly_robust_curves

KERNEL = "epanechnikov"
DOSES = np.linspace(-1.0, 1.0, 9)
N_DRAWS = 20


def normal(z):
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def marginal(dose):
    """Density of x1 + N(0, 1), x1 ~ U(-1, 1)."""
    return (ndtr(dose + 1) - ndtr(dose - 1)) / 2


def confounded_mean(doses, X):
    x1, x2, x3 = X.T[:, :, None]
    return 2 * np.sin(doses) * (1 + x2) + 1.5 * x1 + 0.5 * doses * x1 + 0.5 * x3**2


CONFOUNDED_AVERAGE = 2 * np.sin(DOSES) + 0.5 / 3  # means of x1 and x2 are 0, that of x3^2 is 1 / 3


def stabilized_average(curves, residual, dose, r):
    bandwidth = loo_bandwidth(dose, residual, KERNEL, weights=r).bandwidth
    said = curves + residual_influence(
        dose, residual, DOSES, kernel=KERNEL, bandwidth=bandwidth, treatment_weights=r
    )
    return average_of_units(said, None, np.arange(len(dose))).values


def published_average(curves, y, dose, density):
    bandwidth = rule_of_thumb(dose, KERNEL)
    said = doubly_robust_curves(curves, dose, y, DOSES, density, kernel=KERNEL, bandwidth=bandwidth)
    return average_of_units(said, None, np.arange(len(dose))).values


def average_errors(n, seed):
    """Errors of both average curves, by (form, outcome model is right, weights are right)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    dose = np.clip(X[:, 0] + rng.normal(size=n), -3, 3)
    mean = confounded_mean(dose[:, None], X)[:, 0]
    y = mean + rng.normal(size=n)
    outcomes = {  # curves on the grid, and at the observed dose
        True: (confounded_mean(DOSES, X), mean),
        False: (np.full((n, len(DOSES)), y.mean()), np.full(n, y.mean())),
    }
    weights = {  # r, and the density on the grid
        True: (
            np.minimum(marginal(dose) / normal(dose - X[:, 0]), np.sqrt(n)),
            normal(DOSES - X[:, :1]),
        ),
        False: (np.ones(n), np.tile(marginal(DOSES), (n, 1))),
    }
    errors = {}
    for right_outcome, (curves, observed) in outcomes.items():
        for right_weights, (r, density) in weights.items():
            averages = {
                "stabilized": stabilized_average(curves, y - observed, dose, r),
                "kernel": published_average(curves, y, dose, density),
            }
            for form, average in averages.items():
                error = np.sqrt(np.mean((average - CONFOUNDED_AVERAGE) ** 2))
                errors[form, right_outcome, right_weights] = error
    return errors


@pytest.fixture(scope="module")
def error_ratios():
    """Mean error at 16,000 rows over that at 1,000."""
    means = []
    for n in (1000, 16000):
        draws = [average_errors(n, seed=n + draw) for draw in range(N_DRAWS)]
        means.append({case: np.mean([own[case] for own in draws]) for case in draws[0]})
    return {case: means[1][case] / means[0][case] for case in means[0]}


# Errors of order n^(-2/5) fall to 16^(-2/5) = .33, and .27 to .34 was measured; an error that a
# bias makes does not fall: 1.05 and 1.15 were measured, for noise hides some of it at first.
@pytest.mark.parametrize("form", ["stabilized", "kernel"])
class TestDoubleRobustness:
    def test_right_weights_make_up_for_a_wrong_outcome_model(self, error_ratios, form):
        assert error_ratios[form, False, True] <= 0.45

    def test_a_right_outcome_model_makes_up_for_wrong_weights(self, error_ratios, form):
        assert error_ratios[form, True, False] <= 0.45

    def test_nothing_makes_up_for_both(self, error_ratios, form):
        assert error_ratios[form, False, False] >= 0.8
