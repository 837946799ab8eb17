"""What is known about the assignment of training rows, in the forms a user may give it.

Each form says of every row whether its density pi_i(t) is known, gives it at any dose where that is
possible, and the means of functions of the dose under it: no model of the treatment is needed then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.checks import as_numbers
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.treatment.conditional_density import (
    ConditionalDensity,
    CrossFittedDensity,
    checked_dose_table,
)
from doseforest.nuisance.treatment.marginal import MarginalDensity, marginal_density
from doseforest.nuisance.treatment.treatment_support import (
    DoseSupport,
    dose_support,
    quadrature_grid,
)
from doseforest.nuisance.treatment.treatment_weights import check_integral, mean_density

DensityFunction = Callable[[FloatArray, FloatArray], FloatArray]
DoseFunctions = Callable[[FloatArray], FloatArray]  # (n,) to (n, n_functions)

MEAN_POINTS = 501  # of quadrature: a density may jump within the range of the doses
BLOCK_ROWS = 2048
SAME = 1e-6  # relative difference of probabilities that are one


class KnownRows(Protocol):
    """The known part of an assignment."""

    @property
    def name(self) -> str:
        """Of the weights that follow."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the density of each row is known, (n_rows,)."""

    @property
    def observed(self) -> FloatArray:
        """Values pi_i(T_i), (n_rows,); NaN where not known."""

    def densities(self, rows: IntArray, doses: FloatArray) -> FloatArray | None:
        """Densities of known rows at a grid or at their own doses; None if only some are given."""

    def overall(self) -> FloatArray:
        """Mean over all rows j of pi_j(T_i), (n_rows,), where all rows are known."""

    def means(self, functions: DoseFunctions) -> FloatArray | None:
        """Means of functions of the dose for every row, NaN where not known; None if none are."""


@dataclass(frozen=True, slots=True)
class KnownDensity:
    """A density that was given as a function of (X, doses)."""

    function: DensityFunction

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | x), (n_units, n_doses), checked."""
        values, known = self.raw(X, doses)
        bad = ~((values >= 0) & (values < np.inf))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                "The 'density' parameter must give finite values that are not negative. "
                f"Got {values[row, column]} in row {row} at dose {known[row, column]:g} instead."
            )
        return values

    def raw(self, X: FloatArray, doses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values as the function gives them, which may be NaN, and the doses they are for."""
        table = checked_dose_table(doses, len(X))
        asked = np.array(np.broadcast_to(table, (len(X), table.shape[-1])))
        values = as_numbers(self.function(X, asked), "density").astype(np.float64)
        if values.shape != asked.shape:
            raise ValueError(
                "The 'density' parameter must give values of shape (n_units, n_doses), "
                f"{asked.shape}, for doses of that shape. Got shape {values.shape} instead."
            )
        return values, asked


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRows:
    """A function of (X, doses); rows are not known where it gives NaN at their own dose."""

    density: KnownDensity
    X: FloatArray  # (n_rows, n_features) that the function sees
    dose: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,)
    known: NDArray[np.bool_]  # (n_rows,)
    observed: FloatArray  # (n_rows,)
    name: str = "known"

    def densities(self, rows: IntArray, doses: FloatArray) -> FloatArray:
        """Values of the function."""
        return self.density.density(self.X[rows], doses)

    def overall(self) -> FloatArray:
        """Mean density, read off a grid; checked to be one."""
        one_fold = np.zeros(len(self.dose), np.int64)
        models: FoldModels[ConditionalDensity]
        models = FoldModels(one_fold, (self.density,), self.density)
        estimated = CrossFittedDensity(models, self.observed)
        return mean_density(estimated, self.X, self.dose, self.weights)

    def means(self, functions: DoseFunctions) -> FloatArray:
        """Integrals of the functions times the density over the observed range and the masses.

        They are divided by the integral of the density: a dose beyond the observed ones is none
        that a row has.
        """
        support = dose_support(self.dose, self.weights)
        grid = quadrature_grid(self.dose, support, self.weights, n_points=MEAN_POINTS)
        nodes = np.concatenate([grid, support.masses])
        pieces_of_range = _trapezoid_shares(support.scale.forward(grid)) / support.scale.slope(grid)
        shares = np.append(pieces_of_range, np.ones(len(support.masses)))
        values = functions(nodes)
        out = np.full((len(self.dose), values.shape[1]), np.nan)
        integrals = np.full(len(self.dose), np.nan)
        rows = np.flatnonzero(self.known)
        for first in range(0, len(rows), BLOCK_ROWS):
            block = rows[first : first + BLOCK_ROWS]
            pieces = self.densities(block, nodes) * shares
            integrals[block] = pieces.sum(axis=1)
            out[block] = pieces @ values
        row_weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        check_integral(float(np.average(integrals[rows], weights=row_weights)), support)
        out[rows] /= np.maximum(integrals[rows], np.finfo(np.float64).tiny)[:, None]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class LevelRows:
    """The probability of every level for every row."""

    levels: FloatArray  # (n_levels,) ascending
    probabilities: FloatArray  # (n_rows, n_levels), rows of NaN where not known
    dose: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,)
    known: NDArray[np.bool_]  # (n_rows,)
    observed: FloatArray  # (n_rows,)
    name: str = "known"

    def densities(self, rows: IntArray, doses: FloatArray) -> FloatArray:
        """Probabilities of the levels that are asked for, 0 for other doses."""
        table = checked_dose_table(doses, len(rows))
        out = np.zeros((len(rows), table.shape[-1]))
        for level, share in zip(self.levels, self.probabilities[rows].T, strict=True):
            out = np.where(table == level, share[:, None], out)
        return out

    def overall(self) -> FloatArray:
        """Mean probabilities of the rows' levels."""
        shares = np.average(self.probabilities, axis=0, weights=self.weights)
        return shares[level_places(self.levels, self.dose)]

    def means(self, functions: DoseFunctions) -> FloatArray:
        """Functions at the levels times their probabilities."""
        return self.probabilities @ functions(self.levels)


