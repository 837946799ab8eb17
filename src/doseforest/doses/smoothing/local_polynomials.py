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
    row_weights = checked_row_weights(weights, len(dose))
    ends = float(dose.min()), float(dose.max())
    window = local_windows(grid, bandwidth, kernel, ends)
    moments, crossed = local_moments(dose, outcome, row_weights, window, degree)
    if (moments[:, 0] <= 0).any():
        place = int(np.argmin(moments[:, 0]))
        raise ValueError(
            "The 'grid' parameter must hold doses that the kernel reaches from some row of "
            f"positive weight. Got {grid[place]}, which has none within bandwidth "
            f"{window.widths[place]}, instead."
        )
    fits = solve_moments(window, moments, crossed, degree)
    influence = fits.influence(dose, outcome, row_weights, len(dose))
    return LocalPolynomials(fits.values, influence - influence.mean(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class LocalWindows:
    """The doses that polynomials are fitted at, each with its bandwidth."""

    doses: FloatArray  # (n_doses,) t
    widths: FloatArray  # (n_doses,) h
    kernel: Kernel


def local_windows(
    doses: FloatArray, bandwidth: float, kernel: str | Kernel, ends: tuple[float, float]
) -> LocalWindows:
    """Windows whose bandwidths are wider at the edges; `ends` are the lowest and highest dose."""
    kernel = checked_kernel(kernel)
    return LocalWindows(doses, edge_bandwidths(doses, bandwidth, kernel, ends), kernel)


def local_moments(
    dose: FloatArray, outcome: FloatArray, weights: FloatArray, window: LocalWindows, degree: int
) -> tuple[FloatArray, FloatArray]:
    """What polynomials are solved from, as sums over some rows that add up.

    Kernel weights times the powers of u = (T - t) / h, (n_doses, 2 degree + 1), and the first of
    these times outcomes, (n_doses, degree + 1).
    """
    moments = np.zeros((len(window.doses), 2 * degree + 1))
    crossed = np.zeros((len(window.doses), degree + 1))
    for rows, u in scaled_differences(dose, window.doses, window.widths):
        powered = window.kernel.value(u) * weights[rows, None]
        for power in range(2 * degree + 1):
            moments[:, power] += powered.sum(axis=0)
            if power <= degree:
                crossed[:, power] += outcome[rows] @ powered
            powered *= u
    return moments, crossed


@dataclass(frozen=True, slots=True, eq=False)
class LocalFits:
    """Polynomials in u = (T - t) / h at each dose t, and what influences on them are made of."""

    window: LocalWindows
    mass: FloatArray  # (n_doses,) sum of kernel weights
    coefficients: FloatArray  # (n_doses, degree + 1)
    first: FloatArray  # (n_doses, degree + 1) what turns kernel weights into equivalent ones
    form: FloatArray  # (n_doses, 2 degree + 1) what leverages are of

    @property
    def values(self) -> FloatArray:
        """Values at the doses, (n_doses,)."""
        values: FloatArray = self.coefficients[:, 0]
        return values

    def influence(
        self, dose: FloatArray, outcome: FloatArray, weights: FloatArray, n_rows: int
    ) -> FloatArray:
        """Part of some of the `n_rows` rows in the errors: see `local_polynomials`.

        Means of a kernel that reaches no other dose have no leverage taken off.
        """
        windows, kernel = self.window, self.window.kernel
        out = np.empty((len(dose), len(windows.doses)))
        for rows, u in scaled_differences(dose, windows.doses, windows.widths):
            share = kernel.value(u) * weights[rows, None] / self.mass
            left = outcome[rows, None] - horner(self.coefficients, u)
            without: FloatArray | float = 1.0
            if kernel.support > 0:
                without = np.maximum(1 - share * horner(self.form, u), LEAST_LEFT)
            out[rows] = n_rows * share * horner(self.first, u) * left / without
        return out


def solve_moments(
    window: LocalWindows, moments: FloatArray, crossed: FloatArray, degree: int
) -> LocalFits:
    """Polynomials from the `local_moments` of all rows; 0 at doses that no row is near."""
    coefficients, first = np.zeros(crossed.shape), np.zeros(crossed.shape)
    form = np.zeros(moments.shape)
    left = np.flatnonzero(moments[:, 0] > 0)
    mass = np.where(moments[:, 0] > 0, moments[:, 0], np.inf)
    means, targets = moments / mass[:, None], crossed / mass[:, None]
    for order in range(degree, -1, -1):
        places = np.add.outer(np.arange(order + 1), np.arange(order + 1))
        gram = means[left][:, places]
        carried = np.linalg.eigvalsh(gram)[:, 0] > (LEAST_EIGENVALUE if order else 0.0)
        done = left[carried]
        inverse = np.linalg.inv(gram[carried])
        coefficients[done, : order + 1] = np.einsum(
            "kij,kj->ki", inverse, targets[done, : order + 1]
        )
        first[done, : order + 1] = inverse[:, 0]
        for power in range(2 * order + 1):
            form[done, power] = inverse[:, places == power].sum(axis=1)
        left = left[~carried]
    return LocalFits(window, mass, coefficients, first, form)


def horner(coefficients: FloatArray, u: FloatArray) -> FloatArray:
    """Values of polynomials, one for each column of u, (n_rows, n_doses)."""
    total = np.zeros(u.shape)
    for column in coefficients.T[::-1]:
        total *= u
        total += column
    return total
