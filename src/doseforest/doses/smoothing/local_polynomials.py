"""Local polynomials through outcomes over doses, with what each row adds to their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.boundary import edge_bandwidths
from doseforest.doses.smoothing.kernel_weights import scaled_differences
from doseforest.doses.smoothing.kernels import Kernel
from doseforest.doses.smoothing.smoother_inputs import checked_kernel, checked_row_weights

LEAST_EIGENVALUE = 1e-4  # of the local moments of (1, u, u^2); .03 for a full window, .006 for half
LEAST_LEFT = 0.1  # one less the leverage of a row, at the least


@dataclass(frozen=True, slots=True, eq=False)
class LocalPolynomials:
    """Values at some doses, and the part of each row in their errors."""

    values: FloatArray  # (n_doses,)
    influence: (
        FloatArray  # (n_rows, n_doses) of mean 0; the sum of squares over n^2 is the variance
    )


def local_polynomials(
    dose: FloatArray,
    outcome: FloatArray,
    grid: FloatArray,
    bandwidth: float,
    kernel: str | Kernel,
    weights: FloatArray | None = None,
    *,
    degree: int = 1,
) -> LocalPolynomials:
    """Fit polynomials in T - t by least squares with weights K_h(T_i - t) r_i, at every t.

    The influence of a row is W_i (Y_i - f_t(T_i)) / (1 - l_i), W the equivalent weights of mean 1,
    f_t the polynomial at t and l its leverages: but for a constant, n times the change of the value
    when the row is left out. Only what the local fit leaves counts as noise. The bandwidth doubles
    at the edges, see `edge_bandwidths`. Where the local doses do not carry the polynomial, its
    degree is lowered.

    Parameters
    ----------
    dose, outcome : arrays of shape (n_rows,)
    grid : array of shape (n_doses,)
    weights : array of shape (n_rows,), optional
        Row weights r; ones by default.
    degree : {0, 1, 2}

    Examples
    --------
    >>> dose = np.linspace(0, 1, 201)
    >>> fit = local_polynomials(
    ...     dose, dose**2, np.array([0.0, 0.5]), 0.2, "epanechnikov", degree=2)
    >>> fit.values.round(6), float(abs(fit.influence).max()) < 1e-10
    (array([0.  , 0.25]), True)
    """
    own, row_weights = checked_kernel(kernel), checked_row_weights(weights, len(dose))
    widths = edge_bandwidths(grid, bandwidth, own, (float(dose.min()), float(dose.max())))
    moments = np.zeros((len(grid), 2 * degree + 1))
    crossed = np.zeros((len(grid), degree + 1))
    for rows, u in scaled_differences(dose, grid, widths):
        powered = own.value(u) * row_weights[rows, None]
        for power in range(2 * degree + 1):
            moments[:, power] += powered.sum(axis=0)
            if power <= degree:
                crossed[:, power] += outcome[rows] @ powered
            powered *= u
    if (moments[:, 0] <= 0).any():
        place = int(np.argmin(moments[:, 0]))
        raise ValueError(
            "The 'grid' parameter must hold doses that the kernel reaches from some row of "
            f"positive weight. Got {grid[place]}, which has none within bandwidth "
            f"{widths[place]}, instead."
        )
    coefficients, first, form = solve_moments(moments, crossed, degree)
    influence = np.empty((len(dose), len(grid)))
    for rows, u in scaled_differences(dose, grid, widths):
        share = own.value(u) * row_weights[rows, None] / moments[:, 0]
        left = outcome[rows, None] - horner(coefficients, u)
        without = np.maximum(1 - share * horner(form, u), LEAST_LEFT)
        influence[rows] = len(dose) * share * horner(first, u) * left / without
    return LocalPolynomials(coefficients[:, 0], influence - influence.mean(axis=0))


def solve_moments(
    moments: FloatArray, crossed: FloatArray, degree: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients of polynomials in u, one for each dose.

    Of the fits; of what turns kernel weights into equivalent ones, the first row of the inverse
    moments; and of the quadratic form of the inverse, which leverages are of.
    """
    means, targets = moments / moments[:, :1], crossed / moments[:, :1]
    coefficients, first = np.zeros(crossed.shape), np.zeros(crossed.shape)
    form = np.zeros(moments.shape)
    left = np.arange(len(moments))
    for own in range(degree, -1, -1):
        places = np.add.outer(np.arange(own + 1), np.arange(own + 1))
        gram = means[left][:, places]
        carried = np.linalg.eigvalsh(gram)[:, 0] > (LEAST_EIGENVALUE if own else 0.0)
        done = left[carried]
        inverse = np.linalg.inv(gram[carried])
        coefficients[done, : own + 1] = np.einsum("kij,kj->ki", inverse, targets[done, : own + 1])
        first[done, : own + 1] = inverse[:, 0]
        for power in range(2 * own + 1):
            form[done, power] = inverse[:, places == power].sum(axis=1)
        left = left[~carried]
    return coefficients, first, form


def horner(coefficients: FloatArray, u: FloatArray) -> FloatArray:
    """Values of polynomials, one for each column of u, (n_rows, n_doses)."""
    total = np.zeros(u.shape)
    for column in coefficients.T[::-1]:
        total *= u
        total += column
    return total
