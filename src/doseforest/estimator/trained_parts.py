"""One part of a forest: an outcome model and its correction, also as the training rows see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.estimator.corrections.fitted_correction import AddedCurves, FittedCorrection
from doseforest.estimator.effect_forest import CorrectedOutcome, NoCorrection
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome


@dataclass(frozen=True, slots=True)
class NothingAdded:
    """The additions of no correction."""

    def curves(self, doses: FloatArray) -> FloatArray:
        """Nothing at any dose."""
        return np.zeros((1, len(doses)))

    def observed(self, dose: FloatArray) -> FloatArray:
        """Nothing at any dose."""
        return np.zeros(len(dose))


def no_correction() -> FittedCorrection:
    """Leave an outcome model as it is."""
    return FittedCorrection(NoCorrection(), NothingAdded(), ())


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPart:
    """A part with the rows it was trained on."""

    rows: TrainingRows
    outcome: CrossFittedOutcome
    fitted: FittedCorrection

    @property
    def corrected(self) -> CorrectedOutcome:
        """What answers for new units."""
        return CorrectedOutcome(self.outcome.full, self.fitted.correction)

    def curves_out_of_bag(self, doses: FloatArray) -> FloatArray:
        """Curves of the rows from models and trees that have not seen them."""
        added: AddedCurves = self.fitted.added
        return self.outcome.curves_out_of_fold(self.rows.X, doses) + added.curves(doses)

    def outcomes_out_of_bag(self, doses: FloatArray) -> FloatArray:
        """The same at doses of each row's own, (n_rows, n_doses)."""
        added = [self.fitted.added.observed(column) for column in doses.T]
        return self.outcome.curves_out_of_fold(self.rows.X, doses) + np.stack(added, axis=1)

    def observed_out_of_bag(self) -> FloatArray:
        """The same at each row's own dose."""
        return self.outcome.observed + self.fitted.added.observed(self.rows.dose.values)


def mean_weights(parts: tuple[TrainedPart, ...]) -> dict[str, float]:
    """Weights of the outcome models' members, averaged over the parts."""
    result = [part.outcome.weights for part in parts]
    return {name: sum(each[name] for each in result) / len(result) for name in result[0]}


def reports(parts: tuple[TrainedPart, ...]) -> tuple[dict[str, Any], ...]:
    """What each round of each part chose; with swapped halves, which half grew it."""
    return tuple(
        dict(report) if len(parts) == 1 else {"half": half, **report}
        for half, part in enumerate(parts)
        for report in part.fitted.report
    )


def out_of_bag(parts: tuple[TrainedPart, ...], doses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Curves of all rows at some doses, and predictions at their own.

    With swapped halves a row is answered by the part whose models and growth never saw it.
    """
    curves, observed = parts[0].curves_out_of_bag(doses), parts[0].observed_out_of_bag()
    for part in parts[1:]:
        assert part.rows.grows is not None  # several parts are halves
        unseen = ~part.rows.grows
        curves[unseen] = part.curves_out_of_bag(doses)[unseen]
        observed[unseen] = part.observed_out_of_bag()[unseen]
    return curves, observed


def added_out_of_bag(parts: tuple[TrainedPart, ...], doses: FloatArray) -> FloatArray:
    """What corrections add to the curves of all rows at some doses, (n_rows, n_doses)."""
    shape = parts[0].rows.n_rows, len(doses)
    added: FloatArray = np.broadcast_to(parts[0].fitted.added.curves(doses), shape).copy()
    for part in parts[1:]:
        assert part.rows.grows is not None  # several parts are halves
        unseen = ~part.rows.grows
        added[unseen] = np.broadcast_to(part.fitted.added.curves(doses), shape)[unseen]
    return added


def own_out_of_bag(parts: tuple[TrainedPart, ...], doses: FloatArray) -> FloatArray:
    """Outcomes of all rows at doses of each row's own, (n_rows, n_doses)."""
    outcomes = parts[0].outcomes_out_of_bag(doses)
    for part in parts[1:]:
        assert part.rows.grows is not None  # several parts are halves
        unseen = ~part.rows.grows
        outcomes[unseen] = part.outcomes_out_of_bag(doses)[unseen]
    return outcomes
