"""Memory of growth, counted before anything large is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import NODE_DTYPE, bin_dtype, set_words
from doseforest.base.machine import available_memory, readable_bytes
from doseforest.data.binning import SAMPLE_ROWS
from doseforest.data.exact_grid import padded_width
from doseforest.data.sampling import SamplingPlan

HISTOGRAM_BYTES = 512 * 2**20  # more than this for kept histograms has not paid in any trial
ROWS_AT_ONCE = 1_000_000  # rows of a group of trees: enough to keep threads busy between batches
MAX_NODES = 2**31  # what a node's link can hold
_SAFETY = 0.9  # of the memory that is there


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes that a fit will hold at once, with the parameter that each part follows from."""

    data: int  # bins and channels
    binning: int  # the sample of rows that places the bins
    forest: int  # nodes and leaf sums of the finished trees, twice: groups, then joined
    per_tree: int  # list of rows, and sums in float64, of one tree while it grows

    @property
    def fixed(self) -> int:
        """What is needed whatever the number of trees that grow together."""
        return max(self.data, self.binning) + self.forest

    @property
    def least(self) -> int:
        """What growing one tree at a time needs."""
        return self.fixed + self.per_tree


def memory_need(
    *,
    n_rows: int,
    n_features: int,
    n_channels: int,
    n_leaf_channels: int,
    n_trees: int,
    min_node_size: int,
    plan: SamplingPlan,
    most_categories: int | None = None,  # of a feature; None: no feature has any
) -> MemoryNeed:
    """Count the bytes of a fit."""
    tree_rows = plan.rows_per_tree(n_rows)
    tree_leaves = max(1, tree_rows // max(1, min_node_size))
    if 2 * n_trees * tree_leaves >= MAX_NODES:
        raise ValueError(
            f"The 'n_trees' parameter must be such that a forest has fewer than {MAX_NODES} nodes. "
            f"Got {n_trees} trees of up to {2 * tree_leaves} nodes instead; raise 'min_node_size'."
        )
    node_bytes = 2 * (NODE_DTYPE.itemsize + 8)  # two nodes a leaf, with their gains
    if most_categories is not None:
        node_bytes += 8 * set_words(most_categories)  # one of the two is a split, perhaps by a set
    bin_bytes = n_features * np.dtype(bin_dtype(most_categories or 0)).itemsize
    leaf_bytes = 4 * n_leaf_channels + 4
    sampled = min(n_rows, SAMPLE_ROWS)
    return MemoryNeed(
        data=n_rows * (bin_bytes + 4 * padded_width(n_channels) + 4 * n_leaf_channels + 16),
        binning=n_rows * bin_bytes + 3 * 8 * sampled * n_features,
        forest=2 * n_trees * tree_leaves * (node_bytes + leaf_bytes),
        # The list of rows and as much again while it is divided; sums in float64 and float32.
        per_tree=8 * tree_rows + tree_leaves * (4 * node_bytes + 4 * leaf_bytes),
    )


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How growth keeps under the cap. It changes the time that growth takes, never its result."""

    trees_at_once: int
    histogram_bytes: int


def plan_memory(
    need: MemoryNeed, *, memory_limit: int | None, n_trees: int, tree_rows: int, n_threads: int
) -> MemoryPlan:
    """Divide the memory that is left, or refuse and say what to change.

    Raises
    ------
    MemoryError
        The fit does not fit.
    """
    limit = int(_SAFETY * available_memory()) if memory_limit is None else memory_limit
    if need.least > limit:
        source = "this machine or its container" if memory_limit is None else "'memory_limit'"
        raise MemoryError(
            f"Growing this forest needs about {readable_bytes(need.least)}, and {source} allows "
            f"{readable_bytes(limit)}. {_cure(need)}"
        )
    left = limit - need.fixed
    wanted = max(2 * n_threads, ROWS_AT_ONCE // max(1, tree_rows))
    affordable = max(1, left // 2 // max(1, need.per_tree))
    trees_at_once = min(n_trees, wanted, affordable)
    return MemoryPlan(
        trees_at_once=trees_at_once,
        histogram_bytes=min(HISTOGRAM_BYTES, left - trees_at_once * need.per_tree),
    )


def _cure(need: MemoryNeed) -> str:
    if need.forest >= max(need.data, need.binning):
        return "Lower 'n_trees' or raise 'min_node_size': the finished leaves take most of it."
    return (
        "Fit on fewer rows, features or curve points: the binned table and its channels take "
        "most of it."
    )
