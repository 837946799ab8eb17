"""Types of the compiled core; what each function does is told in cpp/engine.hpp."""

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import BinArray

LANES: int
MAX_CHANNELS: int
MAX_CANDIDATES: int
MAX_FUNCTIONS: int
MAX_SCORE_POINTS: int

class SplitRule:
    def __init__(
        self,
        *,
        channel_weights: NDArray[np.float64],
        norm: int,
        squared: bool,
        positivity: int,
        weight_channel: int,
        spread_channel: int,
        zeta: float,
        min_rows: int,
        min_fraction: float,
        statistic: int = 0,
        stride: int = 0,
        n_functions: int = 0,
        settings: NDArray[np.float64] | None = None,
    ) -> None: ...

class Sampling:
    def __init__(
        self,
        *,
        seed: int,
        fraction: float,
        growth_fraction: float,
        bag_size: int,
        bootstrap: bool,
        honesty: int,
    ) -> None: ...

def available_builds() -> list[str]: ...
def current_build() -> str: ...
def choose_build(name: str) -> None: ...
def search(
    bins: BinArray,  # IN (n_rows, n_features)
    channels: NDArray[np.float32],  # IN (n_rows, n_channels)
    n_bins: NDArray[np.int32],  # IN (n_features,)
    rule: SplitRule,
    rows: NDArray[np.uint32],  # IN
    families: NDArray[np.int64],  # IN (n_families, 8)
    features: NDArray[np.int32],  # IN (n_nodes or 1, n_selected)
    pool_sums: NDArray[np.float64],  # IN/OUT (n_slots, n_cells, n_channels)
    pool_counts: NDArray[np.uint32],  # IN/OUT (n_slots, n_cells)
    n_threads: int,
    gain: NDArray[np.float64],  # IN/OUT (n_nodes * n_candidates,)
    cut: NDArray[np.int32],  # IN/OUT (n_nodes * n_candidates, 3)
    sets: NDArray[np.uint64],  # IN/OUT (n_nodes * n_candidates, 4 or 16), or (…, 0) without any
    categorical: NDArray[np.uint8] | None,  # IN (n_features,); None: no feature is
    n_candidates: int = 1,
) -> None: ...
def histograms(
    bins: BinArray,
    channels: NDArray[np.float32],
    n_bins: NDArray[np.int32],
    rows: NDArray[np.uint32],
    ranges: NDArray[np.int64],  # IN (n_nodes, 2)
    features: NDArray[np.int32],
    n_threads: int,
    sums: NDArray[np.float64],  # OUT (n_nodes, n_cells, n_channels)
    counts: NDArray[np.uint32],  # OUT (n_nodes, n_cells)
) -> None: ...
def scan_histograms(
    n_bins: NDArray[np.int32],
    rule: SplitRule,
    features: NDArray[np.int32],
    sums: NDArray[np.float64],
    counts: NDArray[np.uint32],
    n_threads: int,
    gain: NDArray[np.float64],  # IN/OUT (n_nodes * n_candidates,)
    cut: NDArray[np.int32],  # IN/OUT (n_nodes * n_candidates, 3)
    sets: NDArray[np.uint64],  # IN/OUT (n_nodes * n_candidates, 4 or 16), or (…, 0) without any
    categorical: NDArray[np.uint8] | None,  # IN (n_features,); None: no feature is
    n_candidates: int = 1,
) -> None: ...
def child_sums(
    bins: BinArray,
    channels: NDArray[np.float32],
    n_bins: NDArray[np.int32],
    rows: NDArray[np.uint32],
    ranges: NDArray[np.int64],  # IN (n_nodes, 2)
    gain: NDArray[np.float64],
    cut: NDArray[np.int32],
    sets: NDArray[np.uint64],
    n_threads: int,
    sums: NDArray[np.float64],  # OUT (n_nodes, 2, n_channels)
) -> None: ...
def select_features(
    seed: int,
    keys: NDArray[np.uint64],
    n_features: int,
    n_threads: int,
    out: NDArray[np.int32],  # OUT (n_nodes, n_selected)
) -> None: ...
def partition(
    bins: BinArray,
    n_bins: NDArray[np.int32],
    rows: NDArray[np.uint32],  # IN/OUT
    ranges: NDArray[np.int64],
    gain: NDArray[np.float64],
    cut: NDArray[np.int32],
    sets: NDArray[np.uint64],  # IN (n_nodes, 4 or 16), or (n_nodes, 0) without categories
    n_threads: int,
    middles: NDArray[np.int64],  # OUT (n_nodes,)
) -> None: ...
def count_rows(
    plan: Sampling,
    trees: NDArray[np.int64],
    ids: NDArray[np.int64],
    n_threads: int,
    counts: NDArray[np.int64],  # OUT (n_trees,)
) -> None: ...
def draw_rows(
    plan: Sampling,
    trees: NDArray[np.int64],
    ids: NDArray[np.int64],
    n_threads: int,
    starts: NDArray[np.int64],
    rows: NDArray[np.uint32],  # OUT
) -> None: ...
def fill_leaves(
    plan: Sampling,
    trees: NDArray[np.int64],
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint8],
    sets: NDArray[np.uint64] | None,  # IN (n_sets, 4 or 16); None: no node is categorical
    bins: BinArray,
    channels: NDArray[np.float32],
    n_bins: NDArray[np.int32],
    row_weights: NDArray[np.float32] | None,
    ids: NDArray[np.int64],
    n_threads: int,
    sums: NDArray[np.float64],  # IN/OUT (n_leaves, n_channels)
    weights: NDArray[np.float64],  # IN/OUT (n_leaves,)
) -> None: ...
def route_bins(
    plan: Sampling,
    trees: NDArray[np.int64],
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint8],
    sets: NDArray[np.uint64] | None,  # IN (n_sets, 4 or 16); None: no node is categorical
    bins: BinArray,
    n_bins: NDArray[np.int32],
    ids: NDArray[np.int64],
    n_threads: int,
    leaves: NDArray[np.int32],  # OUT (n_rows, n_trees); -1: the row does not fill the tree
    copies: NDArray[np.uint8],  # OUT (n_rows, n_trees)
) -> None: ...
def route(
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint8],
    sets: NDArray[np.uint64] | None,  # IN (n_sets, 4 or 16); None: no node is categorical
    x: NDArray[np.float64],
    n_threads: int,
    leaves: NDArray[np.int32],  # OUT (n_rows, n_trees)
) -> None: ...
def average(
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint8],
    sets: NDArray[np.uint64] | None,  # IN (n_sets, 4 or 16); None: no node is categorical
    leaf_sums: NDArray[np.float32],
    leaf_weights: NDArray[np.float32],
    x: NDArray[np.float64],
    out_of_bag: Sampling | None,
    row_ids: NDArray[np.int64] | None,
    n_threads: int,
    out: NDArray[np.float64],  # OUT (n_rows, n_leaf_channels)
    used: NDArray[np.int32],  # OUT (n_rows,)
) -> None: ...
def score(
    roots: NDArray[np.int64],
    nodes: NDArray[np.uint8],
    leaf_values: NDArray[np.float64],
    leaf_constants: NDArray[np.float64],
    leaf_slopes: NDArray[np.float64],
    term_starts: NDArray[np.int64],  # IN (n_leaves + 1,)
    term_features: NDArray[np.int32],
    term_coefficients: NDArray[np.float64],
    x: NDArray[np.float64],  # IN (n_rows, n_features), without the dose
    doses: NDArray[np.float64],  # IN (n_rows or 1, n_doses), ascending in each row
    n_threads: int,
    out: NDArray[np.float64],  # OUT (n_rows, n_doses)
) -> None: ...
def bin_values(
    x: NDArray[np.float64],
    edges: NDArray[np.float64],
    edge_starts: NDArray[np.int64],
    n_threads: int,
    out: BinArray,  # OUT (n_rows, n_features)
) -> None: ...
def solve_moments(
    moments: NDArray[np.float64],
    penalty: NDArray[np.float64],  # IN (n_rows or 1, n_coefficients)
    n_threads: int,
    out: NDArray[np.float64],  # OUT (n_rows, n_coefficients)
) -> None: ...
