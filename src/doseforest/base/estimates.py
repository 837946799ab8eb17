"""Estimates with their standard errors: one number, several, several that move together.

What the library estimates is one of these three, or one of them with more to say: everywhere
`value` (`values`), `standard_error` (`standard_errors`), `interval()` and, for several at once,
`band()`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.intervals import simultaneous_quantile, student_quantile, student_reach
from doseforest.base.text_tables import text_table


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """A number with its standard error; it prints as both.

    Parameters
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error.
    degrees : float, default=inf
        Degrees of freedom of the standard error: few where it is uncertain itself, as with few
        groups.

    Examples
    --------
    >>> effect = Estimate(2.0, 0.5)
    >>> effect
    2 (s.e. 0.5)
    >>> effect.interval(coverage=0.9)
    (1.177..., 2.822...)
    """

    value: float
    standard_error: float
    degrees: float = field(default=np.inf, kw_only=True)

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the number.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth. Raise it for fewer misses and longer
            intervals.

        Returns
        -------
        low, high : float
            Its ends.
        """
        reach = float(student_quantile(self.degrees, coverage)) * self.standard_error
        return self.value - reach, self.value + reach

    def __str__(self) -> str:
        return f"{self.value:.4g} (s.e. {self.standard_error:.3g})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimates:
    """Several numbers with standard errors; they print as a table.

    Parameters
    ----------
    values : array
        The estimates.
    standard_errors : array of that shape
        Their standard errors.
    degrees : float or array of that shape, default=inf
        Degrees of freedom of the standard errors.

    Examples
    --------
    >>> print(Estimates(np.array([2.0, 3.0]), np.array([0.5, 1.0])))
       value  std. error  2.5 %  97.5 %
    0      2         0.5   1.02    2.98
    1      3           1   1.04    4.96
    """

    values: FloatArray
    standard_errors: FloatArray
    degrees: Any = field(default=np.inf, kw_only=True)  # of their shape, or one for all

    def interval(self, coverage: float = 0.95) -> tuple[Any, Any]:
        """Intervals, each for itself.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which each interval covers the truth. Raise it for fewer misses and longer
            intervals.

        Returns
        -------
        low, high : arrays of the shape of the values
            Their ends.
        """
        return self._around(student_quantile(self.degrees, coverage))

    def at(self, place: int) -> Estimate:
        """One of the estimates.

        Parameters
        ----------
        place : int
            Its place.

        Returns
        -------
        Estimate
            Value and standard error.

        Examples
        --------
        >>> Estimates(np.array([2.0, 3.0]), np.array([0.5, 1.0])).at(1)
        3 (s.e. 1)
        """
        own = self.values, self.standard_errors, np.broadcast_to(self.degrees, self.values.shape)
        value, error, degrees = (float(column[place]) for column in own)
        return Estimate(value, error, degrees=degrees)

    def _around(self, reach: Any) -> tuple[FloatArray, FloatArray]:
        return (
            self.values - reach * self.standard_errors,
            self.values + reach * self.standard_errors,
        )

    def _labels(self) -> list[str]:
        """What the lines of the table are called."""
        return [", ".join(map(str, place)) for place in np.ndindex(self.values.shape)]

    def __str__(self) -> str:
        low, high = self.interval()
        columns = (self.values, self.standard_errors, low, high)
        texts = zip(*(map("{:.3g}".format, column.ravel()) for column in columns), strict=True)
        rows = [[label, *text] for label, text in zip(self._labels(), texts, strict=True)]
        return "\n".join(text_table(["", "value", "std. error", "2.5 %", "97.5 %"], rows))

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointEstimates(Estimates):
    """Several numbers whose errors move together, as those of a curve do.

    Parameters
    ----------
    values : array of shape (n,)
        The estimates.
    standard_errors : array of shape (n,)
        Their standard errors.
    degrees : float or array of shape (n,), default=inf
        Degrees of freedom of the standard errors.
    covariance : array of shape (n, n)
        Covariance of the values.

    Examples
    --------
    >>> both = JointEstimates(np.zeros(2), np.ones(2), np.eye(2))
    >>> both.interval()[1].round(2), both.band()[1].round(2)  # the band has to cover two
    (array([1.96, 1.96]), array([2.22, 2.22]))
    """

    covariance: FloatArray

    def band(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Band that covers all values at once.

        The values move together as their covariance says: a Gaussian multiplier bootstrap of the
        largest deviation in standard errors, with one multiplier for each unit, or for each group,
        shared by all. Where few units make up a standard error, Student's quantile takes the place
        of the normal one that is as rare.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which all values are covered. Raise it for fewer misses and a wider band.

        Returns
        -------
        low, high : arrays of shape (n,)
            Its ends.
        """
        reach = simultaneous_quantile(self.covariance, coverage)
        return self._around(student_reach(reach, self.degrees))
