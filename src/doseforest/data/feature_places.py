"""Features that users name, by name or by place."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from doseforest.base.dtypes import IntArray

MAY_BE_EMPTY = ("controls", "categorical_features")


def feature_places(
    features: Sequence[Any] | None, name: str, names: tuple[str, ...] | None, n_features: int
) -> IntArray | None:
    """Places of features given by name or by place, ascending; None for None.

    Examples
    --------
    >>> feature_places(["b", 0], "controls", ("a", "b"), 2)
    array([0, 1])
    """
    if features is None:
        return None
    if isinstance(features, str | bytes) or not np.iterable(features):
        raise TypeError(
            f"The {name!r} parameter must be a list of feature names or places. "
            f"Got {features!r} instead."
        )
    places = [_place(feature, name, names, n_features) for feature in features]
    if not places and name not in MAY_BE_EMPTY:
        raise ValueError(f"The {name!r} parameter must name at least one feature. Got none.")
    return np.unique(np.array(places, dtype=np.int64))


def _place(feature: Any, name: str, names: tuple[str, ...] | None, n_features: int) -> int:
    if isinstance(feature, str) and names is not None and feature in names:
        return names.index(feature)
    if isinstance(feature, Integral) and not isinstance(feature, bool):
        place = int(feature)
        if 0 <= place < n_features:
            return place
    known = f"places 0 to {n_features - 1}" + (f" or names such as {names[0]!r}" if names else "")
    raise ValueError(
        f"The {name!r} parameter must hold features of X: {known}. Got {feature!r} instead."
    )
