"""Polynomials of the dose that are orthonormal on the sample, beside indicators of point masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.short_grids import remembered
from doseforest.doses.grids import (
    CENTRAL_TAIL,
    DoseRange,
    as_doses,
    check_count,
    dose_sample,
    point_masses,
)
from doseforest.doses.stored_values import FileChecks

CHECKS = FileChecks("basis of the dose")
NEW_DIRECTION = 1e-5  # the part of a degree that lower ones must leave on the sample; .5 is usual


@dataclass(frozen=True, slots=True)
class Legendre:
    """Polynomials of the dose, orthonormal on the sample; constant outside its central range.

    For a uniform dose these are Legendre's. The functions of a smaller basis are the first of a
    larger one, bit for bit, and each is positive at the upper end of the range.

    Parameters
    ----------
    n_functions : int, default=7
        Degrees 0 to ``n_functions - 1``; never more than there are distinct doses once clipped,
        and no degree that the sample cannot tell from the lower ones.
    tail : float, default=0.01
        The dose is clipped to its `tail` and 1 - `tail` quantiles; where they are one dose, to its
        whole range.
    masses : tuple of floats or "auto", default=()
        Doses that many rows share. Each gets an indicator, B_1, B_2, ..., beyond `n_functions`; the
        polynomials are those of the other doses, and 0 at the masses. "auto" finds them.

    Examples
    --------
    >>> basis = Legendre(3).fit([0.0, 1.0, 1.0, 2.0])
    >>> basis.evaluate([0.0, 1.0, 2.0, 99.0]).round(3)
    array([[ 1.   , -1.414,  1.   ],
           [ 1.   ,  0.   , -1.   ],
           [ 1.   ,  1.414,  1.   ],
           [ 1.   ,  1.414,  1.   ]])
    >>> Legendre(2, masses=(0.0,)).fit([0.0, 0.0, 1.0, 2.0]).evaluate([0.0, 1.0, 2.0])
    array([[ 1.,  1.,  0.],
           [ 1.,  0., -1.],
           [ 1.,  0.,  1.]])
    """

    n_functions: int = 7
    tail: float = CENTRAL_TAIL
    masses: tuple[float, ...] | Literal["auto"] = ()

    def __post_init__(self) -> None:
        check_count(self.n_functions, 1, "n_functions")
        if isinstance(self.masses, str) and self.masses != "auto":
            raise ValueError(
                "The 'masses' parameter of Legendre must be doses or 'auto'. "
                f"Got {self.masses!r} instead."
            )

    def fit(self, dose: Any, weights: Any = None) -> PolynomialBasis:
        """Make the functions from the observed doses."""
        sample = dose_sample(dose, weights)
        if isinstance(self.masses, str):
            masses = point_masses(sample.doses, weights=sample.weights)
        else:
            masses = np.unique(as_doses(self.masses, "masses"))
        unseen = ~np.isin(masses, sample.doses)
        if unseen.any():
            raise ValueError(
                "The 'masses' parameter of Legendre must hold observed doses. "
                f"Got {masses[unseen][0]:g}, which no row has, instead."
            )
        rest = ~np.isin(sample.doses, masses)
        if not rest.any():
            raise ValueError(
                "The 'masses' parameter of Legendre must leave other doses; a dose of levels has "
                f"Indicators. Got {masses.tolist()}, which are all, instead."
            )
        others = dose_sample(sample.doses[rest], sample.weights[rest])
        central = others.range(self.tail)
        positions = unit_positions(others.doses, central)
        recurrence = orthonormal_recurrence(positions, others.weights, self.n_functions)
        return PolynomialBasis(central.low, central.high, recurrence, tuple(masses.tolist()))


@dataclass(frozen=True, slots=True)
class PolynomialBasis:
    """The functions that `Legendre` fits: 1, an indicator of each mass, the other polynomials."""

    kind: ClassVar[str] = "legendre"
    low: float
    high: float
    recurrence: tuple[tuple[float, ...], ...]  # n_polynomials - 1, of `orthonormal_recurrence`
    masses: tuple[float, ...] = ()  # (n_masses,) ascending

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return 1 + len(self.masses) + len(self.recurrence)

    @remembered
    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions)."""
        checked = as_doses(doses)
        positions = unit_positions(checked, DoseRange(self.low, self.high))
        values, _ = polynomials(positions, self.recurrence)
        at_mass = checked[:, None] == np.array(self.masses)
        elsewhere = ~at_mass.any(axis=1, keepdims=True)
        return np.hstack([values[:, :1], at_mass, np.where(elsewhere, values[:, 1:], 0.0)])

    def derivative(self, doses: Any) -> FloatArray:
        """Derivatives by the dose, (n, n_functions): 0 beyond the range, at a mass as beside it."""
        checked = as_doses(doses)
        central = DoseRange(self.low, self.high)
        _, slopes = polynomials(unit_positions(checked, central), self.recurrence)
        flat = np.zeros((len(checked), 1 + len(self.masses)))
        if not self.recurrence:
            return flat
        speed = np.where(central.contains(checked), 2 / (self.high - self.low), 0.0)
        return np.hstack([flat, slopes[:, 1:] * speed[:, None]])

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {"kind": self.kind, **asdict(self)}

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self)
        CHECKS.finite(self.low, self.high, *self.masses, *chain(*self.recurrence))
        CHECKS.require(self.low <= self.high, "has no range of doses")
        CHECKS.increasing(self.masses, "masses")
        CHECKS.require(
            all(len(row) == k + 2 and row[-1] > 0 for k, row in enumerate(self.recurrence)),
            "has a recurrence that cannot be followed",
        )


