"""How often the test of shapes rejects: average curves of forests where the truth is known.

The data have a flat average curve, the least favourable one, or one that is reversed by four of
its standard errors: outcomes are shifted by a curve of the dose, which the outcome model has to
learn as any other.
"""

from __future__ import annotations

import numpy as np

from bench.studies.coverage.average_draws import cheap_forest
from doseforest.base.dtypes import FloatArray
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.inference.shapes.shape_test import shape_test
from doseforest.inference.shapes.shapes import Shape

LEVEL = 0.05
SIZE_OF_REVERSAL = 4.0  # in standard errors of the average curve


def reversed_curve(doses: FloatArray, errors: FloatArray) -> FloatArray:
    """A curve that from its middle dose on lies four standard errors lower than before.

    >>> reversed_curve(np.array([0.0, 1.0, 2.0]), np.ones(3))
    array([ 0., -4., -4.])
    """
    middle = (doses[0] + doses[-1]) / 2
    lower: FloatArray = np.where(doses >= middle, -SIZE_OF_REVERSAL * np.median(errors), 0.0)
    return lower


def draw_rejections(n: int, seed: int, *, shape: Shape = "increasing") -> dict[str, bool]:
    """Whether the test rejects on a draw without any effect, and on the same with a reversal."""
    X, dose, y = draw_flat(n, seed)
    average = _average(X, dose, y)
    fall = reversed_curve(average.doses, average.standard_errors)
    lower = _average(X, dose, y + np.interp(dose, average.doses, fall))
    return {
        "flat": shape_test(average, shape).p_value <= LEVEL,
        "reversed": shape_test(lower, shape).p_value <= LEVEL,
    }


def _average(X: FloatArray, dose: FloatArray, y: FloatArray) -> AverageDoseResponse:
    forest = cheap_forest().set_params(baseline=float(np.median(dose)))
    found: AverageDoseResponse = forest.fit(X, y, treatment=dose).average_dose_response()
    return found


def draw_flat(n: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariates that move dose and outcome, a dose without any effect, and outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    dose = np.clip(5.0 + X[:, 0] + rng.normal(0.0, 2.0, n), 0.0, 10.0)
    return X, dose, X[:, 0] + X[:, 1] + rng.standard_normal(n)
