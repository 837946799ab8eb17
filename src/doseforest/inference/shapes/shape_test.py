"""Whether the data reject that the average curve has a shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import check_count
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.inference.shapes.shape_projection import project
from doseforest.inference.shapes.shapes import (
    CURVATURES,
    DIRECTIONS,
    Shape,
    checked_shape,
    shape_constraints,
    shape_text,
)

# Averages at close doses are nearly the same number: their difference is judged by its standard
# error and this share of the variances, lest a wiggle of no size counts as a reversal.
SMALLEST_ERROR = 1e-9  # of a contrast, as a share of the largest value
ROUNDED = 1e-5  # standard errors that are rounding where errors are the smallest
SHARE_OF_VARIANCES = 0.1
NUMBERS_AT_ONCE = 2**22
MOST_DOSES_OF_CURVATURES = 60  # triples grow with the cube: 34,220 of 60 doses


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShapeTest:
    """A test that an average curve has a shape; printed, a sentence.

    Attributes
    ----------
    shape : tuple of str
        Direction, curvature, or both.
    doses : array of shape (n_doses,)
        The doses.
    values : array of shape (n_doses,)
        The average curve.
    projected : array of shape (n_doses,)
        The nearest curve of the shape, in standard errors.
    statistic : float
        Largest violation in standard errors; at most 0 where there is none.
    critical_value : float
        Above it the shape is rejected at 5 %.
    p_value : float
        Chance of a violation as large, where the curve has the shape.
    worst : tuple of float
        The two doses between which the direction is violated most, or three for a curvature.

    Examples
    --------
    >>> falls = AverageDoseResponse(
    ...     values=np.array([5.0, 4.0, 1.0]), standard_errors=np.full(3, 0.5),
    ...     covariance=np.eye(3) / 4, doses=np.array([0.0, 1.0, 2.0]))
    >>> shape_test(falls, "increasing").worst
    (0.0, 2.0)
    """

    shape: tuple[str, ...]
    doses: FloatArray  # (n_doses,)
    values: FloatArray  # (n_doses,)
    projected: FloatArray  # (n_doses,)
    statistic: float
    critical_value: float
    p_value: float
    worst: tuple[float, ...]

    def __str__(self) -> str:
        verdict = "reject" if self.statistic > self.critical_value else "do not reject"
        text = f"The data {verdict} that the average curve is {shape_text(self.shape)}: "
        if self.statistic <= 0:
            return text + f"the estimate itself is (p = {self.p_value:.3g})."
        doses = [f"{dose:.4g}" for dose in self.worst]
        where = f"between doses {doses[0]} and {doses[-1]}"
        return text + (
            f"{where} it goes against it by {self.statistic:.2f} standard errors "
            f"(p = {self.p_value:.3g})."
        )

    __repr__ = __str__


def shape_test(
    average: AverageDoseResponse, shape: Shape, *, n_draws: int = 10_000, random_state: int = 0
) -> ShapeTest:
    """Test that an average curve has a shape.

    The statistic is the largest violation in standard errors, over all pairs of doses for a
    direction (how far it falls though it should rise) and over all triples for a curvature (how
    far the middle lies off the chord, on the wrong side). All distances are looked at, so a slow
    reversal is found as well as a steep one. A curve of the shape has no larger statistic than the
    noise around it alone would have: the critical value is that of a flat curve (a straight one
    for a curvature), by draws from the normal distribution with the covariance of the estimate.
    The test rejects a true shape at most as often as it says, and less often where the curve is
    steep.

    Parameters
    ----------
    average : AverageDoseResponse
        At ascending doses of one component.
    shape : str or pair of str
        "increasing" or "decreasing", "concave" or "convex", or one of each.
    n_draws : int, default=10000
        Draws of the noise.
    random_state : int, default=0

    Examples
    --------
    >>> falls = AverageDoseResponse(
    ...     values=np.array([5.0, 4.0, 1.0]), standard_errors=np.full(3, 0.5),
    ...     covariance=np.eye(3) / 4, doses=np.array([0.0, 1.0, 2.0]))
    >>> print(shape_test(falls, "increasing"))
    The data reject that the average curve is increasing: between doses 0 and 2 it goes against it
    by 5.39 standard errors (p = 0.0001).
    >>> shape_test(falls, ("decreasing", "concave")).p_value
    1.0
    """
    check_count(n_draws, 100, "n_draws")
    check_count(random_state, 0, "random_state")
    names = checked_shape(shape)
    doses = average.doses
    if doses.ndim != 1 or (np.diff(doses) <= 0).any():
        raise ValueError(
            "The 'doses' parameter must hold ascending doses of one component for a test of shape. "
            f"Got {doses.tolist()} instead."
        )
    if len(doses) > MOST_DOSES_OF_CURVATURES and not set(names) <= set(DIRECTIONS):
        raise ValueError(
            f"The 'doses' parameter must hold at most {MOST_DOSES_OF_CURVATURES} doses for a test "
            f"of curvature, which looks at all triples of them. Got {len(doses)} instead."
        )
    constraints = shape_constraints(names, doses)
    violations = measured_violations(names, doses, average.covariance, average.values)
    result = violations.sizes(average.values[None])[0]
    result = np.where(np.abs(result) > ROUNDED, result, 0.0)
    largest = violations.largest_of_noise(average.covariance, n_draws, random_state)
    worst, statistic = violations.places[int(np.argmax(result))], float(result.max())
    return ShapeTest(
        shape=names,
        doses=doses,
        values=average.values,
        projected=project(average.values[None], constraints, np.diag(average.covariance))[0],
        statistic=statistic,
        critical_value=float(np.quantile(largest, 0.95)),
        p_value=float((1 + (largest >= statistic).sum()) / (1 + n_draws)),
        worst=tuple(float(doses[place]) for place in worst),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """Contrasts of an average curve that are positive where a shape is violated."""

    contrasts: FloatArray  # (n_contrasts, n_doses) in standard errors
    places: list[tuple[int, ...]]  # of the doses of each

    def sizes(self, curves: FloatArray) -> FloatArray:
        """Every contrast of every curve, (n_curves, n_contrasts)."""
        return curves @ self.contrasts.T

    def largest(self, curves: FloatArray) -> FloatArray:
        """The largest contrast of every curve, (n_curves,)."""
        step = max(1, NUMBERS_AT_ONCE // len(self.contrasts))
        blocks = range(0, len(curves), step)
        return np.concatenate([self.sizes(curves[k : k + step]).max(axis=1) for k in blocks])

    def largest_of_noise(self, covariance: FloatArray, n_draws: int, seed: int) -> FloatArray:
        """The largest contrasts of noise around a curve that none of them sees, (n_draws,)."""
        variances, directions = np.linalg.eigh(covariance)
        root = directions * np.sqrt(np.maximum(variances, 0.0))
        noise = np.random.default_rng(seed).standard_normal((n_draws, len(covariance)))
        return self.largest(noise @ root.T)


def measured_violations(
    names: tuple[str, ...],
    doses: FloatArray,
    covariance: FloatArray,
    values: FloatArray | None = None,
) -> Violations:
    """All pairs and triples of doses, each measured by its standard error.

    Errors are at least a billionth of the values, where these are given, so that rounding of a
    curve without noise, as of a constant outcome, is no violation.
    """
    contrasts, places = _violations(names, doses)
    squares = (contrasts @ covariance * contrasts).sum(axis=1)
    scale = np.sqrt(squares + SHARE_OF_VARIANCES * contrasts**2 @ np.diag(covariance))
    largest = 0.0 if values is None else float(np.abs(values).max())
    scale = np.maximum(scale, max(SMALLEST_ERROR * largest, np.finfo(float).tiny))
    return Violations(contrasts / scale[:, None], places)


def _violations(
    names: tuple[str, ...], doses: FloatArray
) -> tuple[FloatArray, list[tuple[int, ...]]]:
    """Contrasts (n, n_doses) that are positive where the shape is violated, and their doses."""
    contrasts, places = [], []
    for name in names:
        size = 2 if name in DIRECTIONS else 3
        chosen = np.array(list(combinations(range(len(doses)), size)), np.int64).reshape(-1, size)
        rows = np.zeros((len(chosen), len(doses)))
        if size == 2:
            np.put_along_axis(rows, chosen, DIRECTIONS[name] * np.array([[1.0, -1.0]]), axis=1)
        else:
            low, middle, high = doses[chosen].T
            share = (high - middle) / (high - low)
            chord = np.column_stack([-share, np.ones(len(chosen)), share - 1.0])
            np.put_along_axis(rows, chosen, CURVATURES[name] * chord, axis=1)
        contrasts.append(rows)
        places += list(map(tuple, chosen.tolist()))
    return np.concatenate(contrasts), places
