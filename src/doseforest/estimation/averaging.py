"""Average curves of a fitted forest: doubly robust, with weights chosen once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.corrections.averages import (
    AverageDoseResponse,
    AverageEffect,
    average_of_units,
    influence_of_units,
)
from doseforest.corrections.parts import TrainedPart, out_of_bag
from doseforest.dtypes import FloatArray
from doseforest.estimation.plan import FitPlan, dose_kernel
from doseforest.estimation.weighting import weigh_treatments
from doseforest.nuisance.densities.weights import TreatmentWeights
from doseforest.smoothing.bandwidths import loo_bandwidth
from doseforest.smoothing.kernels import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Averager:
    """What averages are made of, apart from the curves."""

    parts: tuple[TrainedPart, ...]
    residual: FloatArray  # (n_rows,) outcome less the out-of-bag curve at the observed dose
    weights: TreatmentWeights
    strength: float  # share of the correction by residuals
    kernel: str | Kernel
    bandwidth: float

    def average_curve(self, doses: FloatArray) -> AverageDoseResponse:
        """Average outcome at each dose with standard errors."""
        said = self._said(doses)
        return AverageDoseResponse(doses, *self._averaged(said))

    def average_effect(self, dose: float, baseline: float) -> AverageEffect:
        """Average outcome at a dose less that at the baseline."""
        said = self._said(np.array([baseline, dose]))
        value, error = self._averaged(said[:, 1:] - said[:, :1])
        return AverageEffect(float(value[0]), float(error[0]))

    def _said(self, doses: FloatArray) -> FloatArray:
        """What each row says about the average outcome at each dose, (n_rows, n_doses)."""
        rows = self.parts[0].rows
        curves, _ = out_of_bag(self.parts, doses)
        return influence_of_units(
            curves,
            rows.dose,
            self.strength * self.residual,
            doses,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            treatment_weights=self.weights.r,
            weights=rows.weights,
        )

    def _averaged(self, said: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = self.parts[0].rows
        return average_of_units(said, rows.weights, rows.ids)


def prepare_averages(parts: tuple[TrainedPart, ...], plan: FitPlan) -> Averager:
    """Choose treatment weights and a bandwidth for what the curves leave of the outcomes."""
    rows = parts[0].rows
    _, observed = out_of_bag(parts, plan.grid[:1])
    residual = rows.y - observed
    choice = weigh_treatments(rows, residual, plan)
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = 1.0
    if smooth:
        own = choice.chosen.r if rows.weights is None else choice.chosen.r * rows.weights
        bandwidth = loo_bandwidth(rows.dose, residual, kernel, weights=own).bandwidth
    return Averager(parts, residual, choice.chosen, choice.strength, kernel, bandwidth)
