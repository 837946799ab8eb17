"""Average changes of the outcome when doses change: shifts and derivatives, doubly robust.

The score of a unit is sum_k c_k mu(d_k(T_i), X_i) + a(T_i, X_i) e_i: what the out-of-bag curves
say, and the residual at the observed dose times the representer of the average. Their mean is
root-n consistent where either the curves or the representer are right, and needs no dose that units
could not have had: only doses a little away from their own. Standard errors know how scores differ
between units, and by draws of folds what pairs of units add (`pairs`); curves are taken as given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.base.seeds import Purpose, derive
from doseforest.doses.boxes import distinct_doses, has_levels
from doseforest.estimator.assignment import KnownAssignment
from doseforest.estimator.averages.average_curves import average_of_units
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import TrainedPart, own_out_of_bag
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.weighting import conditional_density
from doseforest.inference.changes.dose_moves import (
    AtEdge,
    Contrast,
    shift_contrast,
    shift_of,
    slope_contrast,
)
from doseforest.inference.changes.pairs import Variance, pair_variance, summed
from doseforest.inference.changes.representers import FoldDraw, Representer, represent
from doseforest.inference.changes.riesz import fit_riesz_terms
from doseforest.inference.judgeable import require_out_of_bag
from doseforest.inference.robust_regression import clusters_of
from doseforest.nuisance.cross_fit import draw_folds
from doseforest.nuisance.treatment.density_registry import is_estimated
from doseforest.nuisance.treatment.encoded_densities import encoded_table
from doseforest.nuisance.treatment.treatment_support import dose_support

MOST_DRAWS, DRAWN_ROWS = 3, 100_000  # of folds; rows in all of them


@dataclass(frozen=True, slots=True, repr=False)
class AverageChange(Estimate):
    """The average change of the outcome, over the training population, when doses change.

    Or, of `shift_outcome`, the average outcome after the change.

    Attributes
    ----------
    value : float
        The change.
    standard_error : float
        Its standard error, by groups.
    degrees : float
        Degrees of freedom of the standard error.
    n : int
        Rows that it is an average over.
    held : float
        Share of the units that the ends of the range keep from moving in full.
    representer : str
        Where the weights of the residuals come from.

    Examples
    --------
    >>> AverageChange(2.0, 0.5, n=400, held=0.01, representer="regression").interval(0.9)
    (1.177..., 2.822...)
    """

    n: int
    held: float
    representer: str


@dataclass(frozen=True, slots=True, eq=False)
class ChangeScores:
    """Doubly robust scores of a contrast of doses."""

    values: FloatArray  # (n_rows,)
    contrast: Contrast
    representer: Representer
    rows: TrainingRows
    pair_variance: Variance  # of the average, beyond what single scores tell

    def of_outcomes(self) -> ChangeScores:
        """Scores of the outcome after the change: to what changes the outcome itself is added."""
        return replace(self, values=self.values + self.rows.y)

    def average(self) -> AverageChange:
        """Mean over the rows, with its standard error by groups."""
        rows = self.rows
        result = average_of_units(self.values[:, None], rows.weights, rows.ids)
        full = np.all([move.in_full(rows.dose.values) for move in self.contrast.moves], axis=0)
        of_units = float(result.standard_errors[0]) ** 2, float(result.degrees[0])
        variance, degrees = summed(of_units, self.pair_variance)
        return AverageChange(
            float(result.values[0]),
            float(np.sqrt(variance)),
            n=rows.n_rows,
            held=float(np.average(~full, weights=rows.weights)),
            representer=self.representer.source,
            degrees=degrees,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What scores of changes are made of, whatever the change."""

    parts: tuple[TrainedPart, ...]
    plan: FitPlan
    residual: FloatArray  # (n_rows,) outcome less the out-of-bag curve at the observed dose
    levels: tuple[float, ...]  # of a dose that has nothing else
    draws: tuple[FoldDraw, ...]  # of the regressions of representers
    known: KnownAssignment | None  # densities of all rows at any dose

    @property
    def rows(self) -> TrainingRows:
        """The training rows."""
        return self.parts[0].rows

    def scores(self, contrast: Contrast) -> ChangeScores:
        """Scores of one contrast."""
        rows = self.rows
        doses, shares = contrast.at(rows.dose.values)
        result = represent(
            self.draws,
            rows.dose.values,
            contrast,
            weights=rows.weights,
            known=self.known,
            X=rows.treatment_features,
            support=dose_support(rows.dose, rows.weights),
        )
        moved = (shares * own_out_of_bag(self.parts, doses)).sum(axis=1)
        pairs = pair_variance(
            result.draws, self.residual, rows.ids, rows.weights, n_folds=self.plan.n_folds
        )
        return ChangeScores(moved + result.values * self.residual, contrast, result, rows, pairs)

    def slopes(self) -> ChangeScores:
        """Scores of the slope of each unit's outcome at the dose that it has."""
        rows = self.rows
        return self.scores(slope_contrast(rows.dose.values, rows.weights, self.levels))

    def shifts(self, support: Any, delta: Any, factor: Any, at_edge: AtEdge) -> ChangeScores:
        """Scores of a shift of every unit's dose.

        Parameters
        ----------
        support : DoseRange
            Of the training doses.
        delta, factor, at_edge
            See `PopulationAverages.shift_effect`.
        """
        return self.scores(shift_contrast(shift_of(delta, factor, at_edge, support, self.levels)))


