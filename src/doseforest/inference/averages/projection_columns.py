"""Covariates that scores are projected on: columns of the training table, or a user's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.categories import learn_categories
from doseforest.data.feature_places import feature_places
from doseforest.data.feature_table import Categories, as_table, categories_of
from doseforest.estimator.training_rows import TrainingRows


def projection_columns(features: Any, rows: TrainingRows) -> tuple[FloatArray, tuple[str, ...]]:
    """Columns (n_rows, n_columns) and their names.

    Numbers stand for themselves, a category for indicators of all labels but its most frequent one.

    Parameters
    ----------
    features : list of names or places, table of shape (n_rows, n_columns), or None
        Of the training table; or columns of the user's own, one row for each row given to fit; by
        default the covariates that trees split on.

    Examples
    --------
    >>> from doseforest.estimator.training_rows import check_training
    >>> rows = check_training(np.zeros((40, 3)), np.arange(40), np.arange(40))
    >>> projection_columns([2, 0], rows)[1]
    ('x0', 'x2')
    """
    if features is None:
        features = rows.effect_columns.tolist()
    if np.ndim(features) < 2 and not hasattr(features, "columns"):
        places = feature_places(features, "features", rows.names, rows.X.shape[1])
        assert places is not None  # None was replaced
        return _numbers(rows.X, rows.names, rows.categories, places)
    table = as_table(features, with_categories=True)
    if table.n_rows != rows.n_given:
        raise ValueError(
            f"The 'features' parameter must have one row per row of fit ({rows.n_given}). "
            f"Got {table.n_rows} rows instead."
        )
    coded = learn_categories(table, None)
    values = rows.of_given(np.concatenate([block for _, block in coded.blocks()]))
    return _numbers(values, table.names, categories_of(coded), np.arange(table.n_features))


def _numbers(
    values: FloatArray, names: tuple[str, ...] | None, categories: Categories, places: IntArray
) -> tuple[FloatArray, tuple[str, ...]]:
    columns: list[FloatArray] = []
    labels: list[str] = []
    for place in places.tolist():
        name = f"x{place}" if names is None else names[place]
        column = values[:, place]
        if np.isnan(column).any():
            raise ValueError(
                "The 'features' parameter must have columns without missing values. "
                f"Got {int(np.isnan(column).sum())} of them in {name!r} instead."
            )
        if place not in categories:
            columns.append(column)
            labels.append(name)
            continue
        if len(categories[place]) < 2:
            raise ValueError(
                "The 'features' parameter must have categories of at least two labels. "
                f"Got one label in {name!r} instead."
            )
        for code, label in list(enumerate(categories[place]))[1:]:
            columns.append((column == code).astype(np.float64))
            labels.append(f"{name}={label}")
    return np.column_stack(columns), tuple(labels)
