"""Average curves, doubly robust: the mean of the units' curves plus what their residuals say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.estimates import Estimate, JointEstimates
from doseforest.base.intervals import degrees_of_freedom
from doseforest.data.row_blocks import Sums
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.smoothing.boundary import local_constant_weights, local_linear_weights
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.local_polynomials import local_polynomials


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AverageDoseResponse(JointEstimates):
    """The average dose-response function (ADRF) at some doses; it prints as a table.

    Attributes
    ----------
    values : array of shape (n_doses,)
        Average outcome at each dose.
    standard_errors : array of shape (n_doses,)
        Their standard errors.
    degrees : float or array of shape (n_doses,)
        Degrees of freedom of the standard errors.
    covariance : array of shape (n_doses, n_doses)
        Covariance of the values.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        The doses.
    bandwidth : float or None
        Bandwidth of the values; None where doses are matched, not smoothed.
    method : {"least_error", "bias_corrected"}
        What the values aim at: the least error, or no smoothing bias.

    Examples
    --------
    >>> curve = AverageDoseResponse(
    ...     values=np.array([2.0, 3.0]), standard_errors=np.array([0.1, 0.2]),
    ...     covariance=np.diag([0.01, 0.04]), doses=np.array([0.0, 1.0]))
    >>> curve.interval()[0].round(2), curve.interval()[1].round(2)
    (array([1.8 , 2.61]), array([2.2 , 3.39]))
    >>> curve.band()[0].round(2)
    array([1.78, 2.56])
    >>> print(curve)
            value  std. error  2.5 %  97.5 %
    dose 0      2         0.1    1.8     2.2
    dose 1      3         0.2   2.61    3.39
    """

    doses: FloatArray  # (n_doses,)
    bandwidth: float | None = None
    method: str = "least_error"

    def _labels(self) -> list[str]:
        return [f"dose {dose_text(dose, 4)}" for dose in self.doses]

    def elasticity(self) -> Estimate:
        """Per cent by which the average outcome changes when the dose rises by one per cent.

        The slope of the least-squares line through the logarithms of the values over those of the
        doses: over the range of these doses, each counting alike. Its standard error is by the
        delta method, with the covariance of the values.

        Returns
        -------
        Estimate
            The elasticity with its standard error.

        Examples
        --------
        >>> curve = AverageDoseResponse(
        ...     values=np.array([6.0, 3.0]), standard_errors=np.array([0.6, 0.3]),
        ...     covariance=np.diag([0.36, 0.09]), doses=np.array([1.0, 4.0]))
        >>> curve.elasticity()
        -0.5 (s.e. 0.102)
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
        return Estimate(value, float(error), degrees=float(np.min(self.degrees)))


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
    row_weights = treatment_weights if weights is None else treatment_weights * weights
    line = local_constant_weights if kernel == "exact" else local_linear_weights
    smooth = line(dose, doses, bandwidth, kernel, row_weights).astype(np.float64)
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
    if kernel == "exact" or Doses.of(dose).joint:
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
    row_weights = treatment_weights if weights is None else treatment_weights * weights
    fit = local_polynomials(dose, residual, doses, bandwidth, kernel, row_weights, degree=degree)
    if weights is None:
        return fit.values, fit.influence
    # They come back in the mean over units.
    return fit.values, fit.influence / np.where(weights > 0, weights, 1.0)[:, None]


def average_of_units(
    scores: FloatArray, weights: FloatArray | None, clusters: IntArray
) -> JointEstimates:
    """Mean over units of what each says, (n_units, n_doses), with errors by clusters.

    Variances have the factor G / (G - 1) of G clusters with weight: without it those of few
    clusters are too small. One cluster has no spread to tell an error by, which is infinite then.

    Examples
    --------
    >>> mean = average_of_units(np.array([[1.0], [3.0]]), None, np.array([0, 1]))
    >>> mean.values, mean.standard_errors, mean.degrees  # a deviation of sqrt(2), over sqrt(2)
    (array([2.]), array([1.]), array([1.]))
    """
    row_weights = np.ones(len(scores)) if weights is None else weights
    mean = np.average(scores, axis=0, weights=row_weights)
    sums = sums_of_groups((scores - mean) * row_weights[:, None], row_weights, clusters)
    return estimates_of_groups(mean, row_weights.sum(), sums, np.zeros(len(mean)))


def sums_of_groups(about: FloatArray, weights: FloatArray, groups: IntArray) -> Sums:
    """What errors of means are made of: sums over rows of products within their groups.

    Parameters
    ----------
    about : array of shape (n_rows, n_values)
        What rows say about the values, times their weights.
    weights : array of shape (n_rows,)
    groups : array of int of shape (n_rows,)
        Rows of a group are in one block.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    totals = np.zeros((n_groups, about.shape[1]))
    for place, column in enumerate(about.T):
        totals[:, place] = np.bincount(groups, column, n_groups)
    sizes = np.bincount(groups, minlength=n_groups)
    return (
        int(np.count_nonzero(np.bincount(groups, weights > 0, n_groups))),
        about.sum(axis=0),
        totals.T @ totals,
        (totals**4).sum(axis=0),
        sizes @ totals,
        sizes @ sizes,
    )


def estimates_of_groups(
    values: FloatArray, weight: float, sums: Sums, off: FloatArray
) -> JointEstimates:
    """Values with errors by groups.

    Parameters
    ----------
    values : array of shape (n_values,)
    weight : float
        Of all rows.
    sums : tuple
        `sums_of_groups` over all rows.
    off : array of shape (n_values,)
        By how much each row was not about the mean.
    """
    n_groups, _, products, fourths, sized, squares = sums
    if n_groups == 1:
        unknown = np.full((len(values), len(values)), np.inf)
        return JointEstimates(values, unknown[0], unknown, degrees=np.ones(len(values)))
    if off.any():
        crossed = np.outer(sized, off)
        products = products - crossed - crossed.T + squares * np.outer(off, off)
    covariance = products * (n_groups / (n_groups - 1)) / weight**2
    degrees = degrees_of_freedom(np.diag(products), fourths, n_groups)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return JointEstimates(values, errors, covariance, degrees=degrees)
