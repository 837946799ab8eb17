"""Treatment weights and densities, as the user asked for them."""

from __future__ import annotations

from doseforest.data.training_rows import TrainingRows
from doseforest.dtypes import FloatArray
from doseforest.estimation.plan import FitPlan
from doseforest.nuisance.cross_fitting import draw_folds
from doseforest.nuisance.densities.base import CrossFittedDensity, cross_fit_density
from doseforest.nuisance.densities.chained import any_learner
from doseforest.nuisance.densities.choose import WeightChoice, choose_weights
from doseforest.nuisance.densities.known import known_weights
from doseforest.nuisance.densities.registry import DENSITIES, WEIGHTS

DEFAULT_DENSITY = "location_scale"


def weigh_treatments(rows: TrainingRows, residual: FloatArray, plan: FitPlan) -> WeightChoice:
    """Weights r of the training rows, as the user asked for them."""
    folds = draw_folds(rows.ids, plan.n_folds, plan.seed + 1)
    X, density = rows.treatment_features, plan.density
    if isinstance(density, str) and density == "auto":
        return choose_weights(
            X,
            rows.dose,
            residual,
            folds,
            plan.grid,
            weights=rows.weights,
            seed=plan.seed,
            n_threads=plan.n_threads,
        )
    if isinstance(density, str):
        chosen = WEIGHTS[density](
            X, rows.dose, folds, weights=rows.weights, seed=plan.seed, n_threads=plan.n_threads
        )
    else:
        chosen = known_weights(density, X, rows.dose, weights=rows.weights)
    return WeightChoice(chosen, {}, correct=True, strength=1.0)


def conditional_density(rows: TrainingRows, plan: FitPlan) -> CrossFittedDensity:
    """The density of the dose given the covariates that the published correction divides by."""
    X, density = rows.treatment_features, plan.density
    if not isinstance(density, str):
        known = known_weights(density, X, rows.dose, weights=rows.weights).density
        if known is None:
            raise ValueError(
                "The 'density' parameter must be a function or the name of a density for "
                "correction='kernel', which needs it at every dose. Got values at the observed "
                "doses instead."
            )
        return known
    name = DEFAULT_DENSITY if density == "auto" else density
    return cross_fit_density(
        any_learner(DENSITIES[name](), rows.dose),
        X,
        rows.dose,
        draw_folds(rows.ids, plan.n_folds, plan.seed + 1),
        weights=rows.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )
