"""Kernels over doses. To add one: a class with the members of Kernel and a line in KERNELS.

A kernel is a symmetric weight k(u) of the scaled difference u = (T - t) / h between an observed
dose T and the dose t at which a curve is wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Protocol, runtime_checkable

import numpy as np
from scipy import special

from doseforest.base.dtypes import FloatArray


@runtime_checkable
class Kernel(Protocol):
    """A symmetric kernel k(u) of the scaled difference u between two doses.

    A new one is a frozen class with these members, passed as ``kernel``; `PolynomialKernel` is an
    example.

    Examples
    --------
    >>> isinstance(PolynomialKernel("quartic", degree=2), Kernel)
    True
    """

    @property
    def name(self) -> str:
        """What messages call the kernel."""

    @property
    def support(self) -> float:
        """Largest |u| that has weight."""

    @property
    def second_moment(self) -> float:
        """Integral of u^2 k(u): the size of the smoothing bias."""

    @property
    def roughness(self) -> float:
        """Integral of k(u)^2: the size of the variance."""

    @property
    def is_density(self) -> bool:
        """Whether k integrates to 1, so that k(u) / h has the unit of a density of the dose."""

    @property
    def differentiable(self) -> bool:
        """Whether `derivative` exists at every u."""

    def value(self, u: FloatArray) -> FloatArray:
        """Weights k(u).

        Parameters
        ----------
        u : array
            Differences over the bandwidth, of any shape.

        Returns
        -------
        array
            A weight for each.
        """

    def derivative(self, u: FloatArray) -> FloatArray:
        """Slopes k'(u).

        Parameters
        ----------
        u : array
            Differences over the bandwidth, of any shape.

        Returns
        -------
        array
            A slope for each.

        Raises
        ------
        ValueError
            Where `differentiable` is false.
        """

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Integral of k over an interval.

        Parameters
        ----------
        low, high : array
            Ends of the intervals; either may be infinite.

        Returns
        -------
        array
            An integral for each interval.
        """


