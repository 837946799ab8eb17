"""What must hold of any bytes that are loaded as a forest file."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from doseforest import EffectForest, ForestFileError, load_forest
from doseforest.base.container import read_container
from doseforest.engine import Forest
from doseforest.results import DistilledForest
from forest_file_mutations import places

SIZES = (1e-20, 1e20)  # of numbers that training gives; with others, answers may overflow
MOST_COLUMNS = 1000  # of a frame with labels
ROW_SIZES = np.array([[0.0], [1.0], [1.0], [1e3], [-1e3], [1e6]])


class InsaneForestError(Exception):
    """A forest was loaded, but its answers are none."""


def check_file(file: bytes, path: Path) -> bool:
    """Load the bytes, which are written to the path, and return whether they are a forest.

    Raises
    ------
    InsaneForestError
        A forest whose numbers are all of an ordinary size gives an answer that is not finite or
        has the wrong shape.
    Exception
        Whatever else but a ForestFileError comes out.
    """
    path.write_bytes(file)
    try:
        model = load_forest(path, memory_map=bool(zlib.crc32(file) & 1))
    except ForestFileError:
        return False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _check_answers(model, finite=_has_ordinary_numbers(path))
    return True


def _check_answers(model: Any, finite: bool) -> None:
    known = model.forest if isinstance(model, DistilledForest) else model
    n_features = known.n_features
    rows = np.random.default_rng(0).normal(size=(len(ROW_SIZES), n_features)) * ROW_SIZES
    rows[2, ::2] = np.nan
    if known.categories and n_features > MOST_COLUMNS:
        return  # making the frame takes seconds, answering it does not
    answers = _forest_answers if isinstance(model, Forest) else _effect_answers
    for values in answers(model, _with_labels(known, rows)):
        if len(values) != len(rows) or (finite and not np.isfinite(values).all()):
            raise InsaneForestError(f"answers {values}")


def _with_labels(model: Forest | EffectForest, rows: np.ndarray) -> Any:
    """The rows, as a frame with labels in it where features are categorical."""
    if not model.categories:
        return rows
    columns: dict[int, Any] = dict(enumerate(rows.T))
    for feature, labels in model.categories.items():
        known = [labels[k % len(labels)] if labels else None for k in range(len(rows) - 1)]
        columns[feature] = [*known, None]
    frame = pd.DataFrame(columns)
    if model.feature_names is not None:
        frame.columns = pd.Index(model.feature_names)
    return frame


def _forest_answers(forest: Forest, rows: Any) -> Iterator[np.ndarray]:
    yield forest.predict(rows, n_jobs=1)
    yield forest.predict_oob(rows, n_jobs=1)
    leaves = forest.apply(rows, n_jobs=1)
    if leaves.min() < 0 or leaves.max() >= forest.n_leaves:
        raise InsaneForestError(f"leaves {leaves} of {forest.n_leaves}")
    yield forest.feature_importances_.reshape(1, -1).repeat(len(rows), axis=0)


def _effect_answers(
    model: EffectForest | DistilledForest, rows: np.ndarray
) -> Iterator[np.ndarray]:
    if isinstance(model, EffectForest):
        model = replace(model, n_jobs=1)
    curves = model.dose_response(rows)
    if curves.shape[1] != len(model.doses):
        raise InsaneForestError(f"curves of shape {curves.shape} for {len(model.doses)} doses")
    yield curves
    yield model.effect(rows, model.doses[-1])


def _has_ordinary_numbers(path: Path) -> bool:
    container = read_container(path)
    told = [owner[key] for owner, key in places(container.metadata)]
    told = [own for own in told if isinstance(own, int | float)]
    numbers: list[Any] = [float(min(abs(own), 1e300)) for own in told]  # whole ones may be huge
    for array in container.arrays.values():
        fields = [array[name] for name in array.dtype.names] if array.dtype.names else [array]
        numbers += [own.astype(np.float64).ravel() for own in fields if own.dtype.kind == "f"]
    sizes = np.abs(np.hstack([0.0, *numbers]))
    ordinary = (sizes > SIZES[0]) & (sizes < SIZES[1])
    return bool((ordinary | (sizes == 0) | np.isinf(sizes)).all())  # thresholds may be infinite
