"""Average curves of a fitted forest: doubly robust, with weights chosen once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate, JointEstimates
from doseforest.doses.bases.dose_basis import basis_levels
from doseforest.doses.boxes import distinct_doses
from doseforest.doses.dose_values import Doses
from doseforest.doses.levels import DoseLevels
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.estimator.averages.average_curves import (
    AverageDoseResponse,
    average_of_units,
    centred_influence,
    residual_influence,
)
from doseforest.estimator.chosen_bandwidths import choose_bandwidth
from doseforest.estimator.fit_plan import FitPlan, dose_kernel
from doseforest.estimator.trained_parts import TrainedPart, out_of_bag
from doseforest.estimator.weighting import weigh_treatments
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights


@dataclass(frozen=True, slots=True, eq=False)
class Averager:
    """What averages are made of, apart from the curves."""

    parts: tuple[TrainedPart, ...]
    residual: FloatArray  # (n_rows,) outcome less the out-of-bag curve at the observed dose
    weights: TreatmentWeights
    strength: float  # share of the correction by residuals
    kernel: str | Kernel
    bandwidth: float
    error_bandwidth: float  # of standard errors
    levels: DoseLevels  # between which curves are interpolated
    matched: DoseLevels  # at which residuals speak, where the kernel is exact

    def average_curve(self, doses: Doses, *, bias_correction: bool = False) -> AverageDoseResponse:
        """Average outcome at each dose with standard errors.

        Without bias correction the values are those of least estimated error: share and bandwidth
        of the correction by residuals trade bias for noise. With it the correction is made in
        full, by local parabolas with a bandwidth that is at most the rule of thumb's; doses of
        several components have planes still, and levels need no smoothing.
        """
        smooth = self.kernel != "exact"
        bandwidth = self._narrow if bias_correction else self.bandwidth
        result = self._averaged(doses.values, np.eye(len(doses)), bias_correction)
        return AverageDoseResponse(
            values=result.values,
            standard_errors=result.standard_errors,
            covariance=result.covariance,
            degrees=result.degrees,
            doses=doses.plain,
            bandwidth=bandwidth if smooth else None,
            method="bias_corrected" if bias_correction else "least_error",
        )

    def average_effect(
        self, dose: Any, baseline: Any, *, bias_correction: bool = False
    ) -> Estimate:
        """Average outcome at a dose less that at the baseline."""
        both = np.append(baseline, dose)
        result = self._averaged(both, np.array([[-1.0], [1.0]]), bias_correction)
        return result.at(0)

    def scores(self, doses: FloatArray) -> FloatArray:
        """Doubly robust scores of the units, (n_rows, n_doses).

        Out-of-bag curves plus what the unit's own residual says, in full: given the covariates
        their mean is mu(t, x) where the curves or the weights are right.
        """
        return self._curves(doses) + self._said(doses, degree=1)

    @property
    def _narrow(self) -> float:
        """The bandwidth of a curve that is not known."""
        return min(self.bandwidth, self.error_bandwidth)

    def _averaged(
        self, doses: FloatArray, contrasts: FloatArray, bias_correction: bool
    ) -> JointEstimates:
        """Contrasts (n_doses, k) of the average curve with their errors.

        The noise of the outcomes is in the curves too, however little of the correction is made
        and however wide its bandwidth: standard errors are those of the whole correction with the
        bandwidth of a curve that is not known.
        """
        rows = self.parts[0].rows
        curves = self._curves(doses)
        scores = curves + self._said(doses, degree=2 if bias_correction else 1)
        result = average_of_units(scores @ contrasts, rows.weights, rows.ids)
        if bias_correction:
            return result
        chosen = curves + self.strength * self._corrections(doses)
        return replace(result, values=np.average(chosen @ contrasts, axis=0, weights=rows.weights))

    def _curves(self, doses: FloatArray) -> FloatArray:
        """Out-of-bag curves of the rows, (n_rows, n_doses)."""
        return self.levels.through(lambda asked: out_of_bag(self.parts, asked)[0], doses)

    def _said(self, doses: FloatArray, degree: int) -> FloatArray:
        """What residuals add at each dose, in full, with each unit's part in its error.

        Between levels it is interpolated, unit by unit: errors so are those of the same
        combination of the levels.
        """
        return self.matched.through(partial(self._said_at, degree=degree), doses)

    def _said_at(self, doses: FloatArray, degree: int) -> FloatArray:
        rows = self.parts[0].rows
        mean, said = centred_influence(
            rows.dose.values,
            self.residual,
            doses,
            kernel=self.kernel,
            bandwidth=self._narrow,
            treatment_weights=self.weights.r,
            weights=rows.weights,
            degree=degree,
        )
        return mean + said

    def _corrections(self, doses: FloatArray) -> FloatArray:
        return self.matched.through(self._corrections_at, doses)

    def _corrections_at(self, doses: FloatArray) -> FloatArray:
        rows = self.parts[0].rows
        return residual_influence(
            rows.dose.values,
            self.residual,
            doses,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            treatment_weights=self.weights.r,
            weights=rows.weights,
        )


def prepare_averages(parts: tuple[TrainedPart, ...], plan: FitPlan) -> Averager:
    """Choose treatment weights and a bandwidth for what the curves leave of the outcomes."""
    rows = parts[0].rows
    _, observed = out_of_bag(parts, plan.grid[:1])
    residual = rows.y - observed
    choice = weigh_treatments(rows, residual, plan)
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = usual = 1.0
    if smooth:
        r = choice.chosen.r
        bandwidth = choose_bandwidth(plan.average_bandwidth, rows, residual, kernel, r)
        usual = choose_bandwidth("rule_of_thumb", rows, residual, kernel, r)
    levels = matched = DoseLevels()
    if not rows.dose.joint:
        levels = DoseLevels(*basis_levels(plan.basis))
        if kernel == "exact":
            matched = DoseLevels(tuple(distinct_doses(rows.dose, rows.weights)[0].values.tolist()))
    return Averager(
        parts=parts,
        residual=residual,
        weights=choice.chosen,
        strength=choice.strength,
        kernel=kernel,
        bandwidth=bandwidth,
        error_bandwidth=usual,
        levels=levels,
        matched=matched,
    )
