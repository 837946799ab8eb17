"""By how much the treated arm is ahead, absolutely and relatively, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from doseforest.base.dtypes import FloatArray
from doseforest.base.intervals import checked_coverage, normal_quantile
from doseforest.pricing.experiments.arm_means import ArmMeans

ROUNDING = 1e-12  # of the values compared: a smaller increment with a smaller error is none


@dataclass(frozen=True, slots=True)
class Increment:
    """The value of the treated arm less that of the control arm.

    Attributes
    ----------
    control, treatment : float
        Values of the arms.
    standard_error : float
        Standard error of the absolute increment.
    relative_error : float
        Standard error of the relative increment, by the delta method.
    freedom : float
        Degrees of freedom of the errors: with few units they are uncertain themselves.

    Examples
    --------
    >>> more = Increment(control=10.0, treatment=11.0, standard_error=0.4, relative_error=0.045)
    >>> more.absolute, round(more.relative, 3)
    (1.0, 0.1)
    >>> low, high = more.interval()
    >>> round(low, 2), round(high, 2)
    (0.22, 1.78)
    """

    control: float
    treatment: float
    standard_error: float
    relative_error: float
    freedom: float = math.inf

    @property
    def absolute(self) -> float:
        """Treatment less control."""
        return self.treatment - self.control

    @property
    def relative(self) -> float:
        """Increment over the value of the control arm; NaN where that is 0."""
        return self.absolute / self.control if self.control else math.nan

    @property
    def p_value(self) -> float:
        """Of no increment at all, two-sided."""
        if self.standard_error == 0:
            return 1.0 if self.absolute == 0 else 0.0
        distance = abs(self.absolute / self.standard_error)
        if math.isinf(self.freedom):
            return math.erfc(distance / math.sqrt(2))
        return float(2 * stdtr(self.freedom, -distance))

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the absolute increment.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth.

        Returns
        -------
        low, high : float
            Its ends.
        """
        reach = self._quantile(coverage) * self.standard_error
        return self.absolute - reach, self.absolute + reach

    def relative_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the relative increment.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth.

        Returns
        -------
        low, high : float
            Its ends.
        """
        reach = self._quantile(coverage) * self.relative_error
        return self.relative - reach, self.relative + reach

    def _quantile(self, coverage: float) -> float:
        """Student's, or the normal one where errors are known."""
        if math.isinf(self.freedom):
            return normal_quantile(coverage)
        return float(stdtrit(self.freedom, (1 + checked_coverage(coverage)) / 2))

    def as_dict(self, coverage: float = 0.95) -> dict[str, Any]:
        """Numbers for a file; None where there is no relative increment.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the intervals cover the truth.

        Returns
        -------
        dict
            Numbers by name.
        """
        has_relative = math.isfinite(self.relative)
        return {
            "control": self.control,
            "treatment": self.treatment,
            "absolute": self.absolute,
            "standard_error": self.standard_error,
            "freedom": self.freedom if math.isfinite(self.freedom) else None,
            "interval": list(self.interval(coverage)),
            "relative": self.relative if has_relative else None,
            "relative_interval": list(self.relative_interval(coverage)) if has_relative else None,
            "p_value": self.p_value,
        }


def ratio_increment(means: ArmMeans, numerator: int, denominator: int | None) -> Increment:
    """Increment of the ratio of two of the means; of one mean where there is no denominator.

    The standard errors are those of linearised ratios (the delta method), with Satterthwaite's
    degrees of freedom.
    """
    n_outcomes = means.values.shape[1]
    ratios, gradients = [], []
    for arm in (0, 1):
        top = means.values[arm, numerator]
        bottom = 1.0 if denominator is None else means.values[arm, denominator]
        gradient = np.zeros(2 * n_outcomes)
        gradient[arm * n_outcomes + numerator] = 1.0 / bottom
        if denominator is not None:
            gradient[arm * n_outcomes + denominator] = -top / bottom**2
        ratios.append(float(top / bottom))
        gradients.append(gradient)
    control, treatment = ratios
    absolute = gradients[1] - gradients[0]
    error = math.sqrt(max(float(absolute @ means.covariance @ absolute), 0.0))
    if max(abs(treatment - control), error) <= ROUNDING * max(abs(control), abs(treatment)):
        return Increment(control, control, 0.0, 0.0 if control else math.nan)
    relative_error = math.nan
    if control:
        relative = gradients[1] / control - gradients[0] * treatment / control**2
        relative_error = math.sqrt(max(float(relative @ means.covariance @ relative), 0.0))
    freedom = _freedom(means, absolute)
    return Increment(control, treatment, error, relative_error, freedom)


def _freedom(means: ArmMeans, gradient: FloatArray) -> float:
    """Satterthwaite's degrees of freedom: the variance is a sum over arms, each known by its units.

    An arm's part has its units less one for the mean and one for each slope.
    """
    squares = (means.influence @ gradient) ** 2
    parts = np.array([squares[~means.treated].sum(), squares[means.treated].sum()])
    if not parts.sum() > 0:
        return math.inf
    counts = np.array([(~means.treated).sum(), means.treated.sum()])
    shares = parts / parts.sum()
    return float(1.0 / (shares**2 / (counts - 1 - means.n_slopes)).sum())
