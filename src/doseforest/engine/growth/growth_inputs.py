"""What a forest is grown from, checked as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, ChannelArray, FloatArray, IntArray
from doseforest.data import checks
from doseforest.data.categories import learn_categories
from doseforest.data.exact_grid import MAX_ROWS
from doseforest.data.feature_table import BlockSource, as_table
from doseforest.engine.splits.mean_splits import SplitByMeans
from doseforest.engine.splits.split_statistics import SplitRecipe

MAX_CURVE_POINTS = 512
MAX_LEAF_CHANNELS = 4096


@dataclass(frozen=True, slots=True)
class GrowthInputs:
    """Checked inputs of a forest of curves."""

    table: BlockSource
    curves: (
        Array  # (n_rows, n_columns), a column per dose unless the statistic reads them otherwise
    )
    leaf_channels: Array  # (n_rows, n_leaf_channels)
    doses: FloatArray | None  # (n_doses,)
    quadrature: FloatArray  # (n_points,) weights of what children are compared at
    spread: Array | None  # (n_rows, 1 or 2)
    weights: ChannelArray | None  # (n_rows,) of mean 1; None: all equal
    row_ids: IntArray  # (n_rows,) distinct
    sampling_ids: IntArray  # (n_rows,) row ids, or group codes
    grows: NDArray[np.bool_] | None  # (n_rows,) rows that may grow trees; the others fill leaves
    treatment: FloatArray | None  # (n_rows,) observed doses

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.table.n_rows


def check_inputs(
    X: Any,
    y: Any,
    *,
    doses: Any = None,
    quadrature: Any = None,
    leaf_channels: Any = None,
    spread: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    grows: Any = None,
    treatment: Any = None,
    statistic: SplitRecipe | None = None,
    categorical_features: Any = None,
) -> GrowthInputs:
    """Check everything that `CurveForest.fit` is given; its docstring tells what is what.

    Examples
    --------
    >>> check_inputs([[1.0], [2.0]], [0.5, 0.7]).curves
    array([[0.5],
           [0.7]])
    """
    table = as_table(X, with_categories=True)
    n_rows = table.n_rows
    if n_rows > MAX_ROWS:
        raise ValueError(
            f"The 'X' parameter must have at most {MAX_ROWS} rows, the most whose sums are exact. "
            f"Got {n_rows} instead."
        )
    curves = checks.checked_columns(y, "y", n_rows, MAX_CURVE_POINTS)
    if leaf_channels is None:
        leaf_values = curves
    else:
        leaf_values = checks.checked_columns(
            leaf_channels, "leaf_channels", n_rows, MAX_LEAF_CHANNELS
        )
    recipe = SplitByMeans() if statistic is None else statistic
    n_doses = recipe.n_doses(curves.shape[1])
    grid = None
    if doses is not None:
        grid = checks.checked_grid(doses, "doses", n_doses, ascending=True)
    given_weights = None
    if quadrature is not None:
        given_weights = checks.checked_grid(quadrature, "quadrature", n_doses, ascending=False)
    observed = None
    if treatment is not None:
        observed = checks.checked_columns(treatment, "treatment", n_rows, 1)[:, 0]
    ids = checks.checked_row_ids(row_ids, n_rows)
    return GrowthInputs(
        table=learn_categories(table, categorical_features),
        curves=curves,
        leaf_channels=leaf_values,
        doses=grid,
        quadrature=recipe.point_weights(n_doses, grid, given_weights),
        spread=None if spread is None else checks.checked_columns(spread, "spread", n_rows, 2),
        weights=checks.checked_weights(sample_weight, n_rows),
        row_ids=ids,
        sampling_ids=ids if groups is None else checks.group_codes(groups, n_rows),
        grows=None if grows is None else checks.checked_halves(grows, "grows", n_rows),
        treatment=None if observed is None else observed.astype(np.float64, copy=False),
    )