def unit_positions(doses: FloatArray, central: DoseRange) -> FloatArray:
    """Doses clipped to a range and brought from it to [-1, 1]; a range of one dose to 0.

    >>> unit_positions(np.array([0.0, 2.0, 3.0]), DoseRange(1.0, 3.0))
    array([-1.,  0.,  1.])
    """
    if central.low == central.high:
        return np.zeros(len(doses))
    clipped = np.clip(doses, central.low, central.high)
    return ((clipped - central.low) - (central.high - clipped)) / (central.high - central.low)


def orthonormal_recurrence(
    positions: FloatArray, weights: FloatArray, n_functions: int
) -> tuple[tuple[float, ...], ...]:
    """Coefficients of the polynomials that are orthonormal under the weights.

    Row k holds h[0], ..., h[k] and a scale s: ``s P[k+1] = P[1] P[k] - sum_j h[j] P[j]``, where
    P[0] = 1 and P[1] P[0] stands for the position. Gram-Schmidt on Legendre's polynomials gives the
    same ones, but loses digits where the doses are uneven (Brubeck, Nakatsukasa and Trefethen
    2021: Vandermonde with Arnoldi).

    Parameters
    ----------
    positions : array of shape (n_rows,)
        In [-1, 1].
    weights : array of shape (n_rows,)
        Positive, of sum 1.
    n_functions : int
        How many polynomials to make, the constant included; fewer come of it when a degree is, on
        the sample, a combination of the lower ones.

    Examples
    --------
    >>> orthonormal_recurrence(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), 7)
    ((0.0, 1.0),)
    """
    rows: list[tuple[float, ...]] = []
    values = [np.ones(len(positions))]
    for k in range(n_functions - 1):
        product = values[1] * values[k] if k else positions
        shares = np.zeros(k + 1)
        rest = product
        for _ in range(2):  # what rounding leaves of a first pass, a second one takes
            shares += [(weights * lower * rest).sum() for lower in values]
            rest = product - _combined(shares, values)
        scale = _size(rest, weights)
        if scale <= NEW_DIRECTION * _size(product, weights):
            break
        rows.append((*shares.tolist(), scale))
        values.append(rest / scale)
    return tuple(rows)


def polynomials(
    positions: FloatArray, recurrence: tuple[tuple[float, ...], ...]
) -> tuple[FloatArray, FloatArray]:
    """Values and derivatives of the polynomials of a recurrence, each (n, n_polynomials)."""
    values = [np.ones(len(positions))]
    slopes = [np.zeros(len(positions))]
    for k, (*shares, scale) in enumerate(recurrence):
        product = values[1] * values[k] if k else positions
        product_slope = values[1] * slopes[k] + slopes[1] * values[k] if k else values[0]
        values.append((product - _combined(shares, values)) / scale)
        slopes.append((product_slope - _combined(shares, slopes)) / scale)
    return np.column_stack(values), np.column_stack(slopes)


def _combined(shares: Sequence[float] | FloatArray, columns: list[FloatArray]) -> FloatArray:
    total = np.zeros(len(columns[0]))
    for share, column in zip(shares, columns, strict=True):
        total += share * column
    return total


def _size(values: FloatArray, weights: FloatArray) -> float:
    return float(np.sqrt((weights * values**2).sum()))
