"""A way within limits that pull apart: one unit moves at a time, the one that helps most."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.policy.problem import BLOCK_ENTRIES, DoseProblem, Limit

MOST_MOVES = 2000
MOST_WORK = 2 * 10**8  # entries of matrices that are looked at: some seconds


def exchange(problem: DoseProblem, choice: IntArray) -> IntArray | None:
    """Moves that lower the total of what is beyond caps, even where one cap gets worse by them.

    Returns None where no single move helps any more, or after too much work.
    """
    choice = choice.copy()
    scales = [_scale(limit, problem) for limit in problem.limits]
    entries = problem.n_units * problem.n_doses * len(problem.limits)
    for _ in range(min(MOST_MOVES, 1 + MOST_WORK // max(entries, 1))):
        if problem.meets_limits(choice):
            return choice
        used = problem.used(choice)
        over = [each - limit.caps for each, limit in zip(used, problem.limits, strict=True)]
        unit, dose, change = _best_move(problem, choice, over, scales)
        if change >= -1e-12:
            return None
        choice[unit] = dose
    return None


def _scale(limit: Limit, problem: DoseProblem) -> float:
    """Typical range of a unit's weights, to add up what is beyond caps of several kinds."""
    total = sum(float(np.ptp(limit.weights[rows], axis=1).sum()) for rows in problem.blocks())
    return total / problem.n_units or 1.0


def _best_move(
    problem: DoseProblem, choice: IntArray, over: list[FloatArray], scales: list[float]
) -> tuple[int, int, float]:
    """Unit, dose and change of the total beyond caps; the first of equals."""
    affected = np.zeros(problem.n_units, bool)
    for limit, each in zip(problem.limits, over, strict=True):
        affected |= (limit.of_units(each, slice(0, problem.n_units)) > 0)[:, 0]
    units = np.flatnonzero(affected)
    size = max(1, BLOCK_ENTRIES // problem.n_doses)
    best = (0, 0, np.inf)
    for start in range(0, len(units), size):
        rows = units[start : start + size]
        change = np.where(problem.values_at(rows) > -np.inf, 0.0, np.inf)
        for limit, each, scale in zip(problem.limits, over, scales, strict=True):
            weights = limit.weights[rows].astype(np.float64)
            step = weights - np.take_along_axis(weights, choice[rows, None], 1)
            now = limit.of_units(each, rows)
            change += (np.maximum(now + step, 0.0) - np.maximum(now, 0.0)) / scale
        place, dose = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[place, dose] < best[2]:
            best = (int(rows[place]), int(dose), float(change[place, dose]))
    return best
