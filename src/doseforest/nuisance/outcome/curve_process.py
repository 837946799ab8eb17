"""A fitted Gaussian process of outcomes over covariates and dose; fitting is in `process_fit`.

Its covariance has parts: what covariates do at any dose, what the dose does to everybody, and what
the dose does to units that are alike,

    k = s_x k_x(x, x') + s_t k_t(t, t') + s_xt k_x'(x, x') k_t'(t, t'),

squared exponentials with a length for every column. Curves of n units over m doses then cost two
kernels between units and the rows that the process rests on, and one product with m columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from doseforest.base.concurrency import side_by_side
from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.stored_values import (
    FLOATS,
    INTEGERS,
    LARGEST_RESULT,
    ArrayTypes,
    FileChecks,
)

BLOCK_VALUES = 2**22  # 32 MB of kernel values at a time
FAR = 5.0  # deviations: rows beyond count as there, else a rare or new value is like no other row
FARTHEST = 1e6  # of a dose: beyond, no kernel says anything, and squares stay finite
WIDEST = 1e4  # sizes and lengths that a search may end at are between e^-7 and e^7
CHECKS = FileChecks("outcome model")
_TABLE: ArrayTypes = {
    "columns": (INTEGERS, 1),
    "fill": (FLOATS, 1),
    "level": (FLOATS, 1),
    "scale": (FLOATS, 1),
    "knots": (FLOATS, 2),
    "dose_level": (FLOATS, 1),
    "dose_scale": (FLOATS, 1),
}
_COVARIANCE: ArrayTypes = {
    "sizes": (FLOATS, 1),
    "lengths": (FLOATS, 1),
    "dose_lengths": (FLOATS, 1),
    "joint_lengths": (FLOATS, 1),
    "joint_dose_lengths": (FLOATS, 1),
}
_ROWS: ArrayTypes = {"points": (FLOATS, 2), "doses": (FLOATS, 2), "coefficients": (FLOATS, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class ProcessTable:
    """How rows become points: gaps are filled, columns standardised, doses warped by their ranks.

    The warp gives a skewed dose its resolution where its rows are. The part that stays the value
    of the dose keeps the warp increasing and goes on beyond the observed doses.
    """

    columns: IntArray  # (n_columns,) of X
    fill: FloatArray  # (n_columns,) where X is missing
    level: FloatArray  # (n_columns,)
    scale: FloatArray  # (n_columns,)
    knots: FloatArray  # (n_components, n_knots) quantiles of the doses
    rank_share: float  # of the ranks in the warp
    dose_level: FloatArray  # (n_components,)
    dose_scale: FloatArray  # (n_components,)

    def covariates(self, X: FloatArray) -> FloatArray:
        """Points of the rows, shape (n_rows, n_columns)."""
        chosen = X[:, self.columns]
        filled = np.where(np.isnan(chosen), self.fill, chosen)
        return np.clip((filled - self.level) / self.scale, -FAR, FAR)

    def warped(self, doses: DoseArray) -> FloatArray:
        """Points of doses, shape (n_doses, n_components)."""
        values = Doses.of(doses).table
        spread = np.clip((values - self.dose_level) / self.dose_scale, -FARTHEST, FARTHEST)
        if self.rank_share == 0.0:
            return spread
        places = np.linspace(-np.sqrt(3.0), np.sqrt(3.0), self.knots.shape[1])
        ranks = np.stack(
            [np.interp(own, knots, places) for own, knots in zip(values.T, self.knots, strict=True)]
        )
        return self.rank_share * ranks.T + (1.0 - self.rank_share) * spread


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Sizes of the three parts of a covariance, and the lengths of their columns."""

    sizes: FloatArray  # (3,) of covariates, dose, both
    lengths: FloatArray  # (n_columns,) of covariates
    dose_lengths: FloatArray  # (n_components,)
    joint_lengths: FloatArray  # (n_columns,) of covariates where the dose acts
    joint_dose_lengths: FloatArray  # (n_components,)

    def between(self, points: FloatArray, doses: FloatArray) -> FloatArray:
        """Covariances of rows with each other, shape (n_rows, n_rows)."""
        total = squared_exponential(points, points, self.joint_lengths)
        total *= squared_exponential(doses, doses, self.joint_dose_lengths)
        total *= self.sizes[2]
        for size, own, lengths in (
            (self.sizes[0], points, self.lengths),
            (self.sizes[1], doses, self.dose_lengths),
        ):
            if size > 0.0:
                total += size * squared_exponential(own, own, lengths)
        return total

    def double(self) -> Covariance:
        """The same in double precision."""
        return Covariance(
            *(np.asarray(getattr(self, part.name), np.float64) for part in fields(self))
        )


