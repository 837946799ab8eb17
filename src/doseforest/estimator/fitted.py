"""What a forest keeps of its fit: parts with their rows, the plan, the model, and the overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.late import late
from doseforest.estimator.averages.averaging import Averager, prepare_averages
from doseforest.estimator.effect_forest import EffectForest
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import TrainedPart
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.unit_support import supported
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity
from doseforest.nuisance.treatment.treatment_support import DoseSupport


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit with its training rows, which averages, tests and pictures rest on."""

    parts: tuple[TrainedPart, ...]  # one; two where halves were swapped
    plan: FitPlan
    model: EffectForest  # what answers for new units
    overlap: ConditionalDensity  # of the dose given the covariates, fitted to all rows
    grounds: tuple[DoseSupport, ...]  # observed doses of each component: range and point masses
    labels: tuple[tuple[str, ...], str]  # of the components of the dose, and of the outcome

    @property
    def rows(self) -> TrainingRows:
        """The training rows."""
        return self.parts[0].rows

    @cached_property
    def averager(self) -> Averager:
        """What averages are made of; treatment weights are chosen when it is first asked for."""
        return prepare_averages(self.parts, self.plan)

    @cached_property
    def changes(self) -> Any:
        """What effects of shifts are made of, `doseforest.inference.changes.dose_changes`."""
        return late("doseforest.inference.changes.dose_changes:prepare_changes")(
            self.parts, self.plan
        )

    def supported(self, X: FloatArray, doses: DoseArray) -> NDArray[np.bool_]:
        """Whether units could have had doses, (n_units, n_doses).

        Parameters
        ----------
        X : array of shape (n_units, n_features)
            Checked, categories as codes.
        doses : array of shape (n_doses,) or (n_units, n_doses)
        """
        return supported(self.overlap, X[:, self.rows.treatment_columns], doses, *self.grounds)
