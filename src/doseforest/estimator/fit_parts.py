"""The parts of a forest: outcome models cross-fitted, then corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from doseforest.base.dtypes import FloatArray
from doseforest.estimator.chosen_bandwidths import choose_bandwidth
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_growth import KernelSettings
from doseforest.estimator.corrections.orthogonal import OrthogonalSettings, fit_orthogonal
from doseforest.estimator.corrections.paper_algorithm import PaperSettings, fit_paper
from doseforest.estimator.corrections.published_kernels import fit_published
from doseforest.estimator.corrections.stabilized_kernels import fit_stabilized
from doseforest.estimator.fit_plan import FitPlan, dose_kernel, draw_parts
from doseforest.estimator.trained_parts import TrainedPart, no_correction
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.treatment_means import treatment_means
from doseforest.estimator.weighting import (
    conditional_density,
    density_of_growing_rows,
    weigh_treatments,
)
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome, cross_fit_outcome

CorrectionFit = Callable[[TrainingRows, CrossFittedOutcome, FitPlan], FittedCorrection]


def fit_parts(rows: TrainingRows, correction: str, plan: FitPlan) -> tuple[TrainedPart, ...]:
    """Fit every part of a forest, on rows that are binned once for all of them."""
    correct = CORRECTIONS[correction].fit
    if plan.paper is None:  # whose trees have a sample of their own
        rows = rows.binned(plan.max_bins, seed=plan.seed, n_threads=plan.n_threads)
    parts = []
    for drawn, folds in draw_parts(rows, plan):
        with plan.stopwatch("nuisances"):
            outcome = cross_fit_outcome(
                plan.fit_outcome,
                drawn.X,
                drawn.dose,
                drawn.y,
                folds,
                weights=drawn.weights,
                seed=plan.seed,
                n_threads=plan.n_threads,
                on_progress=plan.on_progress,
            )
        parts.append(TrainedPart(drawn, outcome, correct(drawn, outcome, plan)))
    return tuple(parts)


def _orthogonal(rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan) -> FittedCorrection:
    settings = OrthogonalSettings(
        leaf_sizes=plan.leaf_sizes,
        n_rounds=plan.n_rounds,
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


def _none(rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan) -> FittedCorrection:
    return no_correction()


def _stabilized(rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan) -> FittedCorrection:
    with plan.stopwatch("nuisances"):
        weights = weigh_treatments(rows, rows.y - outcome.observed, plan).chosen.r
    arguments = _kernel_arguments(rows, rows.y - outcome.observed, plan)
    return fit_stabilized(rows, outcome, plan.grid, weights, **arguments)


def _published(rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan) -> FittedCorrection:
    with plan.stopwatch("nuisances"):
        density = conditional_density(rows, plan)
        on_grid = density.out_of_fold(rows.treatment_features, plan.grid)
    # Its weights are local constants of outcomes: mu-hat at t is compared with what T_i brought.
    arguments = _kernel_arguments(rows, rows.y, plan, degree=0)
    return fit_published(rows, outcome, plan.grid, on_grid, **arguments)


def _paper(rows: TrainingRows, outcome: CrossFittedOutcome, plan: FitPlan) -> FittedCorrection:
    assert rows.grows is not None  # drawn by the plan
    assert plan.paper is not None
    kernel, smooth = dose_kernel(rows, plan)
    growing = rows.where(rows.grows)
    asked = plan.bandwidth if smooth and plan.bandwidth is not None else "rule_of_thumb"
    with plan.stopwatch("nuisances"):
        density = density_of_growing_rows(rows, plan)
    settings = PaperSettings(
        baseline=plan.paper.baseline,
        bandwidth=choose_bandwidth(asked, growing, growing.y, kernel, degree=0),
        kernel=kernel,
        criterion=plan.paper.criterion,
        distance=plan.distance,
        zeta=plan.paper.zeta,
        min_info_gain=plan.paper.min_info_gain,
        leaf_size=plan.leaf_sizes[0],
        growth=plan.growth,
        max_bins=plan.max_bins,
        seed=plan.seed,
    )
    return fit_paper(
        rows,
        outcome,
        plan.grid,
        density,
        settings,
        n_threads=plan.n_threads,
        stopwatch=plan.stopwatch,
        on_progress=plan.on_progress,
    )


def _kernel_arguments(
    rows: TrainingRows, smoothed: FloatArray, plan: FitPlan, degree: int = 1
) -> dict[str, Any]:
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = None
    if smooth and plan.bandwidth is not None:
        bandwidth = choose_bandwidth(plan.bandwidth, rows, smoothed, kernel, degree=degree)
    settings = KernelSettings(
        kernel=kernel,
        bandwidth=bandwidth,
        leaf_sizes=plan.leaf_sizes,
        distance=plan.distance,
        growth=plan.growth,
        seed=plan.seed,
    )
    return {
        "settings": settings,
        "n_threads": plan.n_threads,
        "stopwatch": plan.stopwatch,
        "on_progress": plan.on_progress,
    }


@dataclass(frozen=True, slots=True)
class CorrectionKind:
    """One way to correct an outcome model."""

    fit: CorrectionFit
    leaf_sizes: tuple[int, ...]  # by default
    n_forests: Callable[[FitPlan], int]  # grown, each a step of progress

    def n_sizes(self, leaf_sizes: tuple[int, ...]) -> int:
        """Leaf sizes that share the trees."""
        return 1 if self.fit is _published else len(leaf_sizes)


CORRECTIONS: dict[str, CorrectionKind] = {
    "orthogonal": CorrectionKind(
        _orthogonal, (5, 15, 50, 150), lambda plan: plan.n_rounds * len(plan.leaf_sizes)
    ),
    "stabilized": CorrectionKind(_stabilized, (20, 60, 200), lambda plan: len(plan.leaf_sizes)),
    "kernel": CorrectionKind(_published, (20,), lambda plan: 1),
    "paper": CorrectionKind(_paper, (5,), lambda plan: 1),
    "none": CorrectionKind(_none, (20,), lambda plan: 0),
}


def n_steps(correction: str, plan: FitPlan) -> int:
    """Steps that a fit tells of its progress."""
    fits = 1 + plan.n_folds * plan.n_repeats
    return (2 if plan.swap else 1) * (fits + CORRECTIONS[correction].n_forests(plan))
