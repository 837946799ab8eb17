"""Does the effect rise one for one with its prediction: tests of curves by doubly robust scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import Estimates
from doseforest.base.text_tables import text_table
from doseforest.inference.robust_regression import robust_least_squares

TERMS = ("average curve", "differences between units")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibrationTest(Estimates):
    """How outcomes rise with what the forest predicts; printed, a table.

    Attributes
    ----------
    values : array of shape (2,)
        Coefficients of the average curve and of the differences from it, 1 where predictions are
        right. The second is 0 where the differences that the forest sees between units are noise,
        and below 1 where they are exaggerated.
    standard_errors : array of shape (2,)
        Their standard errors.
    degrees : float or array of shape (2,)
        Degrees of freedom of the standard errors.
    p_values : array of shape (2,)
        One-sided: that a coefficient is 0 or below.
    n_rows : int
        Number of rows.
    what : str
        What was tested.

    Examples
    --------
    >>> test = CalibrationTest(
    ...     np.array([1.0, 0.8]), np.array([0.1, 0.2]), p_values=np.array([0.0, 3e-5]), n_rows=500,
    ...     what="curves")
    >>> test.heterogeneity_p_value
    3e-05
    """

    p_values: FloatArray  # (2,)
    n_rows: int
    what: str

    @property
    def heterogeneity_p_value(self) -> float:
        """One-sided p-value that the predicted differences between units say nothing."""
        return float(self.p_values[1])

    def __str__(self) -> str:
        numbers = zip(self.values, self.standard_errors, self.p_values, strict=True)
        cells = [[f"{value:.3f}", f"{error:.3f}", f"{p:.3g}"] for value, error, p in numbers]
        rows = [[term, *cell] for term, cell in zip(TERMS, cells, strict=True)]
        table = text_table(["", "coefficient", "std. error", "p (one-sided)"], rows)
        return "\n".join([f"Calibration of {self.what}, {self.n_rows:,} rows", *table])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class HeterogeneityTest:
    """A test that all units have the same curve, but for its level; printed, a sentence.

    Attributes
    ----------
    statistic : float
        Coefficient of the predicted differences, in standard errors.
    p_value : float
        One-sided: that outcomes do not follow them.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> print(HeterogeneityTest(statistic=4.0, p_value=3.2e-5, n_rows=500))
    Effects differ between units: outcomes follow the predicted differences by 4.00 standard errors
    (p = 3.2e-05, 500 rows).
    """

    statistic: float
    p_value: float
    n_rows: int

    def __str__(self) -> str:
        verdict = (
            "differ between units" if self.p_value <= 0.05 else "may be the same for every unit"
        )
        return (
            f"Effects {verdict}: outcomes follow the predicted differences by {self.statistic:.2f} "
            f"standard errors (p = {self.p_value:.3g}, {self.n_rows:,} rows)."
        )

    __repr__ = __str__


def calibrate(
    target: FloatArray,
    average: FloatArray,
    difference: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
    what: str = "curves",
) -> CalibrationTest:
    """Regress what outcomes say on what was predicted: best linear predictor of effects.

    Parameters
    ----------
    target : array of shape (n_rows,)
        Doubly robust scores of an effect, or outcomes without what the covariates explain.
    average, difference : arrays of shape (n_rows,)
        The prediction for the average unit, and how the row's own differs from it; of models that
        have not seen the row's outcome.
    weights, clusters : arrays of shape (n_rows,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> difference = rng.normal(size=1000)
    >>> scores = 2.0 + 0.5 * difference + 0.3 * rng.normal(size=1000)  # half of what was predicted
    >>> calibrate(scores, np.full(1000, 2.0), difference).values.round(1)
    array([1. , 0.5])
    """
    design = np.column_stack([average, difference])
    fit = robust_least_squares(design, target, weights, clusters)
    errors = fit.standard_errors
    # A term that is 0 for all rows, as where all predictions agree, has nothing to say.
    silent = errors <= 1e-12 * np.abs(errors).max(initial=0.0)
    coefficients, errors = np.where(silent, 0.0, [fit.values, errors])
    ratio = np.divide(coefficients, errors, out=np.zeros(2), where=~silent)
    n_rows = len(target) if weights is None else int((weights > 0).sum())
    return CalibrationTest(
        values=coefficients,
        standard_errors=errors,
        degrees=fit.degrees,
        p_values=np.where(silent, 1.0, stdtr(fit.degrees, -ratio)),
        n_rows=n_rows,
        what=what,
    )
