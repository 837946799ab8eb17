"""How often the test of shapes rejects: average curves of forests where the truth is known.

The data have a flat average curve, the least favourable one, or one that is reversed by four of
its standard errors: outcomes are shifted by a curve of the dose, which the outcome model has to
learn as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from doseforest.corrections.averages import AverageDoseResponse
from doseforest.dtypes import FloatArray
from doseforest.inference.shape_test import shape_test
from doseforest.inference.shapes import Shape

LEVEL = 0.05
SIZE_OF_REVERSAL = 4.0  # in standard errors of the average curve


@dataclass(frozen=True, slots=True)
class Rejections:
    """Shares of draws in which the shape was rejected."""

    flat: float  # at most LEVEL wanted; the bar is 7 %
    reversed: float  # the bar is 90 %
    n_draws: int


def reversed_curve(doses: FloatArray, errors: FloatArray) -> FloatArray:
    """A curve that from its middle dose on lies four standard errors lower than before.

    >>> reversed_curve(np.array([0.0, 1.0, 2.0]), np.ones(3))
    array([ 0., -4., -4.])
    """
    middle = (doses[0] + doses[-1]) / 2
    lower: FloatArray = np.where(doses >= middle, -SIZE_OF_REVERSAL * np.median(errors), 0.0)
    return lower


def rejections(averages: Sequence[AverageDoseResponse], shape: Shape) -> float:
    """Share of average curves for which a shape is rejected."""
    return float(np.mean([shape_test(own, shape).p_value <= LEVEL for own in averages]))


def shape_rejections(
    forest: Any,
    *,
    shape: Shape = "increasing",
    n: int = 1000,
    n_draws: int = 500,
    first_seed: int = 300,
) -> Rejections:
    """Fit a forest to draws without any effect, and to the same with a reversal.

    Parameters
    ----------
    forest : GeneralizedCausalForest
        Cloned for every fit.
    n, n_draws, first_seed : int
        Rows of a draw, draws, and the seed of the first one.
    """
    flat, lower = [], []
    for seed in range(first_seed, first_seed + n_draws):
        X, dose, y = draw_flat(n, seed)
        average = clone(forest).fit(X, y, treatment=dose).average_dose_response()
        fall = reversed_curve(average.doses, average.standard_errors)
        shifted = y + np.interp(dose, average.doses, fall)
        flat.append(average)
        lower.append(clone(forest).fit(X, shifted, treatment=dose).average_dose_response())
    return Rejections(rejections(flat, shape), rejections(lower, shape), n_draws)


def draw_flat(n: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariates that move dose and outcome, a dose without any effect, and outcomes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    dose = np.clip(5.0 + X[:, 0] + rng.normal(0.0, 2.0, n), 0.0, 10.0)
    return X, dose, X[:, 0] + X[:, 1] + rng.standard_normal(n)
