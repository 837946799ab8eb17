"""Best linear projections: scores of units regressed on covariates, with robust errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import JointEstimates
from doseforest.base.intervals import MOST_DEGREES
from doseforest.base.text_tables import text_table
from doseforest.inference.robust_regression import robust_least_squares

NEW_DIRECTION = 1e-8  # the least eigenvalue of the columns' correlations
ROUNDING = 1e-12  # spread of a constant column, as a share of its largest number


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LinearProjection(JointEstimates):
    """A regression of doubly robust scores on covariates; it prints as a table.

    Attributes
    ----------
    values : array of shape (n_coefficients,)
        The coefficients, that of the intercept first.
    standard_errors : array of shape (n_coefficients,)
        HC3, or by groups.
    degrees : float or array of shape (n_coefficients,)
        Degrees of freedom of the standard errors.
    covariance : array of shape (n_coefficients, n_coefficients)
        Covariance of the coefficients.
    names : tuple of str
        Names of the coefficients, the intercept first.
    n : int
        Number of rows.

    Examples
    --------
    >>> line = LinearProjection(
    ...     values=np.array([1.0, 0.5]), standard_errors=np.array([0.2, 0.1]),
    ...     covariance=np.diag([0.04, 0.01]), names=("intercept", "age"), n=100)
    >>> print(line)
               coefficient  std. error     t        p  2.5 %  97.5 %
    intercept            1         0.2  5.00  5.7e-07  0.608    1.39
    age                0.5         0.1  5.00  5.7e-07  0.304   0.696
    """

    names: tuple[str, ...]
    n: int

    @property
    def t_values(self) -> FloatArray:
        """Coefficients in standard errors, (n_terms,)."""
        known = self.standard_errors > 0  # scores that are all alike leave no error
        values: FloatArray = np.divide(
            self.values, self.standard_errors, out=np.zeros(len(known)), where=known
        )
        return values

    @property
    def p_values(self) -> FloatArray:
        """Chances of such coefficients where the true ones are 0, (n_terms,)."""
        values: FloatArray = 2 * stdtr(
            np.minimum(self.degrees, MOST_DEGREES), -np.abs(self.t_values)
        )
        return values

    def __str__(self) -> str:
        low, high = self.interval()
        header = ["", "coefficient", "std. error", "t", "p", "2.5 %", "97.5 %"]
        rows = [
            [name, f"{each:.3g}", f"{error:.2g}", f"{t:.2f}", f"{p:.2g}", f"{a:.3g}", f"{b:.3g}"]
            for name, each, error, t, p, a, b in zip(
                self.names,
                self.values,
                self.standard_errors,
                self.t_values,
                self.p_values,
                low,
                high,
                strict=True,
            )
        ]
        return "\n".join(text_table(header, rows))

    __repr__ = __str__


def project(
    scores: FloatArray,
    columns: FloatArray,
    names: tuple[str, ...],
    *,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> LinearProjection:
    """Regress scores on columns and a constant, by weighted least squares.

    Parameters
    ----------
    scores : array of shape (n_rows,)
    columns : array of shape (n_rows, n_columns)
    weights : array of shape (n_rows,), optional
    clusters : array of shape (n_rows,), optional
        Rows that share one are dependent; without it errors are HC3, each residual over one less
        its leverage.

    Examples
    --------
    >>> x = np.arange(100) / 100
    >>> line = project(1 + 2 * x + np.resize([0.1, -0.1], 100), x[:, None], ("x",))
    >>> line.values.round(1)
    array([1., 2.])
    """
    row_weights = np.ones(len(scores)) if weights is None else weights
    middle = np.average(columns, axis=0, weights=row_weights)
    centred = columns - middle
    size = np.sqrt(np.average(centred**2, axis=0, weights=row_weights))
    _check_directions(centred, size, np.abs(columns).max(axis=0), names, row_weights)
    even = np.column_stack([np.ones(len(scores)), centred / size])
    fit = robust_least_squares(even, scores, row_weights, clusters)
    back = np.diag(1 / np.append(1.0, size))  # from even columns to those that were given
    back[0, 1:] = -middle / size
    covariance = back @ fit.covariance @ back.T
    return LinearProjection(
        values=back @ fit.values,
        standard_errors=np.sqrt(np.diag(covariance)),
        covariance=covariance,
        degrees=fit.degrees,
        names=("intercept", *names),
        n=len(scores),
    )


def _check_directions(
    centred: FloatArray,
    size: FloatArray,
    largest: FloatArray,
    names: tuple[str, ...],
    weights: FloatArray,
) -> None:
    """Refuse columns that are constant, but for rounding, or follow from the others."""
    place = int(np.argmin(size - ROUNDING * largest))
    if size[place] > ROUNDING * largest[place]:
        even = centred / size
        least, direction = np.linalg.eigh((even * weights[:, None]).T @ even / weights.sum())
        if least[0] > NEW_DIRECTION:
            return
        place = int(np.argmax(np.abs(direction[:, 0])))
    raise ValueError(
        "The 'features' parameter must have columns of which none is constant or a sum of "
        f"others. Got {names[place]!r}, which is, instead."
    )
