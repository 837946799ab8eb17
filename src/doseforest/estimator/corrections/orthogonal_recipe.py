"""The default correction as an object: residuals on residualised functions of the dose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

from sklearn.utils._param_validation import Interval

from doseforest.estimator.corrections.correction_recipe import (
    CorrectionRecipe,
    check_fields,
    take_sizes,
)
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.orthogonal import OrthogonalSettings, fit_orthogonal
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.treatment_means import treatment_means

if TYPE_CHECKING:
    from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome

RULES = {
    "n_rounds": [Interval(Integral, 1, 100, closed="both")],
    "leaf_sizes": ["array-like"],
}


@dataclass(frozen=True, slots=True)
class Orthogonal(CorrectionRecipe):
    """Forests of residuals on residualised functions of the dose; the default.

    Parameters
    ----------
    n_rounds : int, default=2
        Rounds of correction, each from the curves of the one before; one with ``honesty="swap"``.
        A third rarely adds anything; one halves the time of growth.
    leaf_sizes : sequence of ints, default=(5, 15, 50, 150)
        Smallest numbers of growth rows in a leaf; forests of all sizes are stacked by their risk
        out of bag. Fewer sizes leave more of the trees to each.

    Examples
    --------
    >>> Orthogonal(leaf_sizes=[50, 15])
    Orthogonal(n_rounds=2, leaf_sizes=(15, 50))
    """

    n_rounds: int = 2
    leaf_sizes: Sequence[int] = (5, 15, 50, 150)

    name: ClassVar[str] = "orthogonal"

    def __post_init__(self) -> None:
        take_sizes(self)
        check_fields(self, RULES)

    @property
    def n_sizes(self) -> int:
        """Leaf sizes that share the trees."""
        return len(self.leaf_sizes)

    def n_forests(self, plan: FitPlan) -> int:
        """Forests of all rounds."""
        return self._rounds(plan) * len(self.leaf_sizes)

    def fit(
        self, rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan
    ) -> FittedCorrection:
        """Correct an outcome model, see `fit_orthogonal`."""
        settings = OrthogonalSettings(
            leaf_sizes=tuple(self.leaf_sizes),
            n_rounds=self._rounds(plan),
            treatment_model=plan.treatment_model,
            growth=plan.growth,
            seed=plan.seed,
        )
        with plan.stopwatch("nuisances"):
            means = treatment_means(rows, outcome.folds, plan)
        fitted = fit_orthogonal(
            rows,
            outcome,
            plan.basis,
            settings,
            treatment_means=means.values,
            n_threads=plan.n_threads,
            stopwatch=plan.stopwatch,
            on_progress=plan.on_progress,
        )
        return replace(fitted, treatment_means=means.source)

    def _rounds(self, plan: FitPlan) -> int:
        # Growth of a second round would see outcomes of the filling half, through the first.
        return 1 if plan.swap else int(self.n_rounds)