def prepare_changes(parts: tuple[TrainedPart, ...], plan: FitPlan) -> Changes:
    """Fit what the representers of any change share."""
    require_out_of_bag(plan, "A change of all doses")
    rows = parts[0].rows
    levels = dose_levels(rows)
    observed = own_out_of_bag(parts, rows.dose.values[:, None])[:, 0]
    table = encoded_table(
        rows.treatment_features,
        rows.dose,
        rows.category_counts(rows.treatment_columns),
        rows.weights,
        plan.seed,
    )
    n = n_draws(rows.n_rows)
    seeds = [derive(plan.seed, Purpose.CHANGE_DRAW, draw) for draw in range(n)]
    draws = tuple(
        FoldDraw(
            fit_riesz_terms(
                table,
                rows.dose.values,
                weights=rows.weights,
                groups=clusters_of(rows.ids),
                levels=bool(levels),
                seed=seed,
                n_threads=plan.n_threads,
            ),
            draw_folds(rows.ids, plan.n_folds, derive(seed, Purpose.FOLDS)),
        )
        for seed in seeds
    )
    return Changes(parts, plan, rows.y - observed, levels, draws, _known(rows, plan))


def n_draws(n_rows: int) -> int:
    """Draws of folds that representers are means over: fewer of many rows, which matter less.

    >>> [n_draws(n) for n in (1000, 40_000, 1_000_000)]
    [3, 2, 1]
    """
    return int(np.clip(DRAWN_ROWS // n_rows, 1, MOST_DRAWS))


def dose_levels(rows: TrainingRows) -> tuple[float, ...]:
    """Levels of a dose that has few of them, else none; a dose of several components is refused."""
    dose = rows.dose
    if dose.joint:
        raise ValueError(
            "The 'treatment' parameter of fit must have one component for changes of all doses. "
            f"Got {dose.n_components} components instead: compare doses by average_effect."
        )
    if not has_levels(rows.dose, rows.weights):
        return ()
    return tuple(distinct_doses(rows.dose, rows.weights)[0].values.tolist())


def _known(rows: TrainingRows, plan: FitPlan) -> KnownAssignment | None:
    """Densities of all rows at any dose, where the user has given them."""
    if is_estimated(plan.density):
        return None
    result = conditional_density(rows, plan)
    everything = (
        isinstance(result, KnownAssignment) and result.estimates is None and result.everywhere
    )
    return result if everything else None  # type: ignore[return-value]
