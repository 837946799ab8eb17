"""How wrong estimated effects are where the truth is not known: the risk of their shapes."""

from __future__ import annotations

import numpy as np

from doseforest.dtypes import FloatArray


def effect_losses(
    curve_at_dose: FloatArray,
    curve_mean_given_x: FloatArray,
    y: FloatArray,
    y_mean_given_x: FloatArray,
) -> FloatArray:
    """Loss of each row, shape (n_rows,); their mean is `effect_risk`."""
    arrays = {
        "curve_at_dose": curve_at_dose,
        "curve_mean_given_x": curve_mean_given_x,
        "y_mean_given_x": y_mean_given_x,
    }
    for name, values in arrays.items():
        if np.shape(values) != np.shape(y):
            raise ValueError(
                f"The {name!r} parameter must have one number per outcome ({len(y)}). "
                f"Got shape {np.shape(values)} instead."
            )
    losses: FloatArray = ((y - y_mean_given_x) - (curve_at_dose - curve_mean_given_x)) ** 2
    return losses


def effect_risk(
    curve_at_dose: FloatArray,
    curve_mean_given_x: FloatArray,
    y: FloatArray,
    y_mean_given_x: FloatArray,
    weights: FloatArray | None = None,
) -> float:
    """R-risk of dose-response curves: squared error of their shapes at the observed doses.

    From the outcome and from the curve what the covariates explain is taken off, so that a curve
    is judged by how it bends with the dose and not by its level: a constant added to a unit's
    curve changes nothing. With right means the risk is the noise of the outcomes plus the squared
    error of the shapes, where units have doses; which of two curves has the smaller one depends on
    errors of the means to second order only. Curves must not have seen the outcomes that they are
    judged by.

    Parameters
    ----------
    curve_at_dose : array of shape (n_rows,)
        Each row's curve at its observed dose.
    curve_mean_given_x : array of shape (n_rows,)
        Mean of each row's curve over the doses that units like it have.
    y, y_mean_given_x : arrays of shape (n_rows,)
        Outcomes and their means given the covariates.
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> dose, mean_dose = np.array([0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0, 2.0])
    >>> y, mean_y = 5 + 3 * dose, 5 + 3 * mean_dose
    >>> effect_risk(3 * dose, 3 * mean_dose, y, mean_y)
    0.0
    >>> effect_risk(2 * dose, 2 * mean_dose, y, mean_y)
    1.0
    """
    losses = effect_losses(curve_at_dose, curve_mean_given_x, y, y_mean_given_x)
    return float(np.average(losses, weights=weights))
