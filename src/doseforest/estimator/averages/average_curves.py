"""Average curves, doubly robust: the mean of the units' curves plus what their residuals say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.intervals import (
    degrees_of_freedom,
    simultaneous_quantile,
    student_quantile,
    student_reach,
)
from doseforest.doses.smoothing.boundary import local_constant_weights, local_linear_weights
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.local_polynomials import local_polynomials
from doseforest.doses.vectors import is_record


@dataclass(frozen=True, slots=True, eq=False)
class AverageDoseResponse:
    """The average dose-response function (ADRF) at some doses.

    Examples
    --------
    >>> curve = AverageDoseResponse(
    ...     np.array([0.0, 1.0]), np.array([2.0, 3.0]), np.array([0.1, 0.2]),
    ...     covariance=np.diag([0.01, 0.04]))
    >>> curve.interval()[0].round(2), curve.interval()[1].round(2)
    (array([1.8 , 2.61]), array([2.2 , 3.39]))
    >>> curve.band()[0].round(2)
    array([1.78, 2.56])
    """

    doses: FloatArray  # (n_doses,) or (n_doses, n_components)
    values: FloatArray  # (n_doses,)
    standard_errors: FloatArray  # (n_doses,)
    covariance: FloatArray  # (n_doses, n_doses) of the values
    bandwidth: float | None = None  # of the values; None: doses are matched, not smoothed
    method: str = "least_error"  # or "bias_corrected", see `Averager.average_curve`
    degrees: FloatArray | None = None  # (n_doses,) of freedom of the errors; None: they are known

    def interval(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, (n_doses,) each: every dose is covered with this chance."""
        return self._around(student_quantile(self._degrees, coverage))

    def band(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, (n_doses,) each: all doses at once are covered with this chance.

        The values move together as their covariance says: a Gaussian multiplier bootstrap of the
        largest deviation in standard errors, with one multiplier for each unit, or for each group,
        shared by all doses. Where few units make up a standard error, Student's quantile takes the
        place of the normal one that is as rare.
        """
        reach = simultaneous_quantile(self.covariance, coverage)
        return self._around(student_reach(reach, self._degrees))

    @property
    def _degrees(self) -> FloatArray:
        return np.full(len(self.values), np.inf) if self.degrees is None else self.degrees

    def _around(self, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (
            self.values - reach * self.standard_errors,
            self.values + reach * self.standard_errors,
        )

    def elasticity(self) -> AverageElasticity:
        """Per cent by which the average outcome changes when the dose rises by one per cent.

        The slope of the least-squares line through the logarithms of the values over those of the
        doses: over the range of these doses, each counting alike. Its standard error is by the
        delta method, with the covariance of the values.

        Examples
        --------
        >>> curve = AverageDoseResponse(
        ...     np.array([1.0, 4.0]), np.array([6.0, 3.0]), np.array([0.6, 0.3]),
        ...     covariance=np.diag([0.36, 0.09]))
        >>> found = curve.elasticity()
        >>> round(found.value, 3), round(found.standard_error, 3)
        (-0.5, 0.102)
        """
        table = self.doses.reshape(len(self.doses), -1)
        varies = np.ptp(table, axis=0) > 0
        doses = table[:, int(np.argmax(varies))]
        if varies.sum() != 1 or not (doses > 0).all():
            raise ValueError(
                "The 'doses' parameter of average_dose_response must hold at least two doses, all "
                "of them positive, for an elasticity; of several components one may change. "
                f"Got {self.doses.tolist()} instead."
            )
        if not (self.values > 0).all():
            place = int(np.argmin(self.values))
            raise ValueError(
                "The 'values' of an average dose-response must be positive for an elasticity. "
                f"Got {self.values[place]:g} at dose {doses[place]:g} instead."
            )
        centred = np.log(doses) - np.log(doses).mean()
        slope = centred / (centred @ centred)  # of a line through values at the doses
        gradient = slope / self.values
        error = np.sqrt(gradient @ self.covariance @ gradient)
        value = float(slope @ np.log(self.values))
        return AverageElasticity(value, float(error), float(self._degrees.min()))


@dataclass(frozen=True, slots=True)
class AverageElasticity:
    """Change of the average outcome in per cent for one per cent more of the dose."""

    value: float
    standard_error: float
    degrees: float = np.inf  # of freedom of the standard error

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Lower and upper end."""
        return around(self, coverage)


@dataclass(frozen=True, slots=True)
class AverageEffect:
    """The mean over units of the outcome at a dose less that at the baseline.

    Examples
    --------
    >>> AverageEffect(2.0, 0.5).interval(coverage=0.9)
    (1.177..., 2.822...)
    """

    value: float
    standard_error: float
    degrees: float = np.inf  # of freedom of the standard error

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Lower and upper end."""
        return around(self, coverage)


class Estimate(Protocol):
    """A number with its standard error."""

    @property
    def value(self) -> float:
        """The number."""

    @property
    def standard_error(self) -> float:
        """Its standard error."""

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error."""


def around(found: Estimate, coverage: float) -> tuple[float, float]:
    """Ends of the interval of an estimate."""
    reach = float(student_quantile(found.degrees, coverage)) * found.standard_error
    return found.value - reach, found.value + reach


def residual_influence(
    dose: FloatArray,
    residual: FloatArray,
    doses: FloatArray,
    *,
    kernel: str | Kernel,
    bandwidth: float,
    treatment_weights: FloatArray,
    weights: FloatArray | None = None,
) -> FloatArray:
    """What each unit's residual says about the average outcome at each dose, (n_units, n_doses).

    The mean over units is the value at each dose of local lines through the residuals with weights
    K r; added to the mean of the units' curves it makes an average curve doubly robust.

    Parameters
    ----------
    dose, residual : arrays of shape (n_units,)
        Observed dose; outcome less the curve at it, from models that have not seen the unit.
    doses : array of shape (n_doses,)
    treatment_weights : array of shape (n_units,)
        Weights r, about p(T) / pi(T | X).
    weights : array of shape (n_units,), optional
        Weights of the sample, of mean 1; then it is the weighted mean over units that counts.

    Examples
    --------
    >>> dose = np.linspace(0.0, 1.0, 101)
    >>> said = residual_influence(
    ...     dose, 2 * dose, np.array([0.5]),
    ...     kernel="epanechnikov", bandwidth=0.2, treatment_weights=np.ones(101))
    >>> said.mean(axis=0).round(6)
    array([1.])
    """
    own = treatment_weights if weights is None else treatment_weights * weights
    line = local_constant_weights if kernel == "exact" else local_linear_weights
    smooth = line(dose, doses, bandwidth, kernel, own).astype(np.float64)
    if weights is not None:  # they come back in the mean over units
        smooth /= np.where(weights > 0, weights, 1.0)[:, None]
    smooth *= residual[:, None]
    return smooth


def centred_influence(
    dose: FloatArray,
    residual: FloatArray,
    doses: FloatArray,
    *,
    kernel: str | Kernel,
    bandwidth: float,
    treatment_weights: FloatArray,
    weights: FloatArray | None = None,
    degree: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """What residuals add to the average outcome at each dose, and what each adds to its error.

    Of the shapes (n_doses,) and (n_units, n_doses), for the arguments of `residual_influence`. The
    weights W of a stabilised mean are divided by their own mean, so a unit moves the mean by
    W_i (e_i - c(t)), c(t) the mean of W e, and not by W_i e_i: where the outcome model is off, c is
    large and W_i e_i overstates the error. A local line or parabola takes the place of c.

    Parameters
    ----------
    degree : {1, 2}
        Of the local polynomials; doses of few levels or several components have means.

    Examples
    --------
    >>> dose = np.linspace(0.0, 1.0, 101)
    >>> mean, said = centred_influence(
    ...     dose, 7 + 2 * dose, np.array([0.5]),
    ...     kernel="epanechnikov", bandwidth=0.2, treatment_weights=np.ones(101))
    >>> mean, bool(abs(said).max() < 1e-9)
    (array([8.]), True)
    """
    if kernel == "exact" or is_record(dose):
        smooth = residual_influence(
            dose,
            np.ones(len(dose)),
            doses,
            kernel=kernel,
            bandwidth=bandwidth,
            treatment_weights=treatment_weights,
            weights=weights,
        )
        mean: FloatArray = np.average(smooth * residual[:, None], axis=0, weights=weights)
        return mean, smooth * (residual[:, None] - mean)
    own = treatment_weights if weights is None else treatment_weights * weights
    fit = local_polynomials(dose, residual, doses, bandwidth, kernel, own, degree=degree)
    if weights is None:
        return fit.values, fit.influence
    # They come back in the mean over units.
    return fit.values, fit.influence / np.where(weights > 0, weights, 1.0)[:, None]


@dataclass(frozen=True, slots=True, eq=False)
class UnitsAverage:
    """Means over units, and how well they are known."""

    mean: FloatArray  # (n_doses,)
    error: FloatArray  # (n_doses,) standard errors
    covariance: FloatArray  # (n_doses, n_doses) of the means
    degrees: FloatArray  # (n_doses,) of freedom of the standard errors


def average_of_units(
    said: FloatArray, weights: FloatArray | None, clusters: IntArray
) -> UnitsAverage:
    """Mean over units of what each says, (n_units, n_doses), with errors by clusters.

    Variances have the factor G / (G - 1) of G clusters with weight: without it those of few
    clusters are too small. One cluster has no spread to tell an error by, which is infinite then.

    Examples
    --------
    >>> found = average_of_units(np.array([[1.0], [3.0]]), None, np.array([0, 1]))
    >>> found.mean, found.error, found.degrees  # a deviation of sqrt(2), over sqrt(2)
    (array([2.]), array([1.]), array([1.]))
    """
    own = np.ones(len(said)) if weights is None else weights
    mean = np.average(said, axis=0, weights=own)
    centred = (said - mean) * own[:, None]
    sums = np.stack([np.bincount(clusters, weights=column) for column in centred.T], axis=1)
    n_clusters = int(np.count_nonzero(np.bincount(clusters, own > 0)))
    if n_clusters == 1:
        unknown = np.full((len(mean), len(mean)), np.inf)
        return UnitsAverage(mean, unknown[0], unknown, np.ones(len(mean)))
    products = sums.T @ sums
    covariance = products * (n_clusters / (n_clusters - 1)) / own.sum() ** 2
    degrees = degrees_of_freedom(np.diag(products), (sums**4).sum(axis=0), n_clusters)
    return UnitsAverage(mean, np.sqrt(np.diag(covariance)), covariance, degrees)
