"""What can be refused before anything is fitted, beyond the range of single parameters."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from doseforest.data.checks import as_numbers
from doseforest.data.training_rows import TrainingRows
from doseforest.estimation.paper_mode import check_paper
from doseforest.estimation.plan import FitPlan
from doseforest.nuisance.densities.registry import DENSITIES
from doseforest.treatments.grids import FEW_LEVELS, dose_sample


def check_plan(rows: TrainingRows, forest: Any) -> None:
    """Raise ValueError where parameters of a forest do not fit its rows or each other."""
    _check_groups(rows, forest)
    _check_density(rows, forest)
    if forest.correction == "paper":
        check_paper(rows, forest)
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
    levels, _ = dose_sample(rows.dose, rows.weights).levels()
    if forest.kernel == "exact" and len(levels) > FEW_LEVELS:
        raise ValueError(
            "The 'kernel' parameter may be 'exact' only for a dose of few levels. "
            f"Got a dose with {len(levels)} distinct values instead."
        )


def warn_of_few_trees(rows: TrainingRows, forest: Any, plan: FitPlan) -> None:
    """Warn where some rows will be in every tree of a forest: nothing judges their correction."""
    n_trees, n_forests = plan.growth["n_trees"], len(plan.leaf_sizes)
    n_unseen = rows.n_rows * plan.growth["sample_fraction"] ** n_trees
    if forest.correction not in ("none", "paper") and n_unseen >= 1:
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
    density = forest.density
    if isinstance(density, str):
        divides = forest.correction in ("kernel", "paper")
        if divides and density not in ("auto", *DENSITIES):
            raise ValueError(
                f"The 'density' parameter must be 'auto' or one of {sorted(DENSITIES)} for "
                f"correction={forest.correction!r}, which divides by a density. "
                f"Got {density!r} instead."
            )
    elif not callable(density) and not hasattr(density, "labels"):
        shape = as_numbers(density, "density").shape
        if shape != (rows.n_rows,):
            raise ValueError(
                f"The 'density' parameter must have one value per row ({rows.n_rows}). "
                f"Got shape {shape} instead."
            )
