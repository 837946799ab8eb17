"""How far incoming features have moved from those that a policy was made for.

The population stability index adds (p - q) log(p / q) over bins, p the shares of now and q those of
the reference. By custom below 0.1 nothing happened, above 0.25 the model should be looked at.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray

BINS = 10
MOST_LABELS = 20
LEAST_SHARE = 1e-4  # of empty bins, whose logarithm would be infinite
MODERATE, LARGE = 0.1, 0.25


def profile_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """How every feature is spread: bins by quantiles, or labels; with the share of missing ones.

    Examples
    --------
    >>> profile_rows([{"x": 1.0}, {"x": 2.0}, {"x": None}, {"x": 3.0}])["x"]["shares"][0]
    0.25
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _profile([row.get(name) for row in rows]) for name in names}


def drift(profile: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Stability index of every feature of a profile, largest first.

    Examples
    --------
    >>> rows = [{"x": float(k)} for k in range(100)]
    >>> drift(profile_rows(rows), rows)["x"]
    0.0
    """
    result = {}
    for name, each in profile.items():
        now = _shares([row.get(name) for row in rows], each)
        reference = np.maximum(each["shares"], LEAST_SHARE)
        current = np.maximum(now, LEAST_SHARE)
        result[name] = float(((current - reference) * np.log(current / reference)).sum())
    return dict(sorted(result.items(), key=lambda pair: -pair[1]))


def verdict(index: float) -> str:
    """What an index is taken to mean."""
    return "steady" if index < MODERATE else "moving" if index < LARGE else "drifted"


def profile_of_file(path: Path) -> dict[str, Any]:
    """Profile of the rows of a CSV or Parquet file."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return profile_rows(pq.read_table(path).to_pylist())
    if path.suffix != ".csv":
        raise ValueError(f"The reference must be a .csv or .parquet file. Got {path.name!r}.")
    with open(path, newline="", encoding="utf-8") as file:
        rows = [{name: _read(text) for name, text in row.items()} for row in csv.DictReader(file)]
    if not rows:
        raise ValueError(f"The reference {path.name!r} has no rows.")
    return profile_rows(rows)


def parsed(features: Iterable[str]) -> list[dict[str, Any]]:
    """Features as they are stored."""
    return [json.loads(feature) for feature in features]


def _read(text: str | None) -> Any:
    if text is None or text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _profile(values: list[Any]) -> dict[str, Any]:
    present = [each for each in values if each is not None]
    own: dict[str, Any]
    if any(isinstance(value, str) for value in present):
        labels, counts = np.unique([str(value) for value in present], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
        own = {"labels": labels[order].tolist()}
    else:
        numbers = np.array(present, np.float64)
        inner = np.quantile(numbers, np.arange(1, BINS) / BINS) if len(numbers) else np.zeros(0)
        own = {"edges": np.unique(inner).tolist()}
    own["shares"] = _shares(values, own).tolist()
    return own


def _shares(values: list[Any], profile: Mapping[str, Any]) -> FloatArray:
    """Share of missing values, then of every bin or label, then of other labels."""
    if "labels" in profile:
        place = {label: k + 1 for k, label in enumerate(profile["labels"])}
        n_bins = len(place) + 2
        codes = np.array(
            [0 if each is None else place.get(str(each), n_bins - 1) for each in values], np.int64
        )
    else:
        n_bins = len(profile["edges"]) + 2
        plain = [each if isinstance(each, int | float) else np.nan for each in values]
        numbers = np.array(plain, np.float64)
        codes = 1 + np.searchsorted(profile["edges"], numbers, side="left")
        codes[np.isnan(numbers)] = 0
    counts: FloatArray = np.bincount(codes, minlength=n_bins) / max(len(values), 1)
    return counts
