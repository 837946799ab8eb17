"""How much of each candidate correction is taken, judged by its shape, with a safety net."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.row_blocks import OneBlock, RowBlock, RowBlocks, Sums
from doseforest.nuisance.cross_fit import FoldModels

SHAPES = "shapes"  # (n_rows, n_candidates) what candidates add to the outcome, out of bag
TARGET = "target"  # (n_rows,) what corrected curves leave, less its mean given the covariates
N_FOLDS = 5  # of rows left out when the gain is measured
_FIRM = 1e4  # how firmly the shares are held to add up to 1


@dataclass(frozen=True, slots=True)
class ShapeStack:
    """Shares of candidates and what they gain out of bag."""

    shares: FloatArray  # (n_candidates,) not negative, adding up to at most 1, shrunk
    strength: float  # what the shares were multiplied by, in [0, 1]
    t_value: float  # paired t of the drop in risk before shrinkage, on rows left out
    risk: float  # mean squared residual without the correction
    corrected_risk: float  # with it

    def report(self, names: Sequence[str]) -> dict[str, Any]:
        """Shares of the candidates that have one, and what they gain out of bag."""
        shares = zip(names, self.shares.tolist(), strict=True)
        return {
            "shares": {name: share for name, share in shares if share > 0},
            "strength": self.strength,
            "t_value": self.t_value,
            "risk": self.risk,
            "corrected_risk": self.corrected_risk,
        }


def stack_shapes(
    shapes: FloatArray,
    target: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> ShapeStack:
    """Regress residuals on out-of-bag shapes, then shrink by how sure the gain is.

    Both are free of what the covariates alone explain, so that a candidate is judged by how the
    curve bends, not by its level (the R-risk). The strength is max(0, 1 - 1 / t^2), t the paired
    t-value of the drop in risk on rows that had no say in the shares: a correction that cannot be
    told from noise is not made.

    Parameters
    ----------
    shapes : array of shape (n_rows, n_candidates)
        What each candidate adds to the outcome of each row, from trees that have not seen it,
        less its mean given the covariates.
    target : array of shape (n_rows,)
        Residual of the outcome less its mean given the covariates.
    weights : array of shape (n_rows,), optional
    clusters : array of ints of shape (n_rows,), optional
        Rows that are not independent share a number.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> shapes = rng.normal(size=(1000, 2))
    >>> target = 0.8 * shapes[:, 0] + rng.normal(size=1000)
    >>> stack_shapes(shapes, target).shares.round(1)
    array([0.8, 0. ])
    """
    ids = np.arange(len(target)) if clusters is None else clusters
    columns = {SHAPES: shapes, TARGET: target}
    rows = RowBlock(np.empty((len(ids), 0)), target, target, weights, ids, ids % N_FOLDS, columns)
    return stack_blocks(OneBlock(rows, N_FOLDS), lambda block: block.folds)


def stack_blocks(blocks: RowBlocks, folds_of: Callable[[RowBlock], IntArray]) -> ShapeStack:
    """Stack the columns `SHAPES` for the column `TARGET`, see `stack_shapes`.

    Parameters
    ----------
    blocks : RowBlocks
    folds_of : callable
        Folds 0 to `N_FOLDS` - 1 of the rows on which the gain is measured.
    """

    def systems(block: RowBlock) -> list[FloatArray]:
        folds, root = folds_of(block), np.sqrt(block.leaf_weights)
        system = np.column_stack([block[SHAPES], block[TARGET]]) * root[:, None]
        return [system[folds == fold] for fold in range(N_FOLDS)]

    # The triangle of a QR factorisation has the same least squares problem in a few rows.
    triangles = blocks.triangles("stack the corrections", systems)
    shares = shares_up_to_one(triangles)
    others = tuple(
        shares_up_to_one([triangles[k] for k in range(N_FOLDS) if k != fold])
        for fold in range(N_FOLDS)
    )

    def gains(block: RowBlock) -> FloatArray:
        """What each group gains by shares that it had no say in."""
        shapes, target = block[SHAPES], block[TARGET]
        explained = FoldModels(folds_of(block), others, None).out_of_fold(
            lambda without, rows: shapes[rows] @ without
        )
        gain = target**2 - (target - explained) ** 2
        weighted = gain * np.sqrt(block.leaf_weights) ** 2
        return np.asarray(np.bincount(block.groups, weighted), np.float64)

    def first(block: RowBlock) -> Sums:
        gain, weights = gains(block), np.sqrt(block.leaf_weights) ** 2
        return len(gain), gain.sum(), weights.sum(), (block[TARGET] ** 2 * weights).sum()

    text = "gain of the corrections on rows left out"
    n_groups, total, weight, square = blocks.add_up(text, first)
    mean = total / n_groups
    (squares,) = blocks.add_up(text, lambda block: (((gains(block) - mean) ** 2).sum(),))
    spread = np.sqrt(squares / max(n_groups - 1, 1)) * np.sqrt(n_groups)
    t_value = float(total / spread) if spread > 0 else 0.0
    strength = max(0.0, 1.0 - 1.0 / t_value**2) if t_value > 0 else 0.0
    shares = strength * shares
    rows = np.vstack(triangles)
    left = rows[:, -1] - rows[:, :-1] @ shares
    return ShapeStack(
        shares=shares,
        strength=strength,
        t_value=t_value,
        risk=float(square / weight),
        corrected_risk=float((left**2).sum() / weight),
    )


def shares_up_to_one(triangles: Sequence[Any]) -> FloatArray:
    """Shares from the triangles of some rows, the target last."""
    triangle = np.asarray(np.linalg.qr(np.vstack(triangles), mode="r"))
    columns, target = triangle[:, :-1], triangle[:, -1]
    shares: FloatArray
    shares, _ = nnls(columns, target)
    if shares.sum() <= 1:
        return shares
    # On the border: a slack column takes the rest of a sum that is held to 1.
    firm = _FIRM * max(float(np.abs(columns).max()), float(np.abs(target).max()))
    bordered = np.vstack([columns, np.full((1, columns.shape[1]), firm)])
    shares, _ = nnls(bordered, np.append(target, firm))
    return np.asarray(shares / max(shares.sum(), 1.0))
