"""The parts of a forest: outcome models cross-fitted, then corrected."""

from __future__ import annotations

from doseforest.estimator.fit_plan import FitPlan, draw_parts
from doseforest.estimator.trained_parts import TrainedPart
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome


def fit_parts(rows: TrainingRows, plan: FitPlan) -> tuple[TrainedPart, ...]:
    """Fit every part of a forest, on rows that are binned once for all of them."""
    if not plan.correction.splits_sample:  # else trees have a sample of their own
        rows = rows.binned(plan.max_bins, seed=plan.seed, n_threads=plan.n_threads)
    parts = []
    for drawn, folds in draw_parts(rows, plan):
        with plan.stopwatch("nuisances"):
            outcome = cross_fit_outcome(
                plan.fit_outcome,
                drawn.X,
                drawn.dose.values,
                drawn.y,
                folds,
                weights=drawn.weights,
                counts=drawn.category_counts(),
                seed=plan.seed,
                n_threads=plan.n_threads,
                on_progress=plan.on_progress,
            )
        parts.append(TrainedPart(drawn, outcome, plan.correction.fit(drawn, outcome, plan)))
    return tuple(parts)


def n_steps(plan: FitPlan) -> int:
    """Steps that a fit tells of its progress."""
    fits = 1 + plan.n_folds * plan.n_repeats
    return (2 if plan.swap else 1) * (fits + plan.correction.n_forests(plan))
