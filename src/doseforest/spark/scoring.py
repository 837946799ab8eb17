"""Answers of a forest for the rows of a data frame, by Arrow batches on the executors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.data.feature_table import ArrayTable
from doseforest.doses.dose_values import Doses
from doseforest.spark.category_columns import coded_rows
from doseforest.spark.frame_columns import dose_records

STRUCT = "struct<prediction:double,curve:array<double>,effect:array<double>>"


def answers(
    sent: Any,
    doses: DoseArray,
    baseline: DoseArray,
    column: str,
    n_features: int,
    text_places: tuple[int, ...] = (),
) -> Callable[[Any, Any, Any], Any]:
    """Function of Arrow arrays of features, texts and own doses to structs of answers.

    Parameters
    ----------
    sent : broadcast of a forest
    doses : array of shape (n_doses,)
    baseline : array of shape (1,)
    column : str
        Where the features come from, for messages.
    text_places : tuple of int
        Features that are text.
    """

    def score(features: Any, texts: Any, dose: Any) -> Any:
        import pyarrow as pa

        forest = sent.value
        X = _units(forest, _table(features, column, n_features), texts, text_places)
        curves = np.asarray(forest.dose_response(X, np.append(doses, baseline)))
        at_doses = curves[:, :-1]
        parts = [
            pa.array(_own(forest, X, dose), from_pandas=True),
            _lists(at_doses),
            _lists(at_doses - curves[:, -1:]),
        ]
        return pa.StructArray.from_arrays(parts, ["prediction", "curve", "effect"])

    import pyarrow

    # Spark tells kinds of functions apart by their types, and wants the types themselves.
    names = ("features", "texts", "dose", "return")
    score.__annotations__ = dict.fromkeys(names, pyarrow.Array)
    return score


def _table(features: Any, column: str, n_features: int) -> FloatArray:
    if features.null_count:
        raise ValueError(
            f"The column {column!r} must hold the features of every row. "
            f"Got {features.null_count} null(s) instead."
        )
    sizes = np.unique(features.value_lengths().to_numpy(zero_copy_only=False))
    if len(sizes) and (len(sizes) > 1 or sizes[0] != n_features):
        raise ValueError(
            f"The column {column!r} must hold {n_features} features, as in training. "
            f"Got {int(sizes[sizes != n_features][0])} instead."
        )
    flat = features.flatten().to_numpy(zero_copy_only=False)
    return np.array(flat, np.float64).reshape(len(features), n_features)


def _units(forest: Any, values: FloatArray, texts: Any, text_places: tuple[int, ...]) -> ArrayTable:
    """The rows as the forest knows them: codes in the place of categories."""
    known = served(forest)
    coded = coded_rows(values, texts, text_places, known.categories, known.feature_names)
    return ArrayTable(coded, known.feature_names, categories=known.categories)


def served(forest: Any) -> Any:
    """What knows names and categories: of a distilled forest, the forest of curves in it."""
    return getattr(forest, "forest", forest)


def _own(forest: Any, X: ArrayTable, dose: Any) -> FloatArray:
    """Expected outcome at each row's own dose; NaN where it has none.

    Doses beyond those of training are answered as the nearest one: an evaluator takes no nulls.
    """
    import pyarrow as pa

    width = forest.support.n_components
    out = np.full(len(dose), np.nan)
    if width > 1 and not pa.types.is_list(dose.type):
        return out  # the frame has no doses
    records = dose_records(dose, width)
    known = np.isfinite(Doses.of(records).table).all(axis=1)
    if known.any():
        units = replace(X, values=X.values[known])
        asked = forest.support.clip(records[known])
        out[known] = np.asarray(forest.dose_response(units, asked[:, None]))[:, 0]
    return out


def _lists(values: FloatArray) -> Any:
    import pyarrow as pa

    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))
