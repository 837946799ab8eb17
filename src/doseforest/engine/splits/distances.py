"""Distances between two mean curves. To add one: a function and a line in CURVE_DISTANCES.

A distance takes ``left`` and ``right``, arrays of shape (..., n_doses), and ``quadrature``, the
weight of each dose, and returns an array of shape (...). The ones in the table also have compiled
code; any other callable of this form can be handed to a forest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray

DistanceFunction = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def l1(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Integral of |left - right|: D1 of the paper.

    >>> l1(np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.array([1.0, 2.0]))
    np.float64(5.0)
    """
    return _integral(np.abs(left - right), quadrature)


def l2(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Integral of |left - right|^2: D2 of the paper.

    >>> l2(np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.array([1.0, 2.0]))
    np.float64(9.0)
    """
    return _integral((left - right) ** 2, quadrature)


def linf(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Largest |left - right| over the doses: Dinf of the paper.

    >>> linf(np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.array([1.0, 2.0]))
    np.float64(2.0)
    """
    distance: FloatArray = np.abs(left - right).max(axis=-1)
    return distance


def l1_squared(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Square of the L1 norm; unlike `l1` it does not favour balanced splits."""
    return l1(left, right, quadrature) ** 2


def l2_norm(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Root of `l2`: the L2 norm itself."""
    return np.sqrt(l2(left, right, quadrature))


def linf_squared(left: FloatArray, right: FloatArray, quadrature: FloatArray) -> FloatArray:
    """Square of the largest difference."""
    return linf(left, right, quadrature) ** 2


def _integral(values: FloatArray, quadrature: FloatArray) -> FloatArray:
    # Not a matrix product: its order of additions depends on the machine.
    integral: FloatArray = (values * quadrature).sum(axis=-1)
    return integral


@dataclass(frozen=True, slots=True)
class CompiledDistance:
    """A distance that the split search has compiled code for."""

    function: DistanceFunction
    norm: int  # enum Norm of cpp/layout.hpp
    squared: bool
    uses_quadrature: bool = True


# A line of a user may be a plain function; it runs in NumPy.
CURVE_DISTANCES: dict[str, CompiledDistance | DistanceFunction] = {
    "l1": CompiledDistance(l1, 0, squared=False),
    "l2": CompiledDistance(l2, 1, squared=True),
    "linf": CompiledDistance(linf, 2, squared=False, uses_quadrature=False),
    "l1_squared": CompiledDistance(l1_squared, 0, squared=True),
    "l2_norm": CompiledDistance(l2_norm, 1, squared=False),
    "linf_squared": CompiledDistance(linf_squared, 2, squared=True, uses_quadrature=False),
}


def compiled_distance(name: str) -> CompiledDistance:
    """The line of a distance that has compiled code."""
    line = CURVE_DISTANCES[name]
    assert isinstance(line, CompiledDistance)  # others are functions from `named_distance` on
    return line


def named_distance(distance: str | DistanceFunction) -> str | DistanceFunction:
    """The name of a distance that has compiled code, or the function that runs in NumPy.

    >>> named_distance("l2")
    'l2'
    """
    line = CURVE_DISTANCES[distance] if isinstance(distance, str) else distance
    return distance if isinstance(line, CompiledDistance) else line


def curve_distances(
    distance: str | DistanceFunction, left: FloatArray, right: FloatArray, quadrature: FloatArray
) -> FloatArray:
    """Distances of pairs of curves (n, n_doses) by name or by the user's function, checked."""
    function = compiled_distance(distance).function if isinstance(distance, str) else distance
    distances = np.asarray(function(left, right, quadrature))
    if distances.dtype.kind not in "biuf" or distances.shape != (len(left),):
        raise ValueError(
            "The 'distance' parameter must return one real number per pair of curves. "
            f"Got {distances.dtype} of shape {distances.shape} for {len(left)} pairs instead."
        )
    return distances.astype(np.float64, copy=False)


def trapezoid_weights(doses: FloatArray) -> FloatArray:
    """Quadrature weights of the trapezoid rule on an ascending grid of doses.

    >>> trapezoid_weights(np.array([0.0, 1.0, 3.0]))
    array([0.5, 1.5, 1. ])
    """
    if len(doses) == 1:
        return np.ones(1)
    gaps = np.diff(doses)
    weights = np.zeros(len(doses))
    weights[:-1] += gaps / 2
    weights[1:] += gaps / 2
    return weights
