"""Cubic splines of the dose, rotated into functions of ever higher roughness."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import solve_triangular

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.short_grids import remembered
from doseforest.doses.grids import as_doses, check_count, dose_sample
from doseforest.doses.stored_values import FileChecks

CHECKS = FileChecks("basis of the dose")
DEGREE = 3
LEADING = 4
KNOT_DECIMALS = 5  # of quantile knots in [0, 1]: closer ones would cost the others their digits
SEEN_DIRECTION = 1e-5  # of the largest: the deviation for its bend that a sample must show
SEEN_AT_ALL = 1e-7  # the same, whatever the largest; 0.04 is usual for that


@dataclass(frozen=True, slots=True)
class Spline:
    """Cubic splines of the dose, orthonormal on the sample; linear beyond the outer knots.

    B_1 is linear, the others are ever rougher, and each is positive at the last knot. Their second
    derivatives are orthogonal between the outer knots (Demmler and Reinsch 1975), so a curvature
    penalty is diagonal: `SplineBasis.roughness`.

    Parameters
    ----------
    n_knots : int, default=18
        Knots with both ends, for n_knots + 2 functions. Fewer come of it where the sample does not
        show them all: never more than there are distinct doses.
    knots : {"uniform", "quantile"}, default="uniform"
        Equal distances or equal shares of the weight between knots; quantiles closer than 1e-5 of
        the range are one knot.
    tail : float, default=0
        The outer knots are the `tail` and 1 - `tail` quantiles; where they are one dose, the
        lowest and the highest.

    Examples
    --------
    >>> basis = Spline(n_knots=5).fit(np.linspace(0.0, 10.0, 1001))
    >>> basis.n_functions
    7
    >>> basis.roughness[:4].round()
    array([   0.,    0.,  501., 3928.])
    """

    n_knots: int = 18
    knots: Literal["uniform", "quantile"] = "uniform"
    tail: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.n_knots, 2, "n_knots")
        if self.knots not in ("uniform", "quantile"):
            raise ValueError(
                "The 'knots' parameter of Spline must be 'uniform' or 'quantile'. "
                f"Got {self.knots!r} instead."
            )

    def fit(self, dose: Any, weights: Any = None) -> SplineBasis:
        """Make the functions from the observed doses, two of them distinct."""
        sample = dose_sample(dose, weights)
        ends = sample.range(self.tail)
        if ends.low == ends.high:
            raise ValueError(
                "The 'dose' parameter of Spline.fit must have two distinct values. "
                f"Got only {ends.low:g} instead."
            )
        knots = np.linspace(0.0, 1.0, self.n_knots)
        if self.knots == "quantile":
            quantiles = np.clip(sample.quantiles(knots), ends.low, ends.high)
            places = (quantiles - ends.low) / (ends.high - ends.low)
            knots = np.union1d(places.round(KNOT_DECIMALS), [0.0, 1.0])
        clipped = np.clip(sample.doses, ends.low, ends.high)
        positions = (clipped - ends.low) / (ends.high - ends.low)
        coefficients, roughness = demmler_reinsch(positions, sample.weights, knots)
        return SplineBasis(
            low=ends.low,
            high=ends.high,
            knots=tuple(knots.tolist()),
            coefficients=tuple(map(tuple, coefficients.tolist())),
            bends=tuple(roughness.tolist()),
        )


@dataclass(frozen=True, slots=True)
class SplineBasis:
    """The functions that `Spline` fits: 1, a line, ever rougher splines."""

    kind: ClassVar[str] = "spline"
    low: float
    high: float
    knots: tuple[float, ...]  # (n_knots,) ascending from 0 at `low` to 1 at `high`
    coefficients: tuple[tuple[float, ...], ...]  # (n_knots + 2, n_functions - 1), of B-splines
    bends: tuple[float, ...]  # (n_functions - 1,), see `roughness`

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return 1 + len(self.bends)

    @property
    def n_leading(self) -> int:
        """Functions that covariates are multiplied with, the constant included."""
        return min(LEADING, self.n_functions)

    @property
    def roughness(self) -> FloatArray:
        """Integral of each squared second derivative, (n_functions,), the range taken as [0, 1]."""
        return np.array([0.0, *self.bends])

    @remembered
    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions)."""
        positions = self._positions(doses)
        within = np.clip(positions, 0.0, 1.0)
        spline = cubic_spline(np.array(self.knots), np.array(self.coefficients))
        values = spline(within)
        beyond = positions != within
        excess = (positions - within)[beyond, None]
        values[beyond] += excess * spline.derivative()(within[beyond])
        return np.hstack([np.ones((len(values), 1)), values])

    def derivative(self, doses: Any) -> FloatArray:
        """Derivatives by the dose, (n, n_functions): beyond the outer knots those at the knot."""
        within = np.clip(self._positions(doses), 0.0, 1.0)
        spline = cubic_spline(np.array(self.knots), np.array(self.coefficients))
        slopes = spline.derivative()(within) / (self.high - self.low)
        return np.hstack([np.zeros((len(slopes), 1)), slopes])

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {"kind": self.kind, **asdict(self)}

    def _positions(self, doses: Any) -> FloatArray:
        return (as_doses(doses) - self.low) / (self.high - self.low)

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self)
        CHECKS.finite(self.low, self.high, *self.knots, *self.bends, *chain(*self.coefficients))
        CHECKS.require(self.low < self.high, "has no range of doses")
        CHECKS.require(
            len(self.knots) >= 2 and self.knots[0] == 0 and self.knots[-1] == 1,
            "has knots out of order",
        )
        CHECKS.increasing(self.knots, "knots")
        CHECKS.require(
            len(self.coefficients) == len(self.knots) + DEGREE - 1
            and all(len(row) == len(self.bends) for row in self.coefficients),
            "has coefficients that do not fit its knots",
        )


