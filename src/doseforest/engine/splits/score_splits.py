"""Splits by scores of a regression of residuals on functions of the dose, solved in each node.

Rows bring functions B_i of the dose and a residual e_i, both with what the covariates predict taken
out. A node regresses e on B; the children's mean scores tell how far each is from its regression.
With the dose as the one function this is a linear causal forest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import ChannelArray, FloatArray
from doseforest.data.exact_grid import exact_channels, padded_width
from doseforest.engine.splits.distances import DistanceFunction, compiled_distance, curve_distances
from doseforest.engine.splits.split_statistics import (
    STATISTIC_CODES,
    StatisticRows,
    dose_weights,
    refuse_positivity,
)


@dataclass(frozen=True, slots=True)
class SplitByScores:
    """Children are compared by their mean scores in the regression of their parent.

    ``y`` holds packed moments, as `RidgeMoments` reads them: the upper triangle of B B' by rows,
    then B e, for functions B of the dose and a residual e. With M and v a node's means of both, A =
    M + diag(penalty) and beta = A^-1 v, the score of a row is A^-1 B (e - B' beta). With the dose
    as the one function this grows a linear causal forest.

    Parameters
    ----------
    penalty : sequence of float
        Penalty of each function, as in `RidgeMoments`. Raise it where nodes are small or functions
        nearly collinear; scores then see less of their differences.
    functions : array of shape (n_doses, n_functions), optional
        The functions at the ``doses`` of fit: scores are then compared as curves, in the metric of
        the doses, which takes time in proportion to the doses. By default they are compared
        coefficient by coefficient.

    Examples
    --------
    >>> SplitByScores(penalty=(0.0, 0.0)).n_doses(5)
    2
    >>> SplitByScores(penalty=(0.0,), functions=[[0.0], [1.0], [2.0]]).n_doses(2)
    3
    """

    penalty: tuple[float, ...]
    functions: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        penalty: Sequence[float] = tuple(float(value) for value in self.penalty)
        object.__setattr__(self, "penalty", penalty)
        valid = all(0 <= value < np.inf for value in penalty)
        if not (1 <= len(penalty) <= _core.MAX_FUNCTIONS and valid):
            raise ValueError(
                f"The 'penalty' parameter of SplitByScores must be 1 to {_core.MAX_FUNCTIONS} "
                f"floats in [0, inf). Got {self.penalty!r} instead."
            )
        if self.functions is not None:
            object.__setattr__(self, "functions", _checked_functions(self.functions, len(penalty)))

    def n_doses(self, n_columns: int) -> int:
        """As many as the functions are given at; by default a point for each coefficient."""
        if n_columns != self._n_moments:
            raise ValueError(
                f"The 'y' parameter must have {self._n_moments} columns, the packed moments of "
                f"{len(self.penalty)} functions, for SplitByScores. Got {n_columns} instead."
            )
        return len(self.penalty) if self.functions is None else len(self.functions)

    def n_channels(self, n_columns: int) -> int:
        """Every column is a channel."""
        return n_columns

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the doses, or of the coefficients."""
        return dose_weights(n_doses, doses, given)

    def lay_out(self, rows: StatisticRows) -> ScoreStatistic:
        """Make the channels."""
        refuse_positivity(rows, "SplitByScores")
        columns = [rows.values]
        if rows.weights is not None:
            columns.append(np.ones((len(rows.values), 1)))
        k = len(self.penalty)
        statistic = ScoreStatistic(
            channels=exact_channels(*columns, weights=rows.weights),
            penalty=np.array(self.penalty),
            functions=np.eye(k) if self.functions is None else np.array(self.functions),
            quadrature=rows.quadrature,
            distance=rows.distance,
            weighted=rows.weights is not None,
            noise_per_row=0.0,
        )
        return replace(statistic, noise_per_row=statistic.rounding_noise())

    @property
    def _n_moments(self) -> int:
        k = len(self.penalty)
        return k * (k + 1) // 2 + k


@dataclass(frozen=True, slots=True)
class ScoreStatistic:
    """Packed moments of the rows, and how scores are made of their sums."""

    channels: ChannelArray  # (n_rows, padded): upper triangle of B B' | B e | weight?
    penalty: FloatArray  # (k,)
    functions: FloatArray  # (n_points, k)
    quadrature: FloatArray  # (n_points,)
    distance: str | DistanceFunction
    weighted: bool
    noise_per_row: float

    @property
    def n_moments(self) -> int:
        """Channels without the weight."""
        k = len(self.penalty)
        return k * (k + 1) // 2 + k

    @property
    def weight_channel(self) -> int:
        """Channel of the row weights, or -1."""
        return self.n_moments if self.weighted else -1

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Return the compiled form of a distance of the table."""
        assert isinstance(self.distance, str)
        compiled = compiled_distance(self.distance)
        n_points, k = self.functions.shape
        stride = padded_width(n_points)
        weights = self.quadrature if compiled.uses_quadrature else np.ones(n_points)
        fields = np.zeros((1 + k, stride))
        fields[0, :n_points], fields[1:, :n_points] = weights, self.functions.T
        return _core.SplitRule(
            channel_weights=np.zeros(self.channels.shape[1]),
            norm=compiled.norm,
            squared=compiled.squared,
            positivity=0,
            weight_channel=self.weight_channel,
            spread_channel=-1,
            zeta=0.0,
            min_rows=min_rows,
            min_fraction=min_fraction,
            statistic=STATISTIC_CODES["scores"],
            stride=stride,
            n_functions=k,
            settings=np.concatenate([fields[0], self.penalty, fields[1:].ravel()]),
        )

    def child_curves(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Mean scores of the children of each cut, as curves."""
        node = total[None, : self.n_moments] / total_weight
        beta = self._solved(node, node[:, -len(self.penalty) :])[0]
        sides = ((left, left_weight), (total - left, total_weight - left_weight))
        curves = []
        for sums, weight in sides:
            means = sums[:, : self.n_moments] / weight[:, None]
            scores = self._solved(node, self._residual(means, beta))
            curves.append((scores[:, None, :] * self.functions).sum(axis=-1))
        return curves[0], curves[1]

    def extra_gain(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> FloatArray:
        """Nothing."""
        return np.zeros(len(left))

    def rounding_noise(self) -> float:
        """Distance of two curves that differ by what rounding may do to the scores of the root."""
        k, moments = len(self.penalty), self.channels[:, : self.n_moments]
        total = float(len(moments))
        if self.weighted:
            total = float(self.channels[:, self.weight_channel].sum(dtype=np.float64))
        root = moments.sum(axis=0, dtype=np.float64)[None, :] / total
        beta = self._solved(root, root[:, -k:])[0]
        steps = np.abs(moments).max(axis=0, keepdims=True).astype(np.float64) * 2.0**-22
        steps[:, :-k] *= -1.0  # errors of v and of M beta add up
        shift = self._residual(steps, np.abs(beta))
        inverse = np.abs(self._solved(root, np.eye(k)))
        error = (np.abs(self.functions) * (inverse * shift).sum(axis=1)).sum(axis=1)[None, :]
        noise = curve_distances(self.distance, error, np.zeros_like(error), self.quadrature)[0]
        return float(noise) if np.isfinite(noise) else 0.0

    def _residual(self, moments: FloatArray, beta: FloatArray) -> FloatArray:
        """Residual v - M beta of packed moments, (n, k)."""
        k = len(self.penalty)
        first, second = np.triu_indices(k)
        matrix = np.zeros((len(moments), k, k))
        matrix[:, first, second] = matrix[:, second, first] = moments[:, : len(first)]
        residual: FloatArray = moments[:, len(first) :] - (matrix * beta).sum(axis=-1)
        return residual

    def _solved(self, node: FloatArray, right_side: FloatArray) -> FloatArray:
        """Solutions of (M + diag(penalty)) b = v for one node's M and several v."""
        k = len(self.penalty)
        squares = np.broadcast_to(node[:, :-k], (len(right_side), node.shape[1] - k))
        out = np.empty((len(right_side), k))
        packed = np.ascontiguousarray(np.hstack([squares, right_side]))
        _core.solve_moments(packed, self.penalty[None, :], 1, out)
        return out


def _checked_functions(functions: object, k: int) -> tuple[tuple[float, ...], ...]:
    values = np.asarray(functions, np.float64)
    within = values.ndim == 2 and 1 <= len(values) <= _core.MAX_SCORE_POINTS
    if not within or values.shape[1] != k or not np.isfinite(values).all():
        raise ValueError(
            "The 'functions' parameter of SplitByScores must be finite numbers of shape "
            f"(1 to {_core.MAX_SCORE_POINTS} doses, {k} functions). "
            f"Got shape {values.shape} instead."
        )
    return tuple(tuple(row) for row in values.tolist())