@dataclass(frozen=True, slots=True)
class GaussianKernel:
    """The standard normal density.

    Examples
    --------
    >>> kernel = GaussianKernel()
    >>> kernel.mass(np.array([0.0]), np.array([np.inf]))
    array([0.5])
    """

    name: ClassVar[str] = "gaussian"
    support: ClassVar[float] = math.inf
    second_moment: ClassVar[float] = 1.0
    roughness: ClassVar[float] = 0.5 / math.sqrt(math.pi)
    is_density: ClassVar[bool] = True
    differentiable: ClassVar[bool] = True

    def value(self, u: FloatArray) -> FloatArray:
        """Weights k(u)."""
        weights: FloatArray = np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)
        return weights

    def derivative(self, u: FloatArray) -> FloatArray:
        """Slopes k'(u) = -u k(u)."""
        return -u * self.value(u)

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Integral of k over [low, high]; either end may be infinite."""
        # The upper tail is read off the lower one: 1 minus a number close to 1 has no digits left.
        upper = np.asarray(low) > 0
        start = np.where(upper, -high, low)
        end = np.where(upper, -low, high)
        mass: FloatArray = special.ndtr(end) - special.ndtr(start)
        return mass


@dataclass(frozen=True, slots=True)
class PolynomialKernel:
    """The kernel c (1 - u^2)^degree on [-1, 1], with c such that it integrates to 1.

    Parameters
    ----------
    name : str
        What messages call the kernel.
    degree : int
        0 is uniform, 1 Epanechnikov, 2 biweight. Higher degrees are smoother and narrower at the
        same bandwidth; from 2 on there is a derivative.

    Examples
    --------
    >>> kernel = PolynomialKernel("epanechnikov", degree=1)
    >>> kernel.value(np.array([0.0, 0.5, 1.0, 2.0]))
    array([0.75  , 0.5625, 0.    , 0.    ])
    >>> round(kernel.second_moment, 12), round(kernel.roughness, 12)
    (0.2, 0.6)
    """

    name: str
    degree: int
    support: ClassVar[float] = 1.0
    is_density: ClassVar[bool] = True

    @property
    def second_moment(self) -> float:
        """Integral of u^2 k(u)."""
        return 1 / (2 * self.degree + 3)

    @property
    def roughness(self) -> float:
        """Integral of k(u)^2: the square has twice the degree."""
        return _peak(self.degree) ** 2 / _peak(2 * self.degree)

    @property
    def differentiable(self) -> bool:
        """From degree 2 on the kernel meets its end without a kink."""
        return self.degree >= 2

    def value(self, u: FloatArray) -> FloatArray:
        """Weights k(u); the ends of the support belong to it."""
        weights = np.where(np.abs(u) <= 1, _peak(self.degree), 0.0)
        weights *= _arch(u, self.degree)
        return weights

    def derivative(self, u: FloatArray) -> FloatArray:
        """Slopes k'(u) = -2 c degree u (1 - u^2)^(degree - 1)."""
        if not self.differentiable:
            _refuse_derivative(self)
        return -2 * _peak(self.degree) * self.degree * u * _arch(u, self.degree - 1)

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Integral of k over [low, high]; either end may be infinite."""
        primitive = np.polynomial.Polynomial([1.0, 0.0, -1.0]) ** self.degree
        primitive = _peak(self.degree) * primitive.integ()
        mass: FloatArray = primitive(np.clip(high, -1, 1)) - primitive(np.clip(low, -1, 1))
        return mass


@dataclass(frozen=True, slots=True)
class ExactMatchKernel:
    """Weight 1 where the observed dose is the dose asked for, as Algorithm 1 of the paper prints.

    For doses of few distinct levels. It counts rows in place of measuring a density: whatever the
    bandwidth the weight is 1, and its integrals are sums over the one point u = 0.

    Examples
    --------
    >>> ExactMatchKernel().value(np.array([-0.1, 0.0, 0.1]))
    array([0., 1., 0.])
    """

    name: ClassVar[str] = "exact"
    support: ClassVar[float] = 0.0
    second_moment: ClassVar[float] = 0.0
    roughness: ClassVar[float] = 1.0
    is_density: ClassVar[bool] = False
    differentiable: ClassVar[bool] = False

    def value(self, u: FloatArray) -> FloatArray:
        """Weights k(u)."""
        return np.where(u == 0, 1.0, 0.0)

    def derivative(self, u: FloatArray) -> FloatArray:
        """There is none."""
        _refuse_derivative(self)

    def mass(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """1 where 0 lies in [low, high]."""
        return np.where((np.asarray(low) <= 0) & (np.asarray(high) >= 0), 1.0, 0.0)


def _peak(degree: int) -> float:
    """k(0) of the polynomial kernel: 1 over the integral of (1 - u^2)^degree."""
    return math.gamma(degree + 1.5) / (math.sqrt(math.pi) * math.gamma(degree + 1))


def _arch(u: FloatArray, degree: int) -> FloatArray:
    """(1 - u^2)^degree, with 1 - u^2 held at 0 outside [-1, 1]."""
    base = 1 - np.minimum(u * u, 1.0)
    power = np.ones_like(base)
    for _ in range(degree):  # products are faster than `**`, and the same on every machine
        power *= base
    return power


def _refuse_derivative(kernel: Kernel) -> NoReturn:
    smooth = ", ".join(repr(name) for name, own in KERNELS.items() if own.differentiable)
    raise ValueError(
        f"The 'kernel' parameter must be a kernel with a derivative, one of {smooth}; for others "
        f"take differences of the curve over the doses. Got {kernel.name!r} instead."
    )


KERNELS: dict[str, Kernel] = {
    "gaussian": GaussianKernel(),
    "uniform": PolynomialKernel("uniform", degree=0),
    "epanechnikov": PolynomialKernel("epanechnikov", degree=1),
    "biweight": PolynomialKernel("biweight", degree=2),
    "triweight": PolynomialKernel("triweight", degree=3),
    "exact": ExactMatchKernel(),
}
