"""Treatment weights and densities, as the user asked for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.data.training_rows import TrainingRows
from doseforest.dtypes import FloatArray
from doseforest.estimation.plan import FitPlan
from doseforest.nuisance.category_encoding import fit_encoder
from doseforest.nuisance.cross_fitting import draw_folds
from doseforest.nuisance.densities.base import CrossFittedDensity, cross_fit_density
from doseforest.nuisance.densities.choose import AUTO, WeightChoice, choose_weights
from doseforest.nuisance.densities.encoded import in_own_numbers, named_weights, with_categories
from doseforest.nuisance.densities.known import Strata, known_weights
from doseforest.nuisance.densities.registry import DENSITIES
from doseforest.nuisance.densities.weights import TreatmentWeights

DEFAULT_DENSITY = "location_scale"


def weigh_treatments(rows: TrainingRows, residual: FloatArray, plan: FitPlan) -> WeightChoice:
    """Weights r of the training rows, as the user asked for them."""
    X, counts = rows.treatment_features, rows.category_counts(rows.treatment_columns)
    folds = draw_folds(rows.ids, plan.n_folds, plan.seed + 1)
    shared: dict[str, Any] = {
        "weights": rows.weights,
        "seed": plan.seed,
        "n_threads": plan.n_threads,
    }

    def named(name: str) -> TreatmentWeights:
        return named_weights(name, X, rows.dose, folds, counts, **shared)

    if not isinstance(plan.density, str):
        return WeightChoice(_given_weights(rows, plan), {}, correct=True, strength=1.0)
    if plan.density != "auto":
        return WeightChoice(named(plan.density), {}, correct=True, strength=1.0)
    table = X
    if counts:
        doses = np.reshape(rows.dose, (rows.n_rows, -1))
        targets = np.column_stack([residual, doses])
        _, table = fit_encoder(
            X, counts, targets, doses=doses, weights=rows.weights, seed=plan.seed
        )
    candidates = [named(name) for name in AUTO]
    return choose_weights(
        table, rows.dose, residual, folds, plan.grid, candidates=candidates, **shared
    )


def conditional_density(rows: TrainingRows, plan: FitPlan) -> CrossFittedDensity:
    """The density of the dose given the covariates that the published correction divides by."""
    density = plan.density
    if not isinstance(density, str):
        known = _given_weights(rows, plan).density
        if known is None:
            raise ValueError(
                "The 'density' parameter must be a function or the name of a density for "
                "correction='kernel', which needs it at every dose. Got values at the observed "
                "doses instead."
            )
        return known
    name = DEFAULT_DENSITY if density == "auto" else density
    return cross_fit_density(
        with_categories(DENSITIES[name](), rows.category_counts(rows.treatment_columns)),
        rows.treatment_features,
        rows.dose,
        draw_folds(rows.ids, plan.n_folds, plan.seed + 1),
        weights=rows.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )


def _given_weights(rows: TrainingRows, plan: FitPlan) -> TreatmentWeights:
    """Weights of a known density; what it says of each row, it says of the rows given to fit."""
    density = plan.density
    if isinstance(density, Strata):
        density = Strata(rows.of_given(density.labels))
    elif callable(density):
        columns = rows.treatment_columns.tolist()
        known = {k: rows.categories[own] for k, own in enumerate(columns) if own in rows.categories}
        density = in_own_numbers(density, known)
    else:
        density = rows.of_given(density)
    return known_weights(density, rows.treatment_features, rows.dose, weights=rows.weights)
