"""What the smoothers take. Every error names parameter, rule and value."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import LARGEST_VALUE, as_numbers
from doseforest.doses.smoothing.kernels import KERNELS, Kernel

# 1 / h^2, the size of a kernel's slope, is then a normal float32 number.
SMALLEST_BANDWIDTH = 1e-18
LARGEST_BANDWIDTH = 1e18


def checked_kernel(kernel: str | Kernel) -> Kernel:
    """Return the kernel of this name, or the kernel itself."""
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]
    if isinstance(kernel, Kernel):
        return kernel
    raise ValueError(
        f"The 'kernel' parameter must be one of {list(KERNELS)} or an object with the members of "
        f"Kernel. Got {kernel!r} instead."
    )


def checked_numbers(values: Any, name: str, length: int | None = None) -> FloatArray:
    """Finite numbers in one dimension: at least one, or just as many as `length` says."""
    numbers = as_numbers(values, name)
    count = "one or more" if length is None else f"{length}"
    if numbers.ndim != 1 or (len(numbers) == 0 if length is None else len(numbers) != length):
        raise ValueError(
            f"The {name!r} parameter must be {count} numbers in one dimension. "
            f"Got shape {numbers.shape} instead."
        )
    numbers = numbers.astype(np.float64, copy=False)
    bad = ~(np.abs(numbers) <= LARGEST_VALUE)  # also true of NaN
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers of size at most {LARGEST_VALUE:.0e}. "
            f"Got {numbers[row]} at position {row} instead."
        )
    return numbers


def checked_row_weights(weights: Any, n_rows: int) -> FloatArray:
    """Row weights divided by the largest, so that their unit does not matter; ones by default."""
    if weights is None:
        return np.ones(n_rows)
    numbers = checked_numbers(weights, "weights", n_rows)
    if (numbers < 0).any() or not (numbers > 0).any():
        row = int(np.argmin(numbers))
        raise ValueError(
            "The 'weights' parameter must not be negative and must have a positive entry. "
            f"Got {numbers[row]} at position {row} as the smallest instead."
        )
    scaled: FloatArray = numbers / numbers.max()
    return scaled


def given_bandwidth(bandwidth: Any, name: str = "bandwidth") -> float:
    """Return a bandwidth that the user chose, checked.

    Examples
    --------
    >>> given_bandwidth(2)
    2.0
    >>> given_bandwidth(-1)
    Traceback (most recent call last):
    ...
    ValueError: The 'bandwidth' parameter must be a float in [1e-18, 1e+18]. Got -1 instead.
    """
    number = isinstance(bandwidth, Real) and not isinstance(bandwidth, bool)
    if not number or not SMALLEST_BANDWIDTH <= float(bandwidth) <= LARGEST_BANDWIDTH:
        raise ValueError(
            f"The {name!r} parameter must be a float in "
            f"[{SMALLEST_BANDWIDTH:.0e}, {LARGEST_BANDWIDTH:.0e}]. Got {bandwidth!r} instead."
        )
    return float(bandwidth)


def checked_bandwidths(bandwidth: Any, n_doses: int) -> FloatArray:
    """One bandwidth per dose of the grid, from one number or from as many."""
    if np.ndim(bandwidth) == 0:
        return np.full(n_doses, given_bandwidth(bandwidth))
    numbers = checked_numbers(bandwidth, "bandwidth", n_doses)
    for number in numbers:
        given_bandwidth(float(number))
    return numbers


def checked_support(support: Any, dose: FloatArray) -> tuple[float, float]:
    """(lowest, highest) dose; by default of the rows, otherwise an interval that holds them."""
    low, high = float(dose.min()), float(dose.max())
    if support is not None:
        ends = checked_numbers(support, "support", 2)
        if ends[0] > low or ends[1] < high:
            raise ValueError(
                f"The 'support' parameter must hold every dose, {low} to {high}. "
                f"Got {support!r} instead."
            )
        low, high = float(ends[0]), float(ends[1])
    if high - low < SMALLEST_BANDWIDTH:
        raise ValueError(
            "The 'dose' parameter must have doses that differ, or 'support' two ends that do. "
            f"Got doses from {low} to {high} instead."
        )
    return low, high
