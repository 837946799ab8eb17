"""The table of split statistics that need no arguments. To add one: a recipe and a line."""

from __future__ import annotations

from collections.abc import Callable

from doseforest.engine.splits.mean_splits import SplitByMeans, SplitByMeanSlopes
from doseforest.engine.splits.ratio_splits import SplitByRatios, SplitByRatioSlopes
from doseforest.engine.splits.split_statistics import SplitRecipe

SPLIT_STATISTICS: dict[str, Callable[[], SplitRecipe]] = {
    "means": SplitByMeans,
    "mean_slopes": SplitByMeanSlopes,
    "ratios": SplitByRatios,
    "ratio_slopes": SplitByRatioSlopes,
}


def split_recipe(given: SplitRecipe | str | None) -> SplitRecipe:
    """The recipe of a name, the one that was given, or that of mean curves.

    >>> split_recipe("means")
    SplitByMeans()
    """
    if given is None:
        return SplitByMeans()
    return SPLIT_STATISTICS[given]() if isinstance(given, str) else given
