"""Which categories go left, in NumPy: candidates for the search in `engine/splits/split_search.py`.

The twin of cpp/categories.hpp and cpp/judged_categories.hpp: every subset of few categories; many
are cut in the orders of axes of their curves, by the rules of cpp/category_orders.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray, SetArray, set_words
from doseforest.engine.splits.distances import compiled_distance
from doseforest.engine.splits.split_statistics import SplitStatistic

MAX_ENUMERATED = 8  # bins with rows up to which every subset is tried
POWER_STEPS = 8
MAX_ORDERS = 4  # in a row, each from the cut before
MAX_POINT_ORDERS = 16  # by single points of the curves

BoolArray = NDArray[np.bool_]
Gains = Callable[[FloatArray, IntArray], FloatArray]  # of left sums and rows


@dataclass(frozen=True, slots=True)
class CategorySplit:
    """Bins of a feature that go left, and with which gain."""

    gain: float
    left: BoolArray  # (n_bins + 1,), the missing values at the end
    left_rows: int


def best_category_split(
    statistic: SplitStatistic,
    sums: FloatArray,  # (n_bins + 1, n_channels), the missing values at the end
    counts: IntArray,  # (n_bins + 1,)
    gains: Gains,
) -> CategorySplit | None:
    """Best set of categories of one histogram; None where no split is admissible.

    `gains` gives -inf or NaN to a left side that is not admissible.
    """
    present = np.flatnonzero(counts[:-1])
    if len(present) <= MAX_ENUMERATED:
        return _better(None, _subsets(present, counts), sums, counts, gains)
    axis = _principal_axis(statistic, sums, counts, present)
    if axis is None:
        return _better(None, _cuts(present, counts), sums, counts, gains)

    def improve(best: CategorySplit | None, axis: FloatArray) -> CategorySplit | None:
        order = _order_along(statistic, sums, counts, present, axis)
        return _better(best, _cuts(order, counts), sums, counts, gains)

    def follow(best: CategorySplit | None) -> CategorySplit | None:
        for _ in range(MAX_ORDERS - 1):
            axis = None if best is None else _axis_of_cut(statistic, sums, counts, best)
            result = best if axis is None else improve(best, axis)
            if result is best:
                break
            best = result
        return best

    first = follow(improve(None, axis))
    best = first
    for axis in _point_axes(statistic, sums, counts, present):
        best = improve(best, axis)
    return first if best is first else follow(best)


def as_set(left: BoolArray, counts: IntArray, missing_left: bool) -> SetArray:
    """Set of the bins that go left; bins without rows go where missing values go.

    >>> as_set(np.array([True, False, True, False]), np.array([2, 1, 3, 0]), False)[0]
    np.uint64(5)
    """
    goes_left = np.where(counts[:-1] > 0, left[:-1], missing_left)
    bits = np.zeros((set_words(len(goes_left)), 64), np.uint64)
    bits.flat[: len(goes_left)] = goes_left
    places = np.arange(64, dtype=np.uint64)
    words: SetArray = (bits << places).sum(axis=1, dtype=np.uint64)
    return words


def _better(
    best: CategorySplit | None,
    candidates: BoolArray,  # (n_candidates, n_bins + 1)
    sums: FloatArray,
    counts: IntArray,
    gains: Gains,
) -> CategorySplit | None:
    """Return the first candidate of the largest gain if it beats the best so far."""
    left_rows = candidates @ counts
    gained = gains(candidates @ sums, left_rows)  # sums are exact in any order
    if not np.isfinite(gained).any():
        return best
    winner = int(np.nanargmax(gained))
    if best is not None and not gained[winner] > best.gain:
        return best
    return CategorySplit(float(gained[winner]), candidates[winner], int(left_rows[winner]))


def _subsets(present: IntArray, counts: IntArray) -> BoolArray:
    """Every subset with the first bin in it; missing values are one more item."""
    items = np.append(present, len(counts) - 1) if counts[-1] else present
    numbers = np.arange(2 ** (len(items) - 1))
    sides = (numbers[:, None] >> np.arange(len(items) - 1)) & 1
    candidates = np.zeros((len(numbers), len(counts)), bool)
    candidates[:, items[0]] = True
    candidates[:, items[1:]] = sides > 0
    return candidates


def _cuts(order: IntArray, counts: IntArray) -> BoolArray:
    """The first bins of an order, with the missing values on the right, then on the left."""
    rank = np.full(len(counts), len(order))
    rank[order] = np.arange(len(order))
    cuts = rank <= np.arange(len(order))[:, None]
    if not counts[-1]:
        return cuts
    with_missing = cuts.copy()
    with_missing[:, -1] = True
    return np.concatenate([cuts, with_missing])


def _weight(statistic: SplitStatistic, sums: FloatArray, counts: IntArray | int) -> FloatArray:
    if statistic.weight_channel >= 0:
        return sums[..., statistic.weight_channel]
    return np.asarray(counts, dtype=np.float64)


def _point_weights(statistic: SplitStatistic) -> FloatArray:
    """Quadrature of the points of a curve, or ones where the distance has no use for it."""
    named = isinstance(statistic.distance, str)
    if named and not compiled_distance(str(statistic.distance)).uses_quadrature:
        return np.ones(len(statistic.quadrature))
    return statistic.quadrature


def _difference(
    statistic: SplitStatistic,
    own: FloatArray,
    rows: IntArray | int,
    sums: FloatArray,
    counts: IntArray,
) -> FloatArray:
    """Curves less those of the other rows, times both weights; 0 where there are no others."""
    total = sums.sum(axis=0)
    node_weight = float(_weight(statistic, total, int(counts.sum())))
    weight = np.atleast_1d(_weight(statistic, own, rows))
    with np.errstate(all="ignore"):
        curves, others = statistic.child_curves(np.atleast_2d(own), weight, total, node_weight)
    both = (weight * (node_weight - weight))[:, None]
    difference: FloatArray = np.where(both > 0, both * (curves - others), 0.0)
    return difference


def _direction(statistic: SplitStatistic, difference: FloatArray) -> FloatArray:
    """Direction whose product with a difference is its norm; a user's distance counts as L2."""
    norm = compiled_distance(statistic.distance).norm if isinstance(statistic.distance, str) else 1
    directions: dict[int, FloatArray] = {
        0: np.sign(difference),
        1: difference,
        2: np.eye(len(difference))[np.abs(difference).argmax()],
    }
    return directions[norm]


