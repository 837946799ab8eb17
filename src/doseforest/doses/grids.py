"""Samples of doses: their range, grid, point masses and baseline."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.data.checks import LARGEST_VALUE, as_numbers
from doseforest.doses.dose_values import Doses, dose_text, is_checked

FEW_LEVELS = 20  # a dose with at most this many distinct values is a set of levels
CENTRAL_TAIL = 0.01  # beyond these quantiles a curve is a guess from a handful of rows
INTERIOR_TAIL = 0.05  # errors are measured inside these quantiles, away from the edges
MASS_CONTRAST = 5.0  # a mass outweighs its neighbours; the mode of a rounded dose does not
SUPPORT_SLACK = 0.05  # of the range: a uniform dose on [0, 10] is never observed at 0 itself
BASELINE_CANDIDATES = 101


class Support(Protocol):
    """Where doses were observed: a `DoseRange`, or a `DoseBox` for doses of several components."""

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""

    def contains(self, doses: DoseArray, slack: float = 0.0) -> NDArray[np.bool_]:
        """Whether each dose lies in it, widened by that share of its length at both ends."""

    def clip(self, doses: DoseArray) -> DoseArray:
        """Nearest doses in it."""


class BaselineWarning(UserWarning):
    """The dose 0 cannot serve as the baseline, and another dose does."""


@dataclass(frozen=True, slots=True)
class DoseRange:
    """The doses from `low` to `high`.

    Parameters
    ----------
    low : float
        Lowest dose.
    high : float
        Highest dose.

    Examples
    --------
    >>> DoseRange(0.0, 10.0).contains(np.array([-0.1, 0.0, 10.0]))
    array([False,  True,  True])
    """

    low: float
    high: float

    def contains(self, doses: FloatArray, slack: float = 0.0) -> NDArray[np.bool_]:
        """Whether each dose lies in the range.

        Parameters
        ----------
        doses : array
            Doses, of any shape.
        slack : float, default=0.0
            Share of the length of the range by which both ends are widened.

        Returns
        -------
        array of bool
            One for each dose.
        """
        margin = slack * (self.high - self.low)
        inside: NDArray[np.bool_] = (doses >= self.low - margin) & (doses <= self.high + margin)
        return inside

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return 1

    def clip(self, doses: FloatArray) -> FloatArray:
        """Nearest doses in the range.

        Parameters
        ----------
        doses : array
            Doses, of any shape.

        Returns
        -------
        array
            The doses, those outside moved to the nearer end.
        """
        nearest: FloatArray = np.clip(doses, self.low, self.high)
        return nearest

    def __str__(self) -> str:
        """Both ends as text."""
        return f"[{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, slots=True)
class DoseSample:
    """A sample of doses in ascending order, so that no sum over it depends on the order of rows."""

    doses: FloatArray  # (n_rows,) ascending
    weights: FloatArray  # (n_rows,) positive, of sum 1

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Smallest doses at or below which at least these shares of the weight lie."""
        cumulated = np.cumsum(self.weights) + 1e-9  # more than rounding, less than a row
        return self.doses[np.minimum(np.searchsorted(cumulated, shares), len(cumulated) - 1)]

    def range(self, tail: float = 0.0) -> DoseRange:
        """From the `tail` quantile to the 1 - `tail` quantile.

        Where the two are one dose, as with a mass of nearly all rows, the whole range.
        """
        if not 0 <= tail < 0.5:
            raise ValueError(
                f"The 'tail' parameter must be a float in [0, 0.5). Got {tail!r} instead."
            )
        low, high = self.quantiles(np.array([tail, 1 - tail]))
        if tail == 0 or low == high:
            low, high = self.doses[[0, -1]]
        return DoseRange(float(low), float(high))

    def levels(self) -> tuple[FloatArray, FloatArray]:
        """Distinct doses in ascending order and the share of the weight at each."""
        distinct, first = np.unique(self.doses, return_index=True)
        return distinct, np.add.reduceat(self.weights, first)


def as_doses(values: Any, name: str = "doses") -> FloatArray:
    """Finite numbers of shape (n,); a single number is one dose."""
    doses = np.atleast_1d(as_numbers(values, name)).astype(np.float64) + 0.0  # no negative zero
    if doses.ndim != 1:
        raise ValueError(
            f"The {name!r} parameter must be one-dimensional. Got shape {doses.shape} instead."
        )
    bad = ~(np.abs(doses) <= LARGEST_VALUE)  # also true of NaN
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.0e}. "
            f"Got {doses[row]} in row {row} instead."
        )
    return doses


