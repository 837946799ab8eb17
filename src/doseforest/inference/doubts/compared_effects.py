"""The average effect that sensitivity and refuters are about, and the forests that refute it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from doseforest.doses.compared_doses import compared_doses
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange, dose_sample
from doseforest.estimator.fitted import Fitted
from doseforest.inference.doubts.refuters import FirstColumns
from doseforest.nuisance.treatment.density_registry import is_estimated

if TYPE_CHECKING:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

LOW_AND_HIGH = np.array([0.25, 0.75])  # quantiles of the doses that are compared by default


def ends_to_compare(fitted: Fitted, low: Any, high: Any) -> Doses:
    """The doses asked for, or the quartiles of the observed ones, or the ends."""
    rows, model = fitted.rows, fitted.model
    width = model.n_components
    if width > 1:
        for name, dose in (("low", low), ("high", high)):
            if dose is None:
                raise ValueError(
                    f"The {name!r} parameter must be given for doses of {width} components. "
                    "Got None instead."
                )
        usual = [low, high]
    else:
        sample = dose_sample(rows.dose, rows.weights)
        usual = sample.quantiles(LOW_AND_HIGH).tolist()
        if usual[0] == usual[1]:
            usual = [sample.range().low, sample.range().high]
    given = [
        each if asked is None else asked for each, asked in zip(usual, (low, high), strict=True)
    ]
    ends = compared_doses(given[0], given[1], ("low", "high"), model.support, width)
    model.require_levels(low=ends[0], high=ends[1])
    if ends[0] == ends[1]:
        raise ValueError(
            f"The 'high' parameter must differ from 'low'. Got {ends[1].plain} for both instead."
        )
    return ends


def refitted_recipe(
    forest: GeneralizedCausalForest, kind: str, baseline: Any, params: Mapping[str, Any]
) -> GeneralizedCausalForest:
    """The unfitted forest that a refuter fits to changed rows.

    Parameters
    ----------
    forest : GeneralizedCausalForest
    kind : str
        One of REFUTERS.
    baseline : dose
        Lower of the doses that are compared.
    params : mapping
        Parameters that differ from the forest's.
    """
    recipe: GeneralizedCausalForest = clone(forest)
    changed = {"baseline": baseline, "doses": None, "progress": False, "verbose": False, **params}
    density = changed.get("density", recipe.density)
    known = not is_estimated(density)
    if known and (kind == "placebo" or (kind == "subset" and not callable(density))):
        changed["density"] = "auto"
    elif callable(density) and kind == "random_common_cause":
        n_columns = len(forest._fitted.rows.treatment_columns)
        changed["density"] = FirstColumns(density, n_columns)
    recipe.set_params(**changed)
    return recipe


def nearest_dose(support: Any, dose: Any) -> Any:
    """The dose, or the nearest one of a range that it lies beyond."""
    return float(support.clip(np.array([dose]))[0]) if isinstance(support, DoseRange) else dose
