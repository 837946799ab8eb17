"""Leave-one-out risk of a kernel smoother in time O(n), on doses binned to a lattice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.smoothing.boundary import local_line
from doseforest.doses.smoothing.kernels import Kernel

STEPS_PER_BANDWIDTH = 64
LARGEST_LATTICE = 2**20
_UNBOUNDED_REACH = 9.0  # bandwidths after which a Gaussian has 1e-18 of its height left
_ALONE = 1e-10  # share of the other rows in the local weight below which there are none


@dataclass(frozen=True, slots=True)
class DoseLattice:
    """Equidistant doses and the place of each row between two of them."""

    n_points: int
    left: IntArray  # (n_rows,) lattice point at or below the dose
    share: FloatArray  # (n_rows,) of the way from it to the next, in [0, 1)


def smallest_bandwidth(dose: FloatArray) -> float:
    """Return the bandwidth for which the largest lattice is just large enough."""
    return float(np.ptp(dose)) * STEPS_PER_BANDWIDTH / (LARGEST_LATTICE - 2)


def leave_one_out_risk(
    dose: FloatArray,
    outcome: FloatArray,
    kernel: Kernel,
    bandwidth: float,
    weights: FloatArray,
    degree: int,
) -> float:
    """Weighted mean squared error of predicting each outcome from the other rows.

    Rows are binned linearly (shared between their two neighbours) to a lattice of 64 points per
    bandwidth; the sums S_j of K r u^j and of K r u^j y are convolutions there and are interpolated
    back to the rows. A row's own part of the interpolated sums is known exactly and taken off, so
    that no row predicts itself. What is approximate is the kernel between different rows, by its
    curvature over one lattice step: less than 1e-3 of its height, or ends blurred by 1/64 of the
    bandwidth when it is uniform (noisy curves of 400 rows: risks within .1 %, uniform .5 %). A row
    that no other reaches is predicted by the mean of the others, which makes bandwidths comparable
    that leave different rows alone.

    Examples
    --------
    >>> dose, outcome = np.array([0.0, 1.0, 2.0]), np.array([0.0, 3.0, 0.0])
    >>> from doseforest.doses.smoothing.kernels import KERNELS
    >>> round(leave_one_out_risk(dose, outcome, KERNELS["uniform"], 1.5, np.ones(3), 0), 9)
    9.0
    """
    centred = outcome - np.average(outcome, weights=weights)  # its level would cost digits
    lattice = _lattice(dose, bandwidth)
    taps = _taps(kernel, lattice.n_points)
    mass = _binned(lattice, weights)
    mass_outcome = _binned(lattice, weights * centred)
    s0, s1, s2 = (_at_rows(lattice, _correlated(mass, own)) for own in taps)
    z0, z1 = (_at_rows(lattice, _correlated(mass_outcome, own)) for own in taps[:2])

    # A row meets itself in both of its lattice points and across them; odd taps cancel.
    across = lattice.share * (1 - lattice.share)
    middle = len(taps[0]) // 2
    own_s0 = weights * ((1 - 2 * across) * taps[0][middle] + 2 * across * taps[0][middle + 1])
    own_s2 = weights * 2 * across * taps[2][middle + 1]
    others = s0 - own_s0
    alone = others <= _ALONE * s0
    others[alone] = 1.0
    mean, tilt = local_line(others, s1, s2 - own_s2, degree)
    level = (z0 - own_s0 * centred) / others
    predicted = level - tilt * (z1 / others - mean * level)
    errors = centred - predicted
    share_of_others = np.maximum(1 - weights[alone] / weights.sum(), _ALONE)
    errors[alone] = centred[alone] / share_of_others
    return float(np.average(errors**2, weights=weights))


def _lattice(dose: FloatArray, bandwidth: float) -> DoseLattice:
    places = (dose - dose.min()) / (bandwidth / STEPS_PER_BANDWIDTH)
    left = places.astype(np.int64)
    return DoseLattice(int(left.max()) + 2, left, places - left)


def _taps(kernel: Kernel, n_points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """k(u) u^j at the lattice differences, j = 0, 1, 2; k is averaged over a lattice step."""
    reach = kernel.support if np.isfinite(kernel.support) else _UNBOUNDED_REACH
    steps = min(int(reach * STEPS_PER_BANDWIDTH), n_points - 1)
    u = np.arange(-steps, steps + 1) / STEPS_PER_BANDWIDTH
    half = 0.5 / STEPS_PER_BANDWIDTH
    value = kernel.mass(u - half, u + half) / (2 * half)
    return value, value * u, value * u**2


def _binned(lattice: DoseLattice, values: FloatArray) -> FloatArray:
    right = values * lattice.share
    binned = np.zeros(lattice.n_points)
    binned += np.bincount(lattice.left, values - right, lattice.n_points)
    binned[1:] += np.bincount(lattice.left, right, lattice.n_points)[:-1]
    return binned


def _correlated(binned: FloatArray, taps: FloatArray) -> FloatArray:
    steps = len(taps) // 2
    sums: FloatArray = np.convolve(binned, taps[::-1])[steps : steps + len(binned)]
    return sums


def _at_rows(lattice: DoseLattice, values: FloatArray) -> FloatArray:
    below = values[lattice.left]
    return below + lattice.share * (values[lattice.left + 1] - below)