def given_doses(values: Any, name: str = "doses") -> Doses:
    """Doses of numbers, or of a table with a row of components for each.

    >>> given_doses([1, 2]).shape, given_doses([[1, 2]]).n_components
    ((2,), 2)
    """
    if is_checked(values):
        return Doses.of(values)
    numbers = as_numbers(values, name).astype(np.float64)
    return Doses.of_table(numbers) if numbers.ndim == 2 else Doses(numbers)


def check_count(value: Any, least: int, name: str) -> None:
    """Raise ValueError unless a parameter is an integer of at least that size."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"The {name!r} parameter must be an int of at least {least}. Got {value!r} instead."
        )


def dose_sample(dose: Any, weights: Any = None) -> DoseSample:
    """Sort the observed doses; rows of weight zero are left out.

    >>> dose_sample([3.0, 1.0, 2.0], weights=[1.0, 3.0, 0.0])
    DoseSample(doses=array([1., 3.]), weights=array([0.75, 0.25]))
    """
    doses = as_doses(dose, "dose")
    if not len(doses):
        raise ValueError("The 'dose' parameter must hold at least one dose. Got none instead.")
    own = np.ones(len(doses)) if weights is None else as_doses(weights, "weights")
    if own.shape != doses.shape or (own < 0).any() or not own.any():
        raise ValueError(
            "The 'weights' parameter must be one number per dose, none negative, one of them "
            f"positive. Got {len(own)} weights from {own.min(initial=0.0)} to "
            f"{own.max(initial=0.0)} for {len(doses)} doses instead."
        )
    doses, own = doses[own > 0], own[own > 0]
    order = np.lexsort((own, doses))
    doses, own = doses[order], own[order]
    return DoseSample(doses, own / own.sum())


def support(dose: Any, weights: Any = None) -> DoseRange:
    """Range of the observed doses.

    >>> support([3.0, 1.0, 2.0])
    DoseRange(low=1.0, high=3.0)
    """
    return dose_sample(dose, weights).range()


def interior(dose: Any, weights: Any = None, tail: float = INTERIOR_TAIL) -> DoseRange:
    """Range of doses away from the edges, 5 % of the weight on either side, for error measures.

    >>> interior(range(1, 101)).contains(np.array([2.0, 50.0, 99.0]))
    array([False,  True, False])
    """
    return dose_sample(dose, weights).range(tail)


def check_doses(doses: Any, within: Support, name: str = "doses") -> Doses:
    """Doses that lie in the support, give or take 5 % of its length at either end.

    Numbers are checked first. To flag doses and go on, ask `DoseRange.contains`.

    >>> check_doses([0.0, 9.0], DoseRange(0.1, 9.5)).values
    array([0., 9.])
    """
    asked = doses if isinstance(doses, Doses) else Doses(as_doses(doses, name))
    outside = ~within.contains(asked.values, SUPPORT_SLACK)
    if np.any(outside):
        raise ValueError(
            f"The {name!r} parameter must lie in the support of the dose, {within}, give or take "
            f"{SUPPORT_SLACK:.0%} of its length. Got {dose_text(asked.values[outside][0])} instead."
        )
    return asked


def default_grid(
    dose: Any, n_points: int = 20, baseline: float | None = None, weights: Any = None
) -> FloatArray:
    """Doses at which curves are shown and compared, ascending.

    The distinct doses when there are at most 20; otherwise `n_points` at equal distances from the
    1 % to the 99 % quantile. The baseline is added where it is not among them. Integrals over the
    grid: `doseforest.engine.splits.distances.trapezoid_weights`.

    Parameters
    ----------
    dose : array of shape (n_rows,)
        Observed doses.
    n_points : int, default=20
        Number of doses when they are not levels, at least 2. Raise it for curves with narrow
        features; whatever is computed on the grid takes time in proportion.
    baseline : float, optional
        A dose in the support that the grid must hold.
    weights : array of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    array of shape (n_doses,)
        The grid.

    Examples
    --------
    >>> default_grid([1.0, 3.0, 2.0, 1.0])
    array([1., 2., 3.])
    >>> default_grid(np.arange(1001), n_points=3, baseline=0.0)
    array([  0.,  10., 500., 990.])
    """
    check_count(n_points, 2, "n_points")
    sample = dose_sample(dose, weights)
    grid, _ = sample.levels()
    if len(grid) > FEW_LEVELS:
        central = sample.range(CENTRAL_TAIL)
        grid = np.linspace(central.low, central.high, n_points)
    if baseline is None:
        return grid
    start = check_doses(baseline, sample.range(), "baseline").values
    apart = np.abs(grid - start) > 1e-9 * np.ptp(grid)  # else one dose, seen through rounding
    return np.sort(np.concatenate([grid[apart], start]))


def point_masses(dose: Any, threshold: float = 0.05, weights: Any = None) -> FloatArray:
    """Doses that many rows share while the other doses are continuous, ascending.

    A mass has at least `threshold` of the weight and five times that of the nearest doses below
    the threshold, on either side. The others count as continuous when they have more than 20
    distinct values; a dose of few levels has no masses.

    Parameters
    ----------
    dose : array of shape (n_rows,)
        Observed doses.
    threshold : float, default=0.05
        Least share of the weight at a mass. Lower it to find smaller ones; doses that are merely
        rounded may then count as masses.
    weights : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.

    Returns
    -------
    array of shape (n_masses,)
        The doses with a mass.

    Examples
    --------
    >>> point_masses(np.append(np.zeros(30), np.linspace(0.1, 10.0, 70)))
    array([0.])
    >>> point_masses([0.0, 1.0, 2.0])
    array([], dtype=float64)
    """
    if not 0 < threshold <= 1:
        raise ValueError(
            f"The 'threshold' parameter must be a float in (0, 1]. Got {threshold!r} instead."
        )
    distinct, shares = dose_sample(dose, weights).levels()
    heavy = shares >= threshold
    if len(distinct) - heavy.sum() <= FEW_LEVELS:
        return np.empty(0)
    beside = np.concatenate([[0.0], shares[~heavy], [0.0]])
    place: IntArray = np.searchsorted(distinct[~heavy], distinct[heavy])
    neighbours = np.maximum(beside[place], beside[place + 1])
    masses: FloatArray = distinct[heavy][shares[heavy] >= MASS_CONTRAST * neighbours]
    return masses


@dataclass(frozen=True, slots=True, eq=False)
class BaselineDose:
    """The dose that effects are measured against, and what the user was told about it."""

    dose: Doses  # shape ()
    effective_sample: float  # rows that speak about the dose, after kernel weights
    warning: str | None


def choose_baseline(doses: Any, effective_sample: Any, minimum: float = 50.0) -> BaselineDose:
    """Take 0 where enough rows speak about it, otherwise the lowest dose with enough.

    Anything but 0 is said in a `BaselineWarning`; where no dose has enough, the one with most is
    taken. Of several components the lowest dose has the lowest sum, each in units of its range.

    Parameters
    ----------
    doses : array of shape (n,)
        Candidates.
    effective_sample : array of shape (n,)
        Effective kernel sample at each.
    minimum : float, default=50
        Effective sample that is enough.

    Examples
    --------
    >>> choose_baseline([0.0, 1.0, 2.0], [80.0, 200.0, 90.0]).dose.plain
    0.0
    """
    candidates = doses if isinstance(doses, Doses) else Doses(as_doses(doses))
    sizes = as_doses(effective_sample, "effective_sample")
    if sizes.shape != candidates.shape or not len(sizes):
        raise ValueError(
            "The 'effective_sample' parameter must give one size per dose. "
            f"Got {len(sizes)} for {len(candidates)} doses instead."
        )
    table = candidates.table
    zero, enough = (table == 0.0).all(axis=1), sizes >= minimum
    if (zero & enough).any():
        place = int(np.argmax(zero & enough))
        return BaselineDose(candidates[place], float(sizes[zero & enough].max()), None)
    if enough.any():
        spread = np.maximum(np.ptp(table, axis=0), np.finfo(np.float64).tiny)
        heights = ((table - table.min(axis=0)) / spread).sum(axis=1)
        chosen = int(np.argmin(np.where(enough, heights, np.inf)))
        taken = "is the lowest with enough"
    else:
        chosen, taken = int(np.argmax(sizes)), "has the most, though not enough either"
    at_zero = f"has {sizes[zero].max():.3g}" if zero.any() else "lies outside the observed doses"
    if candidates.joint:
        at_zero = "of every component has fewer"
    text = (
        f"The baseline dose needs an effective sample of {minimum:g} rows, and the dose 0 "
        f"{at_zero}: {dose_text(candidates[chosen])}, which {taken} ({sizes[chosen]:.3g}), is "
        "taken instead. To compare with another dose give 'baseline'."
    )
    warnings.warn(text, BaselineWarning, stacklevel=4)
    return BaselineDose(candidates[chosen], float(sizes[chosen]), text)
