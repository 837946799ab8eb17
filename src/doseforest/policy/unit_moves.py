"""Moves of single units to other doses: back within the limits, and up into what they leave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.policy.greedy import Marks
from doseforest.policy.lagrangian import Prices, net_values
from doseforest.policy.problem import DoseProblem, Limit

MOST_REPAIRS = 200
MOST_IMPROVEMENTS = 50


@dataclass(frozen=True, slots=True)
class _Moves:
    """At most one move for each unit."""

    units: IntArray  # (n_moves,)
    doses: IntArray  # (n_moves,)
    worth: FloatArray  # (n_moves,): moves of larger worth are made first
    steps: tuple[FloatArray, ...]  # (n_moves,) for each limit: weight after less weight before

    def only(self, marks: Marks | IntArray) -> _Moves:
        steps = tuple(step[marks] for step in self.steps)
        return _Moves(self.units[marks], self.doses[marks], self.worth[marks], steps)


def repair(problem: DoseProblem, choice: IntArray, prices: Prices) -> IntArray | None:
    """A choice within all limits near another one; None where single moves do not lead to one.

    Units of broken parts move to doses that take less of them, those first that lose least net
    value for the relief; no move breaks another limit.
    """
    choice = choice.copy()
    for _ in range(MOST_REPAIRS):
        used = problem.used(choice)
        over = [each - limit.caps for each, limit in zip(used, problem.limits, strict=True)]
        broken = [each > limit.roomy_caps for each, limit in zip(used, problem.limits, strict=True)]
        if not any(marks.any() for marks in broken):
            return choice
        over = [
            np.where(marks, each, np.minimum(each, 0.0))
            for marks, each in zip(broken, over, strict=True)
        ]
        moves = _relief(problem, choice, prices, over)
        moves = _needed(problem.limits, moves, over)
        if not len(moves.units):
            return None
        choice[moves.units] = moves.doses
    return None


def improve(problem: DoseProblem, choice: IntArray) -> IntArray:
    """Moves to doses of more value, as long as one fits into what the limits leave."""
    choice = choice.copy()
    units = np.arange(problem.n_units)
    for _ in range(MOST_IMPROVEMENTS):
        used = problem.used(choice)
        room = [
            np.maximum(limit.caps - each, 0.0)
            for each, limit in zip(used, problem.limits, strict=True)
        ]
        moves = _gains(problem, choice, room, units)
        if not len(moves.units):
            break
        units = moves.units  # room mostly shrinks: who has no move now will hardly get one
        moves = moves.only(_that_fit(problem.limits, moves, room))
        choice[moves.units] = moves.doses
    return choice


def _gains(
    problem: DoseProblem, choice: IntArray, room: list[FloatArray], units: IntArray
) -> _Moves:
    """The most valuable move of each of these units that would fit by itself."""
    result = []
    for rows in _pieces(units, problem.n_doses):
        values = problem.values_at(rows)
        now = choice[rows, None]
        gains = values - np.take_along_axis(values, now, 1)
        steps, share = [], np.zeros_like(gains)
        for limit, each in zip(problem.limits, room, strict=True):
            weights = limit.weights[rows].astype(np.float64)
            step = weights - np.take_along_axis(weights, now, 1)
            left = limit.of_units(each, rows)
            gains[step > left] = 0.0
            with np.errstate(all="ignore"):
                share += np.where(step > 0, step / left, 0.0)
            steps.append(step)
        doses = np.argmax(gains, axis=1)
        place = np.flatnonzero(gains[np.arange(len(doses)), doses] > 0)
        doses = doses[place]
        with np.errstate(all="ignore"):
            worth = gains[place, doses] / share[place, doses]
        result.append(
            _Moves(rows[place], doses, worth, tuple(step[place, doses] for step in steps))
        )
    return _joined(result, len(problem.limits))


def _relief(
    problem: DoseProblem, choice: IntArray, prices: Prices, over: list[FloatArray]
) -> _Moves:
    """The move of each unit of a broken part that loses least for its share of the relief."""
    affected = np.zeros(problem.n_units, bool)
    for limit, each in zip(problem.limits, over, strict=True):
        affected |= (limit.of_units(each, slice(0, problem.n_units)) > 0)[:, 0]
    result = []
    for rows in _pieces(np.flatnonzero(affected), problem.n_doses):
        net = net_values(problem, prices, rows)
        now = choice[rows, None]
        loss = np.take_along_axis(net, now, 1) - net  # infinite where a dose is not allowed
        possible = np.isfinite(loss)
        relief, steps = np.zeros_like(loss), []
        for limit, each in zip(problem.limits, over, strict=True):
            weights = limit.weights[rows].astype(np.float64)
            step = weights - np.take_along_axis(weights, now, 1)
            too_much = limit.of_units(each, rows)
            possible &= step <= np.maximum(-too_much, 0.0)
            with np.errstate(all="ignore"):
                relief += np.where(too_much > 0, np.minimum(-step / too_much, 1.0), 0.0)
            steps.append(step)
        possible &= relief > 0
        with np.errstate(all="ignore"):
            worth = np.where(possible, -np.maximum(loss, 0.0) / relief, -np.inf)
        doses = np.argmax(worth, axis=1)
        place = np.flatnonzero(possible[np.arange(len(doses)), doses])
        doses = doses[place]
        result.append(
            _Moves(
                rows[place],
                doses,
                worth[place, doses],
                tuple(step[place, doses] for step in steps),
            )
        )
    return _joined(result, len(problem.limits))


def _needed(limits: tuple[Limit, ...], moves: _Moves, over: list[FloatArray]) -> _Moves:
    """Moves in order of worth until every broken part is relieved, and that break no other."""
    needed = np.zeros(len(moves.units), bool)
    for limit, each, step in zip(limits, over, moves.steps, strict=True):
        parts = limit.parts_of(moves.units)
        freed = _sums_before(parts, moves.worth, -step)
        needed |= (each[parts] > 0) & (freed < each[parts])
    moves = moves.only(needed)
    return moves.only(_that_fit(limits, moves, [np.maximum(-each, 0.0) for each in over]))


def _that_fit(limits: tuple[Limit, ...], moves: _Moves, room: list[FloatArray]) -> Marks:
    """Moves that fit into the rooms one after the other, by worth; the first always does."""
    fit = np.ones(len(moves.units), bool)
    for limit, each, step in zip(limits, room, moves.steps, strict=True):
        parts = limit.parts_of(moves.units)
        more = np.maximum(step, 0.0)
        fit &= (more == 0) | (_sums_before(parts, moves.worth, more) + more <= each[parts])
    return fit


def _sums_before(parts: IntArray, worth: FloatArray, amounts: FloatArray) -> FloatArray:
    """Sum of the amounts of moves of the same part and more worth, the first of equals first."""
    order = np.lexsort((-worth, parts))
    own = parts[order]
    sums = np.cumsum(amounts[order]) - amounts[order]
    first = np.searchsorted(own, own)  # where the part begins
    before = np.empty(len(parts))
    before[order] = sums - sums[first]
    return before


def _pieces(units: IntArray, n_doses: int) -> list[IntArray]:
    size = max(1, 2**17 // n_doses)
    return [units[start : start + size] for start in range(0, len(units), size)]


def _joined(found: list[_Moves], n_limits: int) -> _Moves:
    none = np.empty(0, np.int64)
    start = _Moves(none, none, np.empty(0), (np.empty(0),) * n_limits)
    every = [start, *found]
    return _Moves(
        np.concatenate([moves.units for moves in every]),
        np.concatenate([moves.doses for moves in every]),
        np.concatenate([moves.worth for moves in every]),
        tuple(np.concatenate([m.steps[k] for m in every]) for k in range(n_limits)),
    )
