"""What a fit is going to do, decided before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.base.seeds import Purpose, derive
from doseforest.base.stopwatch import Stopwatch
from doseforest.doses.bases.arms import has_arms
from doseforest.doses.bases.dose_basis import BASES, Arms, DoseBasis, FittedBasis, Tensor
from doseforest.doses.bases.tensor import component_basis
from doseforest.doses.boxes import has_levels
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import FEW_LEVELS, dose_sample
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.corrections.correction_recipe import CorrectionRecipe
from doseforest.estimator.honest_split import draw_honest_split
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.cross_fit import HELD_OUT, draw_folds, split_of
from doseforest.nuisance.outcome.cross_fitted_outcome import MemberFit


def tell_nobody(done: int) -> None:
    """Take word of progress and do nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FitPlan:
    """How the parts of a forest are fitted."""

    fit_outcome: MemberFit
    basis: FittedBasis
    grid: DoseArray  # (n_doses,) doses of the kernel corrections
    density: Any  # as the user gave it
    kernel: str | Kernel
    average_bandwidth: str | float
    correction: CorrectionRecipe
    treatment_model: Any
    growth: GrowthSettings  # what all forests share
    max_bins: int  # of a number
    n_folds: int
    n_repeats: int
    swap: bool
    alpha: float  # share of rows that grow, where the correction splits the sample once
    baseline: Any  # a dose
    seed: int
    n_threads: int
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    on_progress: Callable[[int], None] = tell_nobody

    def telling(self, on_progress: Callable[[int], None]) -> FitPlan:
        """Return the same plan, with someone to tell of its steps."""
        return replace(self, on_progress=on_progress)


def fit_basis(recipe: str | DoseBasis, rows: TrainingRows) -> FittedBasis:
    """Fit the dose functions; "auto" takes indicators of few levels, else polynomials and masses.

    Examples
    --------
    >>> from doseforest.estimator.training_rows import check_training
    >>> rows = check_training(np.zeros((40, 1)), np.zeros(40), np.arange(40) % 3)
    >>> fit_basis("auto", rows)
    IndicatorBasis(levels=(0.0, 1.0, 2.0), reference=0.0)
    """
    chosen: DoseBasis
    if not isinstance(recipe, str):
        chosen = recipe
    elif rows.dose.joint:
        chosen = _joint_basis(recipe, rows.dose)
    elif recipe == "auto":
        chosen = component_basis(rows.dose.values, rows.weights)
    else:
        chosen = BASES[recipe]()
    return chosen.fit(rows.dose.values, rows.weights)


def _joint_basis(recipe: str, dose: Doses) -> DoseBasis:
    """Arms with doses of their own, or products of functions of each component."""
    if recipe == "arms" or (recipe == "auto" and has_arms(dose)):
        return Arms()
    if recipe in ("auto", "tensor"):
        return Tensor()
    return Tensor(tuple(BASES[recipe]() for _ in range(dose.n_components)))


def dose_kernel(rows: TrainingRows, plan: FitPlan) -> tuple[str | Kernel, bool]:
    """The kernel over doses, and whether it smooths: a dose of few levels is matched exactly."""
    smooth = not has_levels(rows.dose, rows.weights) and plan.kernel != "exact"
    return (plan.kernel if smooth else "exact"), smooth


def check_levels(rows: TrainingRows, folds: IntArray) -> None:
    """Raise ValueError where a model without some fold would never see a level of the dose."""
    for column in rows.dose.columns:
        _check_component(column, rows.weights, folds)


def _check_component(dose: FloatArray, weights: FloatArray | None, folds: IntArray) -> None:
    levels, _ = dose_sample(dose, weights).levels()
    if len(levels) > FEW_LEVELS:
        return
    for fold in range(int(folds.max()) + 1):
        missing = np.setdiff1d(levels, dose[split_of(folds, fold).kept])
        if len(missing):
            held = int((dose == missing[0]).sum())
            raise ValueError(
                "The 'treatment' parameter must have every level in the rows outside each of the "
                f"'n_folds' folds. Got level {missing[0]:g} in {held} row(s), all in fold {fold}, "
                "instead: leave that level out or merge it with its neighbour."
            )


def draw_parts(rows: TrainingRows, plan: FitPlan) -> list[tuple[TrainingRows, IntArray]]:
    """Rows and folds (n_repeats, n_rows) of each part: one, or two with halves swapped."""
    if plan.correction.splits_sample:
        grows = draw_honest_split(rows.ids, plan.alpha, derive(plan.seed, Purpose.HALVES))
        return [(rows.growing_on(grows), _folds(rows, plan, grows))]
    if not plan.swap:
        return [(rows, _folds(rows, plan, np.ones(rows.n_rows, bool)))]
    halves = draw_folds(rows.ids, 2, derive(plan.seed, Purpose.HALVES))
    return [
        (rows.growing_on(halves == half), _folds(rows, plan, halves == half)) for half in (0, 1)
    ]


def _folds(rows: TrainingRows, plan: FitPlan, kept: NDArray[np.bool_]) -> IntArray:
    """Folds of the kept rows, drawn once for every repeat; the others are held out."""
    drawn = np.full((plan.n_repeats, rows.n_rows), HELD_OUT, np.int64)
    for repeat in range(plan.n_repeats):
        drawn[repeat, kept] = fold_numbers(rows.ids[kept], plan, repeat)
        check_levels(rows, drawn[repeat])
    return drawn


def fold_numbers(ids: IntArray, plan: FitPlan, repeat: int = 0) -> IntArray:
    """Fold of each row in a repeat of the plan's cross-fitting, (n_rows,)."""
    return draw_folds(ids, plan.n_folds, derive(plan.seed, Purpose.FOLDS, repeat))