def _axis(statistic: SplitStatistic, direction: FloatArray) -> FloatArray | None:
    """Direction of size 1, its largest value positive, times the points' weights."""
    weights = _point_weights(statistic)
    counted = np.where(weights > 0, direction, 0.0)
    largest = counted[np.abs(counted).argmax()]
    axis: FloatArray = direction / (largest or 1.0) * weights
    return axis if largest else None


def _principal_axis(
    statistic: SplitStatistic, sums: FloatArray, counts: IntArray, present: IntArray
) -> FloatArray | None:
    """Axis along which mean curves vary most: the power method from the one farthest out."""
    weight = _weight(statistic, sums[present], counts[present])
    heavy = weight > 0
    codes = present[heavy]
    differences = _difference(statistic, sums[codes], counts[codes], sums, counts)
    spread = (differences**2 * _point_weights(statistic)).sum(axis=1) / weight[heavy]
    if not spread.any():
        return None
    axis = _axis(statistic, differences[spread.argmax()])
    for _ in range(POWER_STEPS):
        if axis is None:
            break
        scores = (differences * axis).sum(axis=1) / weight[heavy]
        following = _axis(statistic, (differences * scores[:, None]).sum(axis=0))
        if following is None:
            break
        axis = following
    return axis


def _axis_of_cut(
    statistic: SplitStatistic, sums: FloatArray, counts: IntArray, cut: CategorySplit
) -> FloatArray | None:
    """Axis of a cut's own difference of curves, along which some cut is no worse."""
    left = sums[cut.left].sum(axis=0)
    difference = _difference(statistic, left, cut.left_rows, sums, counts)[0]
    return _axis(statistic, _direction(statistic, difference))


def _point_axes(
    statistic: SplitStatistic, sums: FloatArray, counts: IntArray, present: IntArray
) -> list[FloatArray]:
    """Mean over the points, then the points at which categories differ most; none of one point.

    They are no more than categories have rows on average.
    """
    rows_per_category = int(counts.sum()) // len(present)
    if rows_per_category < 2:
        return []
    weight = _weight(statistic, sums[present], counts[present])
    heavy = weight > 0
    codes = present[heavy]
    differences = _difference(statistic, sums[codes], counts[codes], sums, counts)
    point_weights = _point_weights(statistic)
    spread = (differences**2 * point_weights / weight[heavy, None]).sum(axis=0)
    points = [p for p in np.argsort(-spread, kind="stable") if spread[p] > 0]
    if len(points) < 2:
        return []
    most = min(MAX_POINT_ORDERS, rows_per_category - 1)
    return [(point_weights > 0) * 1.0, *np.eye(len(spread))[points[:most]]]


def _order_along(
    statistic: SplitStatistic,
    sums: FloatArray,
    counts: IntArray,
    present: IntArray,
    axis: FloatArray,
) -> IntArray:
    """Bins by their mean along an axis, ties by bin; those without weight have the node's mean."""
    weight = _weight(statistic, sums[present], counts[present])
    differences = _difference(statistic, sums[present], counts[present], sums, counts)
    scores = (differences * axis).sum(axis=1) / np.where(weight > 0, weight, 1.0)
    return present[np.argsort(np.where(weight > 0, scores, 0.0), kind="stable")]
