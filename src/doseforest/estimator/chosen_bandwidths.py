"""Bandwidths as the user asked for them, for unit curves and for averages apart."""

from __future__ import annotations

from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.bandwidths import loo_bandwidth, rule_of_thumb
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import given_bandwidth
from doseforest.estimator.training_rows import TrainingRows

BANDWIDTH_RULES = ("rule_of_thumb", "leave_one_out")


def choose_bandwidth(
    asked: str | float,
    rows: TrainingRows,
    outcome: FloatArray,
    kernel: str | Kernel,
    treatment_weights: FloatArray | None = None,
    degree: int = 1,
) -> float:
    """A given bandwidth, or one by a rule: the spread of the doses, or outcomes left out.

    The outcomes are what is smoothed: for stabilized curves and averages, residuals at the observed
    dose, of which a good outcome model leaves no shape, so that the widest bandwidth wins. They
    are smoothed by local lines, or by local constants (`degree` 0).
    """
    if not isinstance(asked, str):
        return given_bandwidth(asked)
    if asked == "rule_of_thumb":
        return rule_of_thumb(rows.dose, kernel, rows.weights)
    own = treatment_weights
    if rows.weights is not None:
        own = rows.weights if own is None else own * rows.weights
    return loo_bandwidth(rows.dose, outcome, kernel, weights=own, degree=degree).bandwidth
