"""Doubly robust scores of outcomes at doses, and of the effect of one dose against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.estimator.averages.average_curves import residual_influence
from doseforest.estimator.chosen_bandwidths import choose_bandwidth
from doseforest.estimator.fit_plan import dose_kernel
from doseforest.estimator.weighting import weigh_treatments
from doseforest.inference.judged_rows import JudgedRows


@dataclass(frozen=True, slots=True, eq=False)
class ContrastScores:
    """Predictions and scores of an effect.

    The mean score of rows picked by their covariates is about their mean effect, whatever the
    prediction; single scores are noisy.
    """

    predictions: FloatArray  # (n_rows,) of the curves alone
    scores: FloatArray  # (n_rows,) with what the rows' own outcomes say


def contrast_scores(
    judged: JudgedRows, dose: Any, baseline: Any, treatment_weights: FloatArray | None = None
) -> ContrastScores:
    """Curve at a dose less that at the baseline, plus the weighted residual near either dose.

    Residuals are free of what the covariates explain of them. That changes no mean where the
    treatment weights are right, and where they are not it keeps errors of the level, which are no
    effects, out of the scores. The correction is made in full, with the bandwidth by rule of
    thumb, as for the standard errors of averages.

    Parameters
    ----------
    treatment_weights : array of shape (n_rows,), optional
        Weights r, about p(T) / pi(T | X), where they are known; else they are chosen.
    """
    doses = np.append(baseline, dose)
    curves = judged.curves(doses)
    predictions = curves[:, 1] - curves[:, 0]
    said = said_by_residuals(judged, doses, treatment_weights)
    return ContrastScores(predictions, predictions + said[:, 1] - said[:, 0])


def said_by_residuals(
    judged: JudgedRows, doses: DoseArray, treatment_weights: FloatArray | None = None
) -> FloatArray:
    """What each row's residual adds to its curve at each dose, shape (n_rows, n_doses)."""
    rows, plan = judged.rows, judged.plan
    weights = treatment_weights
    if weights is None:
        weights = weigh_treatments(rows, judged.residual, plan).chosen.r
    residual = judged.residual_without_level()
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = 1.0
    if smooth:
        bandwidth = choose_bandwidth("rule_of_thumb", rows, residual, kernel, weights)
    return residual_influence(
        rows.dose.values,
        residual,
        doses,
        kernel=kernel,
        bandwidth=bandwidth,
        treatment_weights=weights,
        weights=rows.weights,
    )
