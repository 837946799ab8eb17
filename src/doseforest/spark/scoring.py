"""Answers of a forest for the rows of a data frame, by Arrow batches on the executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.treatments.grids import SUPPORT_SLACK

STRUCT = "struct<prediction:double,curve:array<double>,effect:array<double>>"


def answers(
    sent: Any, doses: FloatArray, baseline: float, column: str, n_features: int
) -> Callable[[Any, Any], Any]:
    """Function of Arrow arrays of features and own doses to structs of answers.

    Parameters
    ----------
    sent : broadcast of a forest
    doses : array of shape (n_doses,)
    column : str
        Where the features come from, for messages.
    """

    def score(features: Any, dose: Any) -> Any:
        import pyarrow as pa

        X = _table(features, column, n_features)
        forest = sent.value
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
    names = ("features", "dose", "return")
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


def _own(forest: Any, X: FloatArray, dose: Any) -> FloatArray:
    """Expected outcome at each row's own dose; NaN where it has none, or none in the support."""
    own = np.array(dose.to_numpy(zero_copy_only=False), np.float64)
    out = np.full(len(own), np.nan)
    known = np.isfinite(own)
    known[known] = forest.support.contains(own[known], SUPPORT_SLACK)
    if known.any():
        out[known] = np.asarray(forest.dose_response(X[known], own[known][:, None]))[:, 0]
    return out


def _lists(values: FloatArray) -> Any:
    import pyarrow as pa

    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))
