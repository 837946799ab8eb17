"""Errors of held-out units' curves, as they were published."""

from __future__ import annotations

import numpy as np
from scipy.integrate import romb

from doseforest.base.dtypes import FloatArray


def root_mean_square(errors: FloatArray) -> float:
    """Over units and doses, (n_units, n_doses): the root mean integrated squared error of GIKS.

    Examples
    --------
    >>> root_mean_square(np.array([[3.0, 0.0], [0.0, 4.0]]))
    2.5
    """
    return float(np.sqrt(np.mean(errors**2)))


def romberg_root(errors: FloatArray) -> float:
    """Root of the mean over units of the integral of squared errors over the doses from 0 to 1.

    Bockel-Rickermann et al. integrate by Romberg's rule over 65 doses with a step of 1/65, so that
    their integral is 64/65 of the mean.

    Examples
    --------
    >>> errors = np.full((3, 65), 2.0)
    >>> bool(np.isclose(romberg_root(errors), 2.0 * np.sqrt(64 / 65)))
    True
    """
    integrals = romb(errors**2, dx=1.0 / errors.shape[1], axis=1)
    return float(np.sqrt(np.mean(integrals)))


def policy_error(response: FloatArray, estimated: FloatArray) -> float:
    """Mean over units of the squared outcome that is lost at the dose with the best estimate.

    Both are curves, (n_units, n_doses), at the same doses.

    Examples
    --------
    >>> response = np.array([[1.0, 4.0, 2.0], [0.0, 1.0, 5.0]])
    >>> policy_error(response, np.array([[0.0, 0.0, 9.0], [0.0, 1.0, 2.0]]))
    2.0
    """
    chosen = np.argmax(estimated, axis=1)
    lost = response.max(axis=1) - response[np.arange(len(response)), chosen]
    return float(np.mean(lost**2))
