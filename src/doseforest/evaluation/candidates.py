"""Fitting candidates, several at a time, on rows by their places."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from doseforest.base.dtypes import IntArray
from doseforest.base.progress import ProgressBar


def checked_candidates(candidates: Any) -> dict[str, Any]:
    """Candidates by name: estimators with `fit`, or functions of the places of training rows."""
    if not isinstance(candidates, Mapping) or not candidates:
        raise ValueError(
            "The 'candidates' parameter must be a dictionary of models by name, at least one. "
            f"Got {candidates!r} instead."
        )
    for name, model in candidates.items():
        if not hasattr(model, "fit") and not callable(model):
            raise ValueError(
                "The 'candidates' parameter must hold estimators with a method fit, or functions "
                f"of the places of the training rows. Got {model!r} as {name!r} instead."
            )
    return dict(candidates)


def fit_candidates(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    treatment: Any,
    groups: Any,
    parts: list[IntArray],
    *,
    n_jobs: int | None,
    progress: bool | None,
) -> list[dict[str, Any]]:
    """Fit every candidate on every part of the rows; a dictionary of models for each part."""
    jobs = [(part, name) for part in range(len(parts)) for name in candidates]
    result: list[dict[str, Any]] = [{} for _ in parts]
    work = (
        delayed(_fitted)(candidates[name], X, y, treatment, groups, parts[part])
        for part, name in jobs
    )
    with ProgressBar(len(jobs), "fitting candidates", "fit", progress) as bar:
        models = Parallel(n_jobs=n_jobs, return_as="generator")(work)
        for (part, name), model in zip(jobs, models, strict=True):
            result[part][name] = model
            bar.advance(1)
    return result


def rows_at(values: Any, places: IntArray) -> Any:
    """Rows of a table or array at places; None stays None."""
    return None if values is None else _safe_indexing(values, places)


def _fitted(candidate: Any, X: Any, y: Any, treatment: Any, groups: Any, places: IntArray) -> Any:
    """One fit; groups go to those who take them."""
    if not hasattr(candidate, "fit"):
        return candidate(places)
    model = clone(candidate, safe=False)
    options = {"treatment": rows_at(treatment, places)}
    if groups is not None and "groups" in inspect.signature(model.fit).parameters:
        options["groups"] = rows_at(groups, places)
    fitted = model.fit(rows_at(X, places), rows_at(y, places), **options)
    return model if fitted is None else fitted


def split_parts(ids: IntArray, shares: tuple[float, ...], seed: int) -> list[IntArray]:
    """Places of rows in parts of about those shares; rows that share an id stay together.

    Examples
    --------
    >>> [len(part) for part in split_parts(np.arange(10), (0.5, 0.3, 0.2), seed=0)]
    [5, 3, 2]
    """
    distinct, codes = np.unique(ids, return_inverse=True)
    rank = np.random.default_rng(seed).permutation(len(distinct))
    edges = np.round(np.cumsum(shares) * len(distinct))
    part = np.searchsorted(edges, rank, side="right")[codes]
    return [np.flatnonzero(part == place) for place in range(len(shares))]