def cubic_spline(knots: FloatArray, coefficients: FloatArray | None = None) -> BSpline:
    """Splines on ascending knots, ends included; by default the n_knots + 2 B-splines."""
    padded = np.concatenate([np.repeat(knots[0], DEGREE), knots, np.repeat(knots[-1], DEGREE)])
    n_splines = len(knots) + DEGREE - 1
    return BSpline(padded, np.eye(n_splines) if coefficients is None else coefficients, DEGREE)


def second_derivatives(knots: FloatArray) -> FloatArray:
    """Second derivatives D of the B-splines, (n_places, n_splines), scaled to be integrated.

    ``D.T @ D`` are the integrals of their products.

    >>> bends = second_derivatives(np.array([0.0, 1.0]))
    >>> (bends.T @ bends).round().astype(int)[0]
    array([ 12, -18,   0,   6])
    """
    points, point_weights = np.polynomial.legendre.leggauss(2)  # exact: the products are parabolas
    half = np.diff(knots) / 2
    places = (knots[:-1] + half)[:, None] + half[:, None] * points
    bends: FloatArray = cubic_spline(knots).derivative(2)(places.ravel())
    return bends * np.sqrt(half[:, None] * point_weights).reshape(-1, 1)


def demmler_reinsch(
    positions: FloatArray, weights: FloatArray, knots: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rotate B-splines so that the sample's products and those of second derivatives are diagonal.

    Directions that the sample does not show are left out; the others are then the smoothest with
    their values on the sample.

    Parameters
    ----------
    positions : array of shape (n_rows,)
        Within the knots, two of them distinct.
    weights : array of shape (n_rows,)
        Positive, of sum 1.
    knots : array of shape (n_knots,)
        Ascending, ends included.

    Returns
    -------
    coefficients : array of shape (n_knots + 2, n_made)
        B-spline coefficients of each function beside the constant.
    roughness : array of shape (n_made,)
        Ascending, 0 for the linear function.
    """
    splines = cubic_spline(knots)
    values = splines(positions)
    # A triangle with the products of the sample, without the loss of digits in forming them.
    sample = np.asarray(np.linalg.qr(np.sqrt(weights)[:, None] * values, mode="r"), np.float64)
    n_splines = values.shape[1]
    # Greville: the spline with these coefficients is the position itself.
    line = np.mean([splines.t[k : k + n_splines] for k in range(1, DEGREE + 1)], axis=0)
    line -= (weights * positions).sum()
    line /= np.linalg.norm(sample @ line)
    straight = np.column_stack([np.ones(n_splines), line])
    # Directions uncorrelated with the straight ones on the sample, scaled to roughness 1.
    curved = np.linalg.qr(sample.T @ (sample @ straight), mode="complete")[0][:, 2:]
    bends = np.asarray(np.linalg.qr(second_derivatives(knots) @ curved, mode="r"))
    curved = solve_triangular(bends, curved.T, trans="T").T
    _, deviations, rotation = np.linalg.svd(sample @ curved, full_matrices=False)
    seen = deviations > max(SEEN_DIRECTION * deviations[0], SEEN_AT_ALL)
    rotated = curved @ rotation[seen].T / deviations[seen]
    rotated *= np.where(rotated[-1] < 0, -1.0, 1.0)
    return np.column_stack([line, rotated]), np.append(0.0, deviations[seen] ** -2)
