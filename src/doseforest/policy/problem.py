"""What is to be decided: values of doses for every unit, and limits on sums over the units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray

BLOCK_ENTRIES = 2**17  # of a matrix in double precision: a megabyte, which stays in the cache
ROUNDING = 1e-10  # of a cap: what the order of summation may add to a sum


class InfeasibleError(ValueError):
    """No choice of doses meets the limits.

    Parameters
    ----------
    message : str
        The first limit that fails, and what it would need.
    proven : bool, default=True
        Whether there is no choice; False where the search only ended without one.
    """

    def __init__(self, message: str, *, proven: bool = True) -> None:
        super().__init__(message)
        self.proven = proven


@dataclass(frozen=True, slots=True)
class Limit:
    """Caps on sums of weights over the units of a part: a budget, budgets of groups, supplies.

    Every unit is in one part. `parameter` is the name under which users gave the caps.
    """

    parameter: str
    weights: Array  # (n_units, n_doses): what a unit takes of the cap at each dose
    parts: IntArray | None  # (n_units,): the part of each unit; None where there is only one
    caps: FloatArray  # (n_parts,): inf where nothing is capped
    labels: Array  # (n_parts,): names of the parts

    def of_units(self, per_part: FloatArray, rows: slice | IntArray) -> FloatArray:
        """A number of each part for units: (rows, 1), or one for all."""
        return per_part[:, None] if self.parts is None else per_part[self.parts[rows], None]

    def sums(self, amounts: FloatArray, rows: slice | IntArray) -> FloatArray:
        """Sum amounts of units over their parts, (n_parts,)."""
        if self.parts is None:
            return np.array([amounts.sum()])
        sums: FloatArray = np.bincount(self.parts[rows], amounts, len(self.caps)).astype(np.float64)
        return sums

    def parts_of(self, rows: IntArray) -> IntArray:
        """Parts of units, (rows,)."""
        return np.zeros(len(rows), np.int64) if self.parts is None else self.parts[rows]

    @property
    def roomy_caps(self) -> FloatArray:
        """Caps, with what rounding may add to a sum that meets them."""
        finite = np.where(np.isfinite(self.caps), self.caps, 0.0)
        return self.caps + ROUNDING * np.abs(finite)


@dataclass(frozen=True, slots=True)
class DoseProblem:
    """One dose for each unit, of largest total value within all limits."""

    value: Array  # (n_units, n_doses), in the precision that the user has
    cost: Array  # (n_units, n_doses)
    doses: DoseArray  # (n_doses,)
    allowed: NDArray[np.bool_] | None  # (n_units, n_doses); None where every dose is
    limits: tuple[Limit, ...]

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.value)

    @property
    def n_doses(self) -> int:
        """Number of doses."""
        return int(self.value.shape[1])

    def blocks(self) -> Iterator[slice]:
        """Blocks of units whose matrices are small enough to be copied."""
        size = max(1, BLOCK_ENTRIES // self.n_doses)
        for start in range(0, self.n_units, size):
            yield slice(start, min(start + size, self.n_units))

    def values_at(self, rows: slice | IntArray) -> FloatArray:
        """Values of a block in double precision, minus infinity where a dose is not allowed."""
        values = self.value[rows].astype(np.float64)
        if self.allowed is not None:
            values[~self.allowed[rows]] = -np.inf
        return values

    def chosen(self, matrix: Array, choice: IntArray) -> FloatArray:
        """Entries of a matrix at the chosen doses, (n_units,)."""
        return matrix[np.arange(self.n_units), choice].astype(np.float64)

    def used(self, choice: IntArray) -> list[FloatArray]:
        """What a choice takes of every limit, (n_parts,) each."""
        every = slice(0, self.n_units)
        return [limit.sums(self.chosen(limit.weights, choice), every) for limit in self.limits]

    def meets_limits(self, choice: IntArray) -> bool:
        """Whether a choice is feasible."""
        used = self.used(choice)
        pairs = zip(self.limits, used, strict=True)
        return all(bool((each <= limit.roomy_caps).all()) for limit, each in pairs)

    def with_doses(self, subset: IntArray) -> DoseProblem:
        """The same problem where only a few doses may be given."""
        among = np.isin(np.arange(self.n_doses), subset)
        allowed = np.broadcast_to(among, self.value.shape)
        if self.allowed is not None:
            allowed = allowed & self.allowed
        return replace(self, allowed=allowed)


def cheapest(problem: DoseProblem, weights: Array) -> tuple[IntArray, FloatArray]:
    """The allowed dose of least weight of every unit, the more valuable of two, and its weight."""
    choice = np.empty(problem.n_units, np.int64)
    least = np.empty(problem.n_units)
    for rows in problem.blocks():
        values = problem.values_at(rows)
        row_weights = np.where(values > -np.inf, weights[rows], np.inf)
        least[rows] = row_weights.min(axis=1)
        choice[rows] = np.argmax(
            np.where(row_weights == least[rows, None], values, -np.inf), axis=1
        )
    return choice, least


def check_each_limit(problem: DoseProblem) -> None:
    """Raise InfeasibleError where a limit cannot be met even by itself."""
    every = slice(0, problem.n_units)
    for limit in problem.limits:
        needed = limit.sums(cheapest(problem, limit.weights)[1], every)
        broken = np.flatnonzero(needed > limit.roomy_caps)
        if not len(broken):
            continue
        worst = int(broken[0])
        where = "" if limit.parts is None else f" for {limit.labels.tolist()[worst]!r}"
        others = f" ({len(broken)} parts are too low)" if len(broken) > 1 else ""
        raise InfeasibleError(
            f"The {limit.parameter!r} parameter must be at least {needed[worst]:.10g}{where}, what "
            "the allowed doses that take least of it add up to. "
            f"Got {limit.caps[worst]:.10g} instead{others}."
        )
