"""What a policy knows of units beside their curves, as small forests that a file can hold.

Support: a forest grown on which doses the fitted model calls supported (`supported`: a conditional
density of at least 5 % of that at the unit's likeliest dose) for each training row. A new unit's
share at a dose is that of the training rows like it which could have had the dose; half of them
must. So the density model, which may be of any kind and is not stored with a forest, is asked once,
and serving costs one small forest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.data.checks import as_numbers
from doseforest.doses.dose_values import Doses
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest
from doseforest.policy.artifact.dose_limits import checked_doses

SUPPORT_TREES, SUPPORT_NODE_SIZE = 50, 20
TABLE_TREES, TABLE_NODE_SIZE = 100, 5


def served_forest(forest: Any) -> Any:
    """What answers for units without training data, of a fitted estimator or of itself."""
    if not hasattr(forest, "dose_response"):
        raise TypeError(
            "The 'forest' parameter must have the method 'dose_response', as forests and baselines "
            f"have. Got {type(forest).__name__} instead."
        )
    return forest._model if hasattr(forest, "supported") else forest


def unit_table(
    X: Any, values: Any, doses: Any, *, categorical_features: Any = None, random_state: int = 0
) -> DistilledForest:
    """A small forest of any numbers of units and doses, such as standard errors of effects.

    Parameters
    ----------
    X : table of shape (n_units, n_features)
        With the features that a policy's forest has. Where its columns have no names they are
        taken for the forest's features in their order.
    values : array of shape (n_units, n_doses)
        What to predict for each unit at each dose.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Those of the policy.
    categorical_features : sequence of names or places, optional
        As in `CurveForest`.
    random_state : int, default=0
        Seed of the forest.

    Returns
    -------
    DistilledForest
        Predicts the values of new units.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> errors = unit_table(x, 0.1 + x * [0.0, 1.0], doses=[0.0, 1.0])
    >>> errors.dose_response([[0.5]]).round(1)
    array([[0.1, 0.6]])
    """
    from doseforest.estimator.distilling import distill_curves  # grows: not where one serves

    grid = checked_doses(doses)
    table = as_numbers(values, "values").astype(np.float64)
    if table.ndim != 2 or table.shape[1] != len(grid) or not np.isfinite(table).all():
        raise ValueError(
            f"The 'values' parameter must be finite numbers of shape (units, {len(grid)}), one "
            f"for each dose. Got shape {table.shape} instead."
        )
    return distill_curves(
        table,
        X,
        grid,
        baseline=grid[0].element,
        categorical_features=categorical_features,
        n_trees=TABLE_TREES,
        min_node_size=TABLE_NODE_SIZE,
        seed=random_state,
    )


def support_forest(forest: Any, doses: Any) -> DistilledForest:
    """A small forest of what a fitted GeneralizedCausalForest calls supported."""
    from doseforest.estimator.distilling import distill_curves, with_features_of

    grid = checked_doses(doses)
    fitted = forest._fitted
    rows, model = fitted.rows, fitted.model
    small = distill_curves(
        fitted.supported(rows.X, grid.values).astype(np.float64),
        rows.X,
        grid,
        baseline=grid[0].element,
        categorical_features=list(model.categories),
        weights=rows.weights,
        n_trees=SUPPORT_TREES,
        min_node_size=SUPPORT_NODE_SIZE,
        seed=fitted.plan.seed,
        n_jobs=forest.n_jobs,
    )
    return with_features_of(model, small)


def checked_support(support: Any, forest: Any, doses: Doses) -> DistilledForest | None:
    """The model of support that a policy keeps, of what a user gave for it."""
    if isinstance(support, str) and support == "auto":
        support = forest if hasattr(forest, "supported") else None
    if support is None:
        return None
    if hasattr(support, "supported"):
        return support_forest(support, doses)
    return _checked_table(support, "support", doses)


def checked_errors(errors: Any, doses: Doses) -> DistilledForest | None:
    """The model of standard errors that a policy keeps."""
    return None if errors is None else _checked_table(errors, "errors", doses)


def _checked_table(table: Any, name: str, doses: Doses) -> DistilledForest:
    if not isinstance(table, DistilledForest):
        fitted = ", a fitted GeneralizedCausalForest, 'auto'" if name == "support" else ""
        raise TypeError(
            f"The {name!r} parameter must be what `unit_table` returns{fitted}, or None. "
            f"Got {table!r} instead."
        )
    if not np.array_equal(table.doses, doses):
        raise ValueError(
            f"The {name!r} parameter must be of the doses of the policy. "
            f"Got one of {table.doses!r} instead."
        )
    return table


def with_features_of_forest(
    table: DistilledForest | None, name: str, forest: Any
) -> DistilledForest | None:
    """A model of units that takes the features of a policy's forest, or ValueError.

    A model of an array without names has the forest's features, in their order. Labels of
    categories may be others than the forest's: each model finds its own.
    """
    if table is None or not isinstance(forest, EffectForest | DistilledForest):
        return table
    own = table.forest
    known = forest.forest if isinstance(forest, DistilledForest) else forest
    same = own.n_features == known.n_features and set(own.categories) == set(known.categories)
    if same and own.feature_names is None and known.feature_names is not None:
        return replace(table, forest=replace(own, feature_names=known.feature_names))
    if not same or own.feature_names != known.feature_names:
        raise ValueError(
            f"The {name!r} parameter must be of the features of the forest: "
            f"{_feature_text(known)}. Got one of {_feature_text(own)} instead."
        )
    return table


def _feature_text(model: Any) -> str:
    names = model.feature_names
    listed = "without names" if names is None else f"{list(names[:5])}{'…' if names[5:] else ''}"
    places = sorted(model.categories)
    categorical = f", categorical in the columns {places[:5]}" if places else ""
    return f"{model.n_features} features, {listed}{categorical}"
