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
    value, standard_error : float
    degrees : float, default=inf
        Degrees of freedom of the standard error: how well it is known itself.

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
        """Lower and upper end of an interval that covers the truth with this chance."""
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
    values, standard_errors : arrays of one shape
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
        """Lower and upper ends, of the shape of the values: each is covered with this chance."""
        return self._around(student_quantile(self.degrees, coverage))

    def at(self, place: int) -> Estimate:
        """One of them.

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
        rows = [[label, *own] for label, own in zip(self._labels(), texts, strict=True)]
        return "\n".join(text_table(["", "value", "std. error", "2.5 %", "97.5 %"], rows))

    __repr__ = __str__


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointEstimates(Estimates):
    """Several numbers whose errors move together, as those of a curve do.

    Parameters
    ----------
    values, standard_errors : arrays of shape (n,)
    covariance : array of shape (n, n)
        Of the values.
    degrees : float or array of shape (n,), default=inf

    Examples
    --------
    >>> both = JointEstimates(np.zeros(2), np.ones(2), np.eye(2))
    >>> both.interval()[1].round(2), both.band()[1].round(2)  # the band has to cover two
    (array([1.96, 1.96]), array([2.22, 2.22]))
    """

    covariance: FloatArray

    def band(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, (n,) each: all are covered at once with this chance.

        The values move together as their covariance says: a Gaussian multiplier bootstrap of the
        largest deviation in standard errors, with one multiplier for each unit, or for each group,
        shared by all. Where few units make up a standard error, Student's quantile takes the place
        of the normal one that is as rare.
        """
        reach = simultaneous_quantile(self.covariance, coverage)
        return self._around(student_reach(reach, self.degrees))