def squared_exponential(left: FloatArray, right: FloatArray, lengths: FloatArray) -> FloatArray:
    """Kernel values exp(-|a - b|^2 / 2) of points over their lengths, shape (n_left, n_right).

    Examples
    --------
    >>> squared_exponential(np.zeros((1, 1)), np.array([[0.0], [2.0]]), np.array([2.0])).round(3)
    array([[1.   , 0.607]])
    """
    a, b = left / lengths, right / lengths
    halves = a @ b.T
    halves -= 0.5 * np.einsum("ij,ij->i", a, a)[:, None]
    halves -= 0.5 * np.einsum("ij,ij->i", b, b)
    np.minimum(halves, 0.0, out=halves)  # rounding may leave a distance below zero
    values: FloatArray = np.exp(halves, out=halves)
    return values


@dataclass(frozen=True, slots=True, eq=False)
class CurveProcess:
    """Curves as posterior means of a Gaussian process.

    Examples
    --------
    >>> from doseforest.nuisance.outcome.process_fit import ProcessRecipe
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(200, 1)), rng.uniform(0, 3, 200)
    >>> process = ProcessRecipe().fit(x, t, np.sin(t) * x[:, 0])
    >>> process.curves(np.array([[1.0], [-1.0]]), np.array([1.5])).round(1)
    array([[ 1.],
           [-1.]])
    """

    table: ProcessTable
    covariance: Covariance
    noise: float  # variance, as a share of that of the outcome
    points: FloatArray  # (n_kept, n_columns) of the rows that it rests on
    doses: FloatArray  # (n_kept, n_components) their warped doses
    coefficients: FloatArray  # (n_kept,)
    mean: float
    binary: bool  # answers are kept to [0, 1]
    n_features: int

    def predict(self, X: FloatArray, dose: DoseArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: DoseArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        at_once = max(1, BLOCK_VALUES // len(self.points))
        of_grid = self._of_grid(doses) if doses.ndim == 1 else None

        def of_block(first: int) -> FloatArray:
            rows = slice(first, first + at_once)
            points = self.table.covariates(X[rows])
            alike = squared_exponential(points, self.points, self.covariance.joint_lengths)
            if of_grid is None:
                curves = self._at_own_doses(alike, doses[rows])
            else:
                everybody, joint = of_grid
                curves = alike @ joint + everybody
            curves += self._of_covariates(points)[:, None]
            return curves

        starts = range(0, len(X), at_once)
        if len(starts) > 1:  # blocks are the same for any number of threads
            out = np.concatenate(side_by_side(of_block, starts, n_threads))
        else:
            out = of_block(0)
        out += self.mean
        return np.clip(out, 0.0, 1.0) if self.binary else out

    def _of_covariates(self, points: FloatArray) -> FloatArray:
        """What covariates add at any dose, (n_points,)."""
        part = self.covariance
        if part.sizes[0] == 0.0:
            return np.zeros(len(points))
        alike = squared_exponential(points, self.points, part.lengths)
        added: FloatArray = part.sizes[0] * (alike @ self.coefficients)
        return added

    def _of_doses(self, asked: FloatArray) -> FloatArray:
        """What warped doses add for everybody, (n_doses,)."""
        part = self.covariance
        if part.sizes[1] == 0.0:
            return np.zeros(len(asked))
        alike = squared_exponential(asked, self.doses, part.dose_lengths)
        added: FloatArray = part.sizes[1] * (alike @ self.coefficients)
        return added

    def _of_grid(self, doses: DoseArray) -> tuple[FloatArray, FloatArray]:
        """What doses add for everybody, (n_doses,); what they weigh rows by, (n_kept, n_doses)."""
        asked, part = self.table.warped(doses), self.covariance
        joint = squared_exponential(self.doses, asked, part.joint_dose_lengths)
        joint *= (part.sizes[2] * self.coefficients)[:, None]
        return self._of_doses(asked), joint

    def _at_own_doses(self, alike: FloatArray, doses: DoseArray) -> FloatArray:
        out = np.empty(doses.shape)
        part = self.covariance
        weighed = alike * (part.sizes[2] * self.coefficients)
        for place in range(doses.shape[1]):
            asked = self.table.warped(doses[:, place])
            joint = squared_exponential(asked, self.doses, part.joint_dose_lengths)
            out[:, place] = np.einsum("ij,ij->i", weighed, joint)
            out[:, place] += self._of_doses(asked)
        return out

    @property
    def dose_components(self) -> set[int]:
        """Number of components of the doses that it is of."""
        return {self.doses.shape[1]}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Plain values and arrays of the process."""
        arrays: dict[str, Array] = {name: getattr(self.table, name) for name in _TABLE}
        arrays |= {name: getattr(self.covariance, name) for name in _COVARIANCE}
        arrays |= {name: getattr(self, name) for name in _ROWS}
        values = {"rank_share": self.table.rank_share, "mean": self.mean}
        values |= {"noise": self.noise, "binary": self.binary}
        return values, arrays

    @classmethod
    def from_arrays(
        cls, values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
    ) -> CurveProcess:
        """Put a process together again; ForestFileError if its parts do not fit."""
        table = ProcessTable(
            rank_share=CHECKS.number(values, "rank_share", 0.0, 1.0),
            **CHECKS.arrays(arrays, _TABLE),
        )
        covariance = Covariance(**CHECKS.arrays(arrays, _COVARIANCE))
        process = cls(
            table=table,
            covariance=covariance,
            noise=CHECKS.number(values, "noise", 0.0),
            **CHECKS.arrays(arrays, _ROWS),
            mean=CHECKS.number(values, "mean"),
            binary=CHECKS.flag(values, "binary"),
            n_features=n_features,
        )
        _check_shapes(process)
        _check_ranges(process)
        return process


def _check_shapes(process: CurveProcess) -> None:
    table, part = process.table, process.covariance
    n_columns, n_components = len(table.columns), len(table.dose_level)
    n_kept = len(process.coefficients)
    lengths = {
        n_columns: (table.fill, table.level, table.scale, part.lengths, part.joint_lengths),
        n_components: (table.dose_scale, part.dose_lengths, part.joint_dose_lengths),
    }
    CHECKS.require(
        n_kept > 0
        and 1 <= n_components <= MAX_COMPONENTS
        and len(part.sizes) == 3
        and len(table.knots) == n_components
        and table.knots.shape[1] >= 2
        and process.points.shape == (n_kept, n_columns)
        and process.doses.shape == (n_kept, n_components)
        and all(len(own) == length for length, arrays in lengths.items() for own in arrays),
        "has a process whose parts do not fit each other",
    )


def _check_ranges(process: CurveProcess) -> None:
    table = process.table
    inside = (table.columns >= 0) & (table.columns < process.n_features)
    CHECKS.require(bool(inside.all()), "has a process on no covariate")
    CHECKS.require(
        bool((np.diff(table.knots, axis=1) >= 0).all()), "has a process with doses out of order"
    )
    arrays = {name: getattr(table, name) for name in ("fill", "level", "knots", "dose_level")}
    arrays |= {name: getattr(process, name) for name in ("points", "doses", "coefficients")}
    for name, values in arrays.items():
        CHECKS.moderate(values, name)
    CHECKS.moderate(np.array([process.mean]), "mean")
    scales = [table.scale, table.dose_scale]
    lengths = [getattr(process.covariance, part.name) for part in fields(Covariance)[1:]]
    sizes = process.covariance.sizes
    CHECKS.require(
        all(bool((each > 1.0 / LARGEST_RESULT).all()) for each in scales)
        and all(bool(((each > 1.0 / WIDEST) & (each < WIDEST)).all()) for each in lengths)
        and bool(((sizes >= 0) & (sizes < WIDEST)).all()),
        "has a process with a scale out of range",
    )
