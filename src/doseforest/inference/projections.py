"""Best linear projections: scores of units regressed on covariates, with robust errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from doseforest.dtypes import FloatArray, IntArray
from doseforest.inference.intervals import normal_quantile

NEW_DIRECTION = 1e-8  # the least eigenvalue of the columns' moments, on the scale of correlations


@dataclass(frozen=True, slots=True, eq=False)
class LinearProjection:
    """A regression of doubly robust scores on covariates; it prints as a table.

    Examples
    --------
    >>> found = LinearProjection(("intercept", "age"), np.array([1.0, 0.5]),
    ...     np.array([0.2, 0.1]), np.diag([0.04, 0.01]), n=100)
    >>> print(found)
               coefficient  std. error     t        p   2.5 %  97.5 %
    intercept            1         0.2  5.00  5.7e-07   0.608    1.39
    age                0.5         0.1  5.00  5.7e-07   0.304   0.696
    """

    names: tuple[str, ...]  # the intercept first
    coefficients: FloatArray  # (n_terms,)
    standard_errors: FloatArray  # (n_terms,) HC3, or by groups
    covariance: FloatArray  # (n_terms, n_terms)
    n: int  # rows

    @property
    def t_values(self) -> FloatArray:
        """Coefficients in standard errors, (n_terms,)."""
        values: FloatArray = self.coefficients / self.standard_errors
        return values

    @property
    def p_values(self) -> FloatArray:
        """Chances of such coefficients where the true ones are 0, (n_terms,)."""
        values: FloatArray = 2 * ndtr(-np.abs(self.t_values))
        return values

    def interval(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends, (n_terms,) each."""
        reach = normal_quantile(coverage) * self.standard_errors
        return self.coefficients - reach, self.coefficients + reach

    def __str__(self) -> str:
        low, high = self.interval()
        header = ["", "coefficient", "std. error", "t", "p", "2.5 %", "97.5 %"]
        rows = [
            [name, f"{own:.3g}", f"{error:.2g}", f"{t:.2f}", f"{p:.2g}", f"{a:.3g}", f"{b:.3g}"]
            for name, own, error, t, p, a, b in zip(
                self.names,
                self.coefficients,
                self.standard_errors,
                self.t_values,
                self.p_values,
                low,
                high,
                strict=True,
            )
        ]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
            for line in (header, *rows)
        ]
        return "\n".join(lines)


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
    >>> found = project(1 + 2 * x + np.resize([0.1, -0.1], 100), x[:, None], ("x",))
    >>> found.coefficients.round(1)
    array([1., 2.])
    """
    own = np.ones(len(scores)) if weights is None else weights
    table = np.column_stack([np.ones(len(scores)), columns])
    gram = (table * own[:, None]).T @ table
    size = np.sqrt(np.diag(gram))
    safe = np.where(size > 0, size, 1.0)
    least, direction = np.linalg.eigh(gram / np.outer(safe, safe))
    if least[0] <= NEW_DIRECTION:
        place = int(np.argmax(np.abs(direction[1:, 0])))
        raise ValueError(
            "The 'features' parameter must have columns of which none is constant or a sum of "
            f"others. Got {names[place]!r}, which is, instead."
        )
    inverse = np.linalg.inv(gram)
    coefficients = inverse @ (table.T @ (own * scores))
    left = own * (scores - table @ coefficients)
    factor = 1.0
    if clusters is None:
        leverage = own * np.einsum("ij,jk,ik->i", table, inverse, table)
        left = left / np.maximum(1 - leverage, 1e-9)
        sums = table * left[:, None]
    else:
        _, codes = np.unique(clusters, return_inverse=True)
        sums = np.stack([np.bincount(codes, weights=left * own_) for own_ in table.T], axis=1)
        n_rows, n_clusters, n_terms = len(scores), len(sums), table.shape[1]
        factor = n_clusters / (n_clusters - 1) * (n_rows - 1) / max(n_rows - n_terms, 1)
    covariance = factor * inverse @ (sums.T @ sums) @ inverse
    return LinearProjection(
        ("intercept", *names),
        coefficients,
        np.sqrt(np.diag(covariance)),
        covariance,
        len(scores),
    )
