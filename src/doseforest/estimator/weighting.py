"""Treatment weights and densities, as the user asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.checks import as_labels
from doseforest.doses.grids import dose_sample
from doseforest.estimator.assignment import known_weights
from doseforest.estimator.fit_plan import FitPlan, dose_kernel, fold_numbers
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.encoding.category_encoding import fit_encoder
from doseforest.nuisance.treatment.chained import any_learner
from doseforest.nuisance.treatment.conditional_density import RowDensities, cross_fit_density
from doseforest.nuisance.treatment.density_registry import DENSITIES, density_learner, is_estimated
from doseforest.nuisance.treatment.encoded_densities import (
    encoded_table,
    in_own_numbers,
    named_weights,
    with_categories,
)
from doseforest.nuisance.treatment.known_densities import Strata
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights
from doseforest.nuisance.treatment.weight_choice import AUTO, WeightChoice, choose_weights

DEFAULT_DENSITY = "location_scale"


def weigh_treatments(rows: TrainingRows, residual: FloatArray, plan: FitPlan) -> WeightChoice:
    """Weights r of the training rows, as the user asked for them."""
    X, counts = rows.treatment_features, rows.category_counts(rows.treatment_columns)
    folds = fold_numbers(rows.ids, plan)
    shared: dict[str, Any] = {
        "weights": rows.weights,
        "seed": plan.seed,
        "n_threads": plan.n_threads,
    }

    def named(asked: Any) -> TreatmentWeights:
        return named_weights(asked, X, rows.dose.values, folds, counts, **shared)

    if not is_estimated(plan.density):
        return WeightChoice(_known(rows, plan), {}, correct=True, strength=1.0)
    if not _is_auto(plan.density):
        return WeightChoice(named(plan.density), {}, correct=True, strength=1.0)
    table = X
    if counts:
        doses = rows.dose.table
        targets = np.column_stack([residual, doses])
        _, table = fit_encoder(
            X, counts, targets, doses=doses, weights=rows.weights, seed=plan.seed
        )
    candidates = [named(name) for name in AUTO]
    return choose_weights(
        table, rows.dose.values, residual, folds, plan.grid, candidates=candidates, **shared
    )


def _is_auto(density: Any) -> bool:
    return isinstance(density, str) and density == "auto"


def conditional_density(rows: TrainingRows, plan: FitPlan) -> RowDensities:
    """The density of the dose given the covariates that the published correction divides by."""
    density = plan.density
    if not is_estimated(density):
        known = _known(rows, plan).density
        assert known is not None  # what is known has a density
        return known
    learner = density_learner(DEFAULT_DENSITY if _is_auto(density) else density)
    counts = rows.category_counts(rows.treatment_columns)
    return cross_fit_density(
        any_learner(with_categories(learner, counts), rows.dose),
        rows.treatment_features,
        rows.dose.values,
        fold_numbers(rows.ids, plan),
        weights=rows.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )


def _known(rows: TrainingRows, plan: FitPlan) -> TreatmentWeights:
    """Weights of a density that is known, of some rows at least; others' is estimated."""
    X, counts = rows.treatment_features, rows.category_counts(rows.treatment_columns)
    return known_weights(
        given_density(rows, plan.density),
        X,
        rows.dose.values,
        table=encoded_table(X, rows.dose, counts, rows.weights, plan.seed),
        ids=rows.ids,
        n_folds=plan.n_folds,
        learner=DENSITIES[DEFAULT_DENSITY](),
        weights=rows.weights,
        seed=derive(plan.seed, Purpose.KNOWN_DENSITY),
        n_threads=plan.n_threads,
    )


def given_density(rows: TrainingRows, density: Any) -> Any:
    """A known density of the training rows, of what a user gave for the rows given to fit.

    A function is told categories as its user knows them.
    """
    if isinstance(density, Strata):
        return Strata(rows.of_given(as_labels(density.labels, "labels")))
    if callable(density):
        columns = rows.treatment_columns.tolist()
        known = {
            k: rows.categories[column]
            for k, column in enumerate(columns)
            if column in rows.categories
        }
        return in_own_numbers(density, known)
    return rows.of_given(density)


def density_of_growing_rows(
    rows: TrainingRows, plan: FitPlan
) -> Callable[[FloatArray], FloatArray]:
    """Densities pi-hat(t | X_i) of the rows that grow, from a fit to just these rows.

    A dose with point masses has a continuous density, as everywhere in the paper.
    """
    assert rows.grows is not None  # the honest split was drawn
    growing, density = rows.where(rows.grows), plan.density
    X = growing.treatment_features
    if isinstance(density, Strata):  # within which densities are estimated
        labels = given_density(rows, density).labels[rows.grows]
        strata = conditional_density(growing, replace(plan, density=Strata(labels)))
        return lambda doses: strata.out_of_fold(X, doses)
    if not is_estimated(density):
        known = conditional_density(rows, plan)
        return lambda doses: known.out_of_fold(rows.treatment_features, doses)[rows.grows]
    learner = density_learner(DEFAULT_DENSITY if _is_auto(density) else density)
    counts = growing.category_counts(growing.treatment_columns)
    fitted = with_categories(learner, counts).fit(
        X,
        growing.dose.values,
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