@dataclass(frozen=True, slots=True, eq=False)
class StrataRows:
    """The doses of each row's stratum."""

    codes: IntArray  # (n_rows,) -1 where not known
    parts: tuple[MarginalDensity, ...]
    dose: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,)
    known: NDArray[np.bool_]  # (n_rows,)
    observed: FloatArray  # (n_rows,)
    name: str = "strata"

    def densities(self, rows: IntArray, doses: FloatArray) -> FloatArray:
        """Kernel densities of the strata's doses, beside their point masses."""
        return strata_densities(self.codes[rows], self.parts, doses)

    def overall(self) -> FloatArray:
        """Mean of the strata's densities, by their share of the rows."""
        row_weights = np.ones(len(self.dose)) if self.weights is None else self.weights
        mean = np.zeros(self.dose.shape)
        for share, part in zip(
            np.bincount(self.codes, row_weights) / row_weights.sum(), self.parts, strict=True
        ):
            mean += share * part.at(self.dose)
        return mean

    def means(self, functions: DoseFunctions) -> FloatArray:
        """Means of the functions over the rows of the stratum.

        The row itself among them changes the scale of what is left of its functions by 1 - 1 / n,
        and nothing else.
        """
        values = functions(self.dose)
        means = self._sums(values) / self._sums(np.ones((len(values), 1)))
        out = np.full(values.shape, np.nan)
        out[self.known] = means[self.codes[self.known]]
        return out

    def _sums(self, values: FloatArray) -> FloatArray:
        row_weights = np.ones(len(values)) if self.weights is None else self.weights
        codes = self.codes[self.known]
        columns = (values * row_weights[:, None])[self.known].T
        return np.stack([np.bincount(codes, column, len(self.parts)) for column in columns], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class ValueRows:
    """The density of each row at its own dose, and no other."""

    dose: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,)
    support: DoseSupport
    known: NDArray[np.bool_]  # (n_rows,)
    observed: FloatArray  # (n_rows,)
    name: str = "known"

    def densities(self, rows: IntArray, doses: FloatArray) -> FloatArray | None:
        """Probabilities of levels where the values tell them, else None."""
        levels = self._levels()
        return None if levels is None else levels.densities(rows, doses)

    def overall(self) -> FloatArray:
        """Kernel density of the doses."""
        return marginal_density(self.dose, self.weights).at(self.dose)

    def means(self, functions: DoseFunctions) -> FloatArray | None:
        """Means where the values tell the probability of every level, else None."""
        levels = self._levels()
        return None if levels is None else levels.means(functions)

    def _levels(self) -> LevelRows | None:
        """The probabilities of all levels, where the values tell them.

        They do when there are two levels, the other one having the rest, and when all rows of a
        level have the same probability and these add up to 1: nobody was treated apart then.
        """
        if self.support.continuous:
            return None
        levels = np.array(self.support.masses)
        at_level = self.dose[:, None] == levels
        values = self.observed[:, None]
        if len(levels) == 2 and (self.observed[self.known] <= 1).all():
            shares = np.where(at_level, values, 1 - values)
        else:
            marks = at_level & self.known[:, None]
            one = self.observed[np.argmax(marks, axis=0)]
            same = np.allclose(self.observed[self.known], (marks @ one)[self.known], rtol=SAME)
            if not (marks.any(axis=0).all() and same and abs(one.sum() - 1) <= SAME):
                return None
            shares = np.where(self.known[:, None], one, np.nan)
        return LevelRows(levels, shares, self.dose, self.weights, self.known, self.observed)


def level_places(levels: FloatArray, dose: FloatArray) -> IntArray:
    """Place of each dose among the levels; rows of weight zero may have another dose."""
    places: IntArray = np.minimum(np.searchsorted(levels, dose), len(levels) - 1)
    return places


def strata_densities(
    codes: IntArray, parts: tuple[MarginalDensity, ...], doses: FloatArray
) -> FloatArray:
    """Densities of rows with these strata at a grid or at their own doses, (n_rows, n_doses)."""
    table = checked_dose_table(doses, len(codes))
    out = np.empty((len(codes), table.shape[-1]))
    for code, part in enumerate(parts):
        rows = codes == code
        out[rows] = part.at(table if table.ndim == 1 else table[rows])
    return out


def _trapezoid_shares(grid: FloatArray) -> FloatArray:
    """What each point of a grid counts in an integral by the trapezoid rule."""
    if not len(grid):
        return np.empty(0)
    gaps = np.diff(grid)
    shares: FloatArray = np.append(gaps, 0.0) / 2 + np.append(0.0, gaps) / 2
    return shares
