"""Treatment weights and densities, as the user asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from doseforest.data.training_rows import TrainingRows
from doseforest.dtypes import FloatArray
from doseforest.estimation.plan import FitPlan, dose_kernel
from doseforest.nuisance.cross_fitting import draw_folds
from doseforest.nuisance.densities.base import CrossFittedDensity, cross_fit_density
from doseforest.nuisance.densities.choose import WeightChoice, choose_weights
from doseforest.nuisance.densities.known import Strata, known_weights
from doseforest.nuisance.densities.registry import DENSITIES, WEIGHTS
from doseforest.nuisance.densities.support import DoseSupport, dose_support
from doseforest.treatments.grids import dose_sample

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
                "correction='kernel' and 'paper', which need it at every dose. Got values at the "
                "observed doses instead."
            )
        return known
    name = DEFAULT_DENSITY if density == "auto" else density
    return cross_fit_density(
        DENSITIES[name](),
        X,
        rows.dose,
        draw_folds(rows.ids, plan.n_folds, plan.seed + 1),
        weights=rows.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )


def density_of_growing_rows(
    rows: TrainingRows, plan: FitPlan
) -> Callable[[FloatArray], FloatArray]:
    """Densities pi-hat(t | X_i) of the rows that grow, from a fit to just these rows.

    A dose with point masses has a continuous density, as everywhere in the paper.
    """
    assert rows.grows is not None  # the honest split was drawn
    growing, density = rows.where(rows.grows), plan.density
    X = growing.treatment_features
    if isinstance(density, Strata):  # of which densities are estimated
        own = Strata(np.asarray(density.labels)[rows.grows])
        strata = conditional_density(growing, replace(plan, density=own)).full
        return lambda doses: strata.density(X, doses)
    if not isinstance(density, str):
        known = conditional_density(rows, plan).full
        return lambda doses: known.density(X, doses)
    learner = DENSITIES[DEFAULT_DENSITY if density == "auto" else density]()
    fitted = learner.fit(
        X,
        growing.dose,
        support=_support_without_masses(rows, growing, plan),
        weights=growing.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )
    return lambda doses: fitted.density(X, doses)


def _support_without_masses(
    rows: TrainingRows, growing: TrainingRows, plan: FitPlan
) -> DoseSupport:
    """[Tmin, Tmax] of all rows, or the levels of the dose."""
    support = dose_support(growing.dose, growing.weights)
    _, smooth = dose_kernel(rows, plan)
    if not smooth:
        return support
    ends = dose_sample(rows.dose, rows.weights).range()
    return DoseSupport(ends.low, ends.high, (), continuous=True, scale=support.scale)
