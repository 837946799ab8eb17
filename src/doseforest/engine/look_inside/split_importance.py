"""Which features a forest splits on, and what it gains by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from doseforest.base.dtypes import LEAF, FloatArray
from doseforest.engine.look_inside.node_names import checked_depth, feature_label, node_depths

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest

Measure = Literal["gain", "count"]
MEASURES = ("gain", "count")


@dataclass(frozen=True, slots=True, eq=False)
class FeatureImportance:
    """Importance of each feature of a forest.

    Attributes
    ----------
    values : array of shape (n_features,)
        Shares, not negative, adding up to 1; all 0 without any split.
    names : tuple of str or None
        Names of the features, where the training table had them.

    Examples
    --------
    >>> importance = FeatureImportance(np.array([0.25, 0.75]), ("age", "income"))
    >>> importance.ranked()
    [('income', 0.75), ('age', 0.25)]
    """

    values: FloatArray  # (n_features,)
    names: tuple[str, ...] | None

    def ranked(self) -> list[tuple[str, float]]:
        """Names and values, the most important first.

        Returns
        -------
        list of (str, float)
            Features; x[0] stands for the first one where features have no names.
        """
        order = np.argsort(-self.values, kind="stable")
        return [(feature_label(self.names, int(f)), float(self.values[f])) for f in order]


def feature_importance(
    forest: Forest,
    *,
    by: Measure = "gain",
    decay: float | Sequence[float] = 0.0,
    max_depth: int | None = None,
) -> FeatureImportance:
    """Share of each feature in the splits of a forest; see `ForestViews.feature_importance`."""
    if by not in MEASURES:
        raise ValueError(f"The 'by' parameter must be one of {MEASURES}. Got {by!r} instead.")
    is_split = (forest.nodes["flags"] & LEAF) == 0
    depths = node_depths(forest.nodes, forest.roots)[is_split]
    shares = depth_weights(decay, int(depths.max(initial=0)) + 1)[depths]
    if max_depth is not None:
        shares = np.where(depths < checked_depth(max_depth), shares, 0.0)
    if by == "gain":
        gains = forest.gains[is_split]
        shares = shares * (gains / gains.max(initial=np.finfo(float).tiny))  # no sum overflows
    totals: FloatArray = np.bincount(
        forest.nodes["feature"][is_split], shares, forest.n_features
    ).astype(np.float64)
    total = totals.sum()
    return FeatureImportance(totals / total if total > 0 else totals, forest.feature_names)


def depth_weights(decay: float | Sequence[float], n_depths: int) -> FloatArray:
    """Weight of a split at depths 0, 1, …: a power of the depth, or the given numbers.

    Examples
    --------
    >>> depth_weights(1.0, 4).round(2), depth_weights([1.0, 0.5], 4)
    (array([1.  , 0.5 , 0.33, 0.25]), array([1. , 0.5, 0. , 0. ]))
    """
    given = np.asarray(decay, np.float64)
    if given.ndim > 1 or given.size == 0 or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(
            "The 'decay' parameter must be a float in [0, inf) or a list of them, one weight for "
            f"each depth. Got {decay!r} instead."
        )
    if given.ndim == 0:
        weights: FloatArray = np.arange(1.0, n_depths + 1) ** -given
        return weights
    padded = np.zeros(max(n_depths, len(given)))
    padded[: len(given)] = given
    return padded[:n_depths]
