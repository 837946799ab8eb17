"""From the parameters of a forest to the plan of its fit."""

from __future__ import annotations

from typing import Any

from sklearn.utils import check_random_state

from doseforest.base.machine import thread_count
from doseforest.doses.dose_values import Doses
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.estimator.corrections.correction_registry import recipe_of
from doseforest.estimator.fit_plan import FitPlan, fit_basis
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.encoded_models import EncodedFit
from doseforest.nuisance.outcome.outcome_stack import member_fit


def plan_fit(forest: Any, rows: TrainingRows, grid: Doses, baseline: Doses) -> FitPlan:
    """The plan of a fit by the parameters of a `GeneralizedCausalForest`, which are checked."""
    recipe = recipe_of(forest.correction)
    fit_outcome = member_fit(forest.outcome_model, n_rows=rows.n_rows)
    counts = rows.category_counts()
    n_threads = thread_count(forest.n_jobs)
    return FitPlan(
        fit_outcome=EncodedFit(fit_outcome, counts) if counts else fit_outcome,
        basis=fit_basis(forest.basis, rows),
        grid=grid.values,
        density=forest.density,
        kernel=forest.kernel,
        average_bandwidth=forest.average_bandwidth,
        correction=recipe,
        treatment_model=forest.treatment_model,
        growth=GrowthSettings(
            n_trees=max(1, round(forest.n_trees / recipe.n_sizes)),
            sample_fraction=float(forest.sample_fraction),
            honesty="none" if forest.honesty == "swap" else forest.honesty,
            honesty_fraction=float(forest.honesty_fraction),
            mtry=forest.mtry,
            n_threads=n_threads,
            memory_limit=None if forest.memory_limit is None else int(forest.memory_limit),
        ),
        max_bins=int(forest.max_bins),
        n_folds=int(forest.n_folds),
        n_repeats=int(forest.n_repeats),
        swap=forest.honesty == "swap",
        alpha=float(forest.honesty_fraction),
        baseline=baseline.element,
        seed=int(check_random_state(forest.random_state).randint(0, 2**31 - 1)),
        n_threads=n_threads,
    )
