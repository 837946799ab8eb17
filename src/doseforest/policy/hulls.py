"""Concave hulls of every unit's (weight, value) points: what each further bit of budget buys.

A unit starts at its dose of least weight and climbs from vertex to vertex of its hull. Each step
(an increment) has a slope, value per weight, and the slopes of a unit descend: whoever takes
increments of all units in descending order of slopes spends every bit of the budget best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.policy.problem import DoseProblem

STEEPEST = 1e200  # so that prices times weights stay finite


@dataclass(frozen=True, slots=True)
class Increments:
    """Steps along the hulls of all units, those of a unit one after the other."""

    start: IntArray  # (n_units,): dose of least weight, the most valuable of such
    slopes: FloatArray  # (n_increments,): value per weight; descending within a unit
    weights: FloatArray  # (n_increments,): positive
    units: NDArray[np.int32]  # (n_increments,)
    doses: NDArray[np.int16]  # (n_increments,): dose after the step

    def __len__(self) -> int:
        return len(self.slopes)


def hull_increments(problem: DoseProblem, weights: Array) -> Increments:
    """Increments of all units, block by block.

    Doses that cost more than another of at least their value are on no hull, nor are those below
    the line between two others. Memory: 22 bytes for each increment, of which there are at most
    n_units x (n_doses - 1), and as much again while blocks are joined.

    Examples
    --------
    >>> value = np.array([[0.0, 1.0, 4.0, 5.0]])
    >>> problem = DoseProblem(value, np.arange(4.0)[None], np.arange(4.0), None, ())
    >>> steps = hull_increments(problem, problem.cost)
    >>> steps.doses, steps.slopes, steps.weights
    (array([2, 3], dtype=int16), array([2., 1.]), array([2., 1.]))
    """
    starts, parts = [], []
    for rows in problem.blocks():
        values = problem.values_at(rows)
        start, slopes, steps, units, doses = _block_increments(
            values, weights[rows].astype(np.float64)
        )
        starts.append(start)
        parts.append((slopes, steps, units + np.int32(rows.start), doses))
    if not parts:
        none = np.empty(0)
        return Increments(
            np.empty(0, np.int64), none, none, none.astype(np.int32), none.astype(np.int16)
        )
    slopes, steps, units, doses = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Increments(np.concatenate(starts), slopes, steps, units, doses)


def _block_increments(
    values: FloatArray, weights: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray, NDArray[np.int32], NDArray[np.int16]]:
    """Start, slopes, weights, units and doses of a block: Graham's scan of its units at once."""
    order, x, y = _by_weight(values, weights)
    stack = _Stack.empty(*x.shape)
    for point in range(len(x)):
        stack.add(x[point], y[point], order[point])
    levels = np.arange(1, len(x))[:, None] <= stack.top
    taken = np.ascontiguousarray(levels.T)  # unit by unit
    climbed = np.diff(stack.x, axis=0)
    units = np.broadcast_to(np.arange(taken.shape[0], dtype=np.int32)[:, None], taken.shape)
    return (
        stack.dose[0].astype(np.int64),
        stack.slope[1:].T[taken],
        climbed.T[taken],
        units[taken],
        stack.dose[1:].T[taken],
    )


def _by_weight(
    values: FloatArray, weights: FloatArray
) -> tuple[NDArray[np.int16], FloatArray, FloatArray]:
    """Points of every unit in ascending order of weights, each (n_doses, n_units)."""
    n_doses = values.shape[1]
    if (weights[:, 1:] >= weights[:, :-1]).all():
        order = np.broadcast_to(np.arange(n_doses, dtype=np.int16)[:, None], values.T.shape)
        return order, np.ascontiguousarray(weights.T), np.ascontiguousarray(values.T)
    by_weight = np.argsort(weights, axis=1, kind="stable")
    x = np.ascontiguousarray(np.take_along_axis(weights, by_weight, 1).T)
    y = np.ascontiguousarray(np.take_along_axis(values, by_weight, 1).T)
    return np.ascontiguousarray(by_weight.T.astype(np.int16)), x, y


@dataclass(slots=True)
class _Stack:
    """Vertices of the hulls so far, level by level, of all units of a block."""

    x: FloatArray  # (n_doses, n_units)
    y: FloatArray  # (n_doses, n_units)
    slope: FloatArray  # (n_doses, n_units): from the vertex below
    dose: NDArray[np.int16]  # (n_doses, n_units)
    top: IntArray  # (n_units,): level of the last vertex, -1 before the first
    height: FloatArray  # (n_units,): its y

    @classmethod
    def empty(cls, n_doses: int, n_units: int) -> _Stack:
        shape = (n_doses, n_units)
        return cls(
            np.zeros(shape),
            np.zeros(shape),
            np.full(shape, np.inf),
            np.zeros(shape, np.int16),
            np.full(n_units, -1),
            np.full(n_units, -np.inf),
        )

    def add(self, x: FloatArray, y: FloatArray, dose: NDArray[np.int16]) -> None:
        """Put the next point of every unit on its hull; those that reach no higher are left out."""
        units = np.flatnonzero(y > self.height)  # minus infinity marks what is not allowed
        self.height[units] = y[units]
        n_units = len(self.top)
        while len(units):
            top = self.top[units]
            place = np.maximum(top, 0) * n_units + units
            run = x[units] - self.x.ravel()[place]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                slope = np.minimum((y[units] - self.y.ravel()[place]) / run, STEEPEST)
            # The vertex below the new point goes: it lies under the hull, or costs the same.
            under = (top >= 0) & ((slope > self.slope.ravel()[place]) | (run <= 0))
            stays = ~under
            kept = units[stays]
            self.top[kept] += 1
            level = self.top[kept]
            self.x[level, kept] = x[kept]
            self.y[level, kept] = y[kept]
            self.slope[level, kept] = np.where(level > 0, slope[stays], np.inf)
            self.dose[level, kept] = dose[kept]
            units = units[under]
            self.top[units] -= 1
