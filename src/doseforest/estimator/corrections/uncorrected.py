"""No correction as an object: the outcome model alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from doseforest.estimator.corrections.correction_recipe import CorrectionRecipe
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import no_correction
from doseforest.estimator.training_rows import TrainingRows

if TYPE_CHECKING:
    from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome


@dataclass(frozen=True, slots=True)
class Uncorrected(CorrectionRecipe):
    """The curves of the outcome model as they are.

    Examples
    --------
    >>> Uncorrected().name
    'none'
    """

    name: ClassVar[str] = "none"

    def n_forests(self, plan: FitPlan) -> int:
        """None."""
        return 0

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Leave the outcome model as it is."""
        return no_correction()
