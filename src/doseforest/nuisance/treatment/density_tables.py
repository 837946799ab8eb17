"""Densities on a lattice: smoothed once, then read by interpolation whatever the sample's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.smoothing.kernels import KERNELS

STEPS_PER_BANDWIDTH = 16
FEWEST_STEPS = 512
MOST_STEPS = 2**15
REACH = 6.0  # bandwidths; beyond them a Gaussian has 1e-9 of its mass
ROUNDING = 1e-6  # of a step


@dataclass(frozen=True, slots=True)
class TabulatedDensity:
    """A density that is linear between equidistant points and 0 outside them."""

    low: float
    step: float
    values: FloatArray  # (n_points,)
    cumulated: FloatArray  # (n_points,) from 0 to 1

    @property
    def high(self) -> float:
        """Last point."""
        return self.low + self.step * (len(self.values) - 1)

    def density(self, points: FloatArray) -> FloatArray:
        """Value at each point."""
        left, share = self._places(points)
        below = self.values[left]
        slack = ROUNDING * self.step  # the last point may come out below the highest dose
        inside = (points >= self.low - slack) & (points <= self.high + slack)
        return np.where(inside, below + share * (self.values[left + 1] - below), 0.0)

    def cdf(self, points: FloatArray) -> FloatArray:
        """Mass at or below each point."""
        left, share = self._places(points)
        below = self.values[left]
        slope = self.values[left + 1] - below
        part = self.step * share * (below + slope * share / 2)
        mass: FloatArray = np.minimum(self.cumulated[left] + part, 1.0)
        return mass

    def _places(self, points: FloatArray) -> tuple[IntArray, FloatArray]:
        places = np.clip((points - self.low) / self.step, 0.0, len(self.values) - 1)
        left = np.minimum(places.astype(np.int64), len(self.values) - 2)
        return left, places - left


def tabulate(low: float, high: float, values: FloatArray) -> TabulatedDensity:
    """Scale values at equidistant points so that they integrate to 1.

    >>> flat = tabulate(0.0, 2.0, np.ones(5))
    >>> flat.density(np.array([-1.0, 0.3, 2.0])), flat.cdf(np.array([-1.0, 0.5, 9.0]))
    (array([0. , 0.5, 0.5]), array([0.  , 0.25, 1.  ]))
    """
    step = (high - low) / (len(values) - 1)
    pieces = step * (values[1:] + values[:-1]) / 2
    total = pieces.sum()
    cumulated = np.append(0.0, np.cumsum(pieces)) / total
    return TabulatedDensity(low, step, values / total, cumulated)


def smoothed_density(
    values: FloatArray,
    weights: FloatArray,
    bandwidth: float,
    ends: tuple[float, float] | None = None,
) -> TabulatedDensity:
    """Gaussian kernel density of a sample, on a lattice.

    Parameters
    ----------
    values, weights : array (n_rows,)
        The sample.
    bandwidth : float
    ends : (low, high), optional
        Ends of the support, at which the kernels are reflected, so that a flat density stays flat
        up to them; by default there are none.

    Examples
    --------
    >>> even = (np.arange(1000) + 0.5) / 1000
    >>> flat = smoothed_density(even, np.ones(1000), 0.05, (0.0, 1.0))
    >>> flat.density(np.array([0.0, 0.5, 1.0])).round(2)
    array([1., 1., 1.])
    """
    from scipy.signal import fftconvolve  # takes a while to load

    margin = 0.0 if ends is not None else REACH * bandwidth
    low, high = ends if ends is not None else (float(values.min()), float(values.max()))
    low, high = low - margin, high + margin
    wanted = int((high - low) / bandwidth * STEPS_PER_BANDWIDTH)
    n_steps = min(max(wanted, FEWEST_STEPS), MOST_STEPS)
    step = (high - low) / n_steps
    binned = _binned((values - low) / step, weights, n_steps + 1)
    reach = min(int(np.ceil(REACH * bandwidth / step)), n_steps)
    offsets = np.arange(-reach, reach + 1, dtype=np.float64) * (step / bandwidth)
    # Mass over a step in place of the height: right also where steps are wider than the kernel.
    half = step / bandwidth / 2
    taps = KERNELS["gaussian"].mass(offsets - half, offsets + half)
    if ends is not None:
        binned[[0, -1]] *= 2  # a row at an end is its own mirror image
        mirrored = np.concatenate([binned[reach:0:-1], binned, binned[-2 : -reach - 2 : -1]])
        smooth = fftconvolve(mirrored, taps, mode="valid")
    else:
        smooth = fftconvolve(binned, taps, mode="same")
    return tabulate(low, high, np.maximum(smooth, 0.0))


def _binned(places: FloatArray, weights: FloatArray, n_points: int) -> FloatArray:
    """Weight at each lattice point, every row shared between its two neighbours."""
    left = np.clip(places.astype(np.int64), 0, n_points - 2)
    share = np.clip(places - left, 0.0, 1.0)
    binned = np.zeros(n_points)
    binned += np.bincount(left, weights * (1 - share), n_points)
    binned += np.bincount(left + 1, weights * share, n_points)
    return binned
