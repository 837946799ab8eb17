"""What can be refused before anything is fitted, beyond the range of single parameters."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from doseforest.doses.boxes import has_levels
from doseforest.estimator.assignment import check_kinds
from doseforest.estimator.corrections.correction_registry import recipe_of
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.weighting import given_density
from doseforest.nuisance.treatment.density_registry import DENSITIES, is_estimated
from doseforest.nuisance.treatment.known_densities import Strata, known_rows


def check_given(treatment: Any, method: str) -> None:
    """Raise ValueError, with the cure, where the treatment did not arrive."""
    if treatment is None:
        raise ValueError(
            f"The 'treatment' parameter of {method} must be given: the observed dose of each row. "
            "Inside a Pipeline, a search or a cross-validation, call "
            "sklearn.set_config(enable_metadata_routing=True) first and pass treatment=… (or "
            "params={'treatment': …})."
        )


def check_plan(rows: TrainingRows, forest: Any) -> None:
    """Raise ValueError where parameters of a forest do not fit its rows or each other."""
    _check_groups(rows, forest)
    _check_density(rows, forest)
    recipe_of(forest.correction).check(rows, forest)
    n_features = len(rows.effect_columns)
    if isinstance(forest.mtry, Integral) and int(forest.mtry) > n_features:
        raise ValueError(
            "The 'mtry' parameter of GeneralizedCausalForest must be at most the number of "
            f"features that trees split on ({n_features}). Got {forest.mtry} instead."
        )
    model = forest.treatment_model
    weighted = rows.weights is not None and model is not None
    if weighted and not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            "The 'treatment_model' parameter must take 'sample_weight' in fit when weights are "
            f"given. Got {type(model).__name__} instead."
        )
    if forest.kernel == "exact" and not has_levels(rows.dose, rows.weights):
        n_levels = max(len(np.unique(column)) for column in rows.dose.columns)
        raise ValueError(
            "The 'kernel' parameter may be 'exact' only for a dose of few levels. "
            f"Got a dose with {n_levels} distinct values instead."
        )


def warn_of_few_trees(rows: TrainingRows, forest: Any, plan: FitPlan) -> None:
    """Warn where some rows will be in every tree of a forest: nothing judges their correction."""
    recipe = plan.correction
    n_trees, n_forests = plan.growth.n_trees, recipe.n_sizes
    n_unseen = rows.n_rows * plan.growth.sample_fraction**n_trees
    if recipe.n_forests(plan) and recipe.judged_out_of_bag and n_unseen >= 1:
        warnings.warn(
            f"About {n_unseen:.0f} of {rows.n_rows} rows are in every tree, so that the correction "
            "cannot be judged on them: n_trees="
            f"{forest.n_trees} makes {n_trees} trees for each of {n_forests} leaf sizes. Raise "
            "'n_trees' or lower 'sample_fraction'.",
            stacklevel=3,
        )


def _check_groups(rows: TrainingRows, forest: Any) -> None:
    n_groups = len(np.unique(rows.ids))
    least = forest.n_folds * (2 if forest.honesty == "swap" else 1)
    if n_groups < least:
        raise ValueError(
            f"The 'groups' parameter must have at least {least} groups for {forest.n_folds} folds"
            f"{' of each half' if forest.honesty == 'swap' else ''}. Got {n_groups} instead."
        )


def _check_density(rows: TrainingRows, forest: Any) -> None:
    density, recipe = forest.density, recipe_of(forest.correction)
    if isinstance(density, str):
        if recipe.divides_by_density and density not in ("auto", *DENSITIES):
            raise ValueError(
                f"The 'density' parameter must be 'auto' or one of {sorted(DENSITIES)} for "
                f"correction={recipe.name!r}, which divides by a density. "
                f"Got {density!r} instead."
            )
        return
    if is_estimated(density):
        return
    if rows.dose.joint:
        raise ValueError(
            "The 'density' parameter must be the name of a density or of weights for doses of "
            "several components; 'none' for doses that were randomised alike for everyone. "
            f"Got {type(density).__name__} instead."
        )
    _check_length(rows, density)
    own = given_density(rows, density)
    given = known_rows(own, rows.treatment_features, rows.dose.values, rows.weights)
    check_kinds(given, rows.dose.values, rows.weights)
    if not given.known.all():
        n_groups = len(np.unique(rows.ids[~given.known]))
        if n_groups < forest.n_folds:
            raise ValueError(
                "The 'density' parameter must be known of all rows, or leave a group for each of "
                f"the {forest.n_folds} folds. Got {n_groups} groups without a density instead."
            )
    one = np.flatnonzero(given.known)[:1]
    if recipe.divides_by_density and given.densities(one, rows.dose.values[:1]) is None:
        raise ValueError(
            "The 'density' parameter must be a function, strata, probabilities of all levels or "
            f"the name of a density for correction={recipe.name!r}, which needs it at every "
            "dose. Got values at the observed doses instead."
        )


def _check_length(rows: TrainingRows, density: Any) -> None:
    """Raise ValueError unless there is an entry for each row that was given to fit."""
    if callable(density):
        return
    strata = isinstance(density, Strata)
    entries = density.labels if strata else density
    name = "The 'labels' parameter of Strata" if strata else "The 'density' parameter"
    if np.shape(entries)[:1] != (rows.n_given,):
        raise ValueError(
            f"{name} must have one {'label' if strata else 'value'} per row ({rows.n_given}). "
            f"Got shape {np.shape(entries)} instead."
        )
