"""From averaged leaf channels to curves. To add a form: a class and a line in LEAF_CURVES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import FloatArray


class LeafCurve(Protocol):
    """How averaged leaf channels become a curve.

    A new one is a frozen dataclass with these members, passed as ``leaf_curve``, and a line in
    `LEAF_CURVES` where files should hold it.

    Attributes
    ----------
    kind : str
        Name of the form in files.

    Examples
    --------
    >>> class Doubled(MeanCurve):
    ...     def solve(self, averages, fallback, n_threads):
    ...         return 2 * averages
    >>> Doubled().solve(np.array([[1.0, 2.0]]), np.zeros(2), 1)
    array([[2., 4.]])
    """

    kind: ClassVar[str]

    def check_width(self, n_channels: int) -> None:
        """Raise ValueError unless leaves of this many channels can be turned into curves.

        Parameters
        ----------
        n_channels : int
            Columns of ``leaf_channels``, or of ``y`` without them.
        """

    def solve(self, averages: FloatArray, fallback: FloatArray, n_threads: int) -> FloatArray:
        """Make curves of averaged channels.

        Parameters
        ----------
        averages : array of shape (n_rows, n_channels)
            Leaf channels of each row, averaged over the trees.
        fallback : array of shape (n_channels,)
            Mean of the channels over all training rows.
        n_threads : int
            Threads that may be used.

        Returns
        -------
        array of shape (n_rows, n_doses)
            The curves.
        """

    def to_json(self) -> dict[str, Any]:
        """Describe the form by plain values, for a file.

        Returns
        -------
        dict
            ``kind``, and the fields by name.
        """


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """The channels are the curve.

    Examples
    --------
    >>> MeanCurve().solve(np.array([[1.0, 2.0]]), np.zeros(2), 1)
    array([[1., 2.]])
    """

    kind: ClassVar[str] = "mean"

    def check_width(self, n_channels: int) -> None:
        """Any number of channels will do."""

    def solve(self, averages: FloatArray, fallback: FloatArray, n_threads: int) -> FloatArray:
        """Return the averages as they are."""
        return averages

    def to_json(self) -> dict[str, Any]:
        """Return the form as plain values."""
        return {"kind": self.kind}


MOST_SHRINKAGE = 1e100  # multiples of averages beyond it overflow


@dataclass(frozen=True, slots=True)
class RatioCurve:
    """Numerators over denominators, summed over the forest before they are divided.

    The first half of the channels are numerators, the second half denominators.

    Parameters
    ----------
    shrinkage : float, default=0.0
        Multiple of the averages over all rows that is added to numerators and denominators. Raise
        it where denominators come close to zero, as with kernel weights at rare doses: such curves
        are drawn to the overall ratio, which is a bias where there is little data.

    Examples
    --------
    >>> RatioCurve().solve(np.array([[2.0, 0.0, 4.0, 0.0]]), np.array([1.0, 3.0, 1.0, 1.0]), 1)
    array([[0.5, 3. ]])
    """

    kind: ClassVar[str] = "ratio"
    shrinkage: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.shrinkage <= MOST_SHRINKAGE:
            raise ValueError(
                "The 'shrinkage' parameter of RatioCurve must be a float in "
                f"[0, {MOST_SHRINKAGE:g}]. Got {self.shrinkage!r} instead."
            )

    def check_width(self, n_channels: int) -> None:
        """Require an even number of channels."""
        if n_channels % 2:
            raise ValueError(
                "The 'leaf_channels' parameter must have as many denominators as numerators for "
                f"a RatioCurve. Got {n_channels} channels instead."
            )

    def solve(self, averages: FloatArray, fallback: FloatArray, n_threads: int) -> FloatArray:
        """Divide; a denominator that is not positive gives the overall ratio."""
        half = averages.shape[1] // 2
        overall = np.divide(
            fallback[:half], fallback[half:], out=np.zeros(half), where=fallback[half:] > 0
        )
        shrunk = averages + self.shrinkage * fallback
        numerator, denominator = shrunk[:, :half], shrunk[:, half:]
        curves = np.broadcast_to(overall, numerator.shape).copy()
        np.divide(numerator, denominator, out=curves, where=denominator > 0)
        return curves

    def to_json(self) -> dict[str, Any]:
        """Return the form as plain values."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class RidgeMoments:
    """Coefficients b of ``(M + diag(penalty)) b = v``, solved once per query.

    The channels are the upper triangle of M, row by row, then v: for k coefficients
    ``k (k + 1) / 2 + k`` of them. A direction without information gets the coefficient 0.

    Parameters
    ----------
    penalty : tuple of float
        Penalty of each coefficient, not negative. Raise one to draw its coefficient to 0, which
        lowers the variance of curves and costs bias.

    Examples
    --------
    >>> RidgeMoments(penalty=(0.0,)).solve(np.array([[2.0, 6.0]]), np.zeros(2), 1)
    array([[3.]])
    """

    kind: ClassVar[str] = "ridge"
    penalty: tuple[float, ...]

    def __post_init__(self) -> None:
        penalty: Sequence[float] = tuple(float(value) for value in self.penalty)
        object.__setattr__(self, "penalty", penalty)
        if not penalty or not all(0 <= value < np.inf for value in penalty):
            raise ValueError(
                "The 'penalty' parameter of RidgeMoments must be one or more floats in [0, inf). "
                f"Got {self.penalty!r} instead."
            )

    @property
    def n_channels(self) -> int:
        """Channels that a leaf must hold."""
        k = len(self.penalty)
        return k * (k + 1) // 2 + k

    def check_width(self, n_channels: int) -> None:
        """Require the packed moments of as many coefficients as penalties."""
        if n_channels != self.n_channels:
            raise ValueError(
                f"The 'leaf_channels' parameter must have {self.n_channels} channels for "
                f"RidgeMoments with {len(self.penalty)} penalties. Got {n_channels} instead."
            )

    def solve(self, averages: FloatArray, fallback: FloatArray, n_threads: int) -> FloatArray:
        """Solve for each query."""
        out = np.empty((len(averages), len(self.penalty)))
        penalty = np.array(self.penalty)[None, :]
        _core.solve_moments(np.ascontiguousarray(averages), penalty, n_threads, out)
        return out

    def to_json(self) -> dict[str, Any]:
        """Return the form as plain values."""
        return {"kind": self.kind, "penalty": list(self.penalty)}


LEAF_CURVES: dict[str, Any] = {"mean": MeanCurve, "ratio": RatioCurve, "ridge": RidgeMoments}


def leaf_curve_from_json(values: dict[str, Any]) -> LeafCurve:
    """Rebuild a form from plain values."""
    values = dict(values)
    kind = values.pop("kind")
    form: LeafCurve = LEAF_CURVES[kind](**values)
    return form
