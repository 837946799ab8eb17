"""What uncertainty takes off a value: a lower confidence bound, or a price on the variance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, ClassVar

from doseforest.base.dtypes import FloatArray

LARGEST = 1e9  # above it nothing but the certain would count


class Risk(ABC):
    """A rule from standard errors of values to what they take off."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def penalty(self, standard_error: FloatArray) -> FloatArray:
        """What uncertainty takes off values.

        Parameters
        ----------
        standard_error : array
            Standard errors of the values.

        Returns
        -------
        array of the shape of `standard_error`
            What is taken off.
        """

    def to_json(self) -> dict[str, Any]:
        """Describe the rule by plain values, for a file.

        Returns
        -------
        dict
            ``kind``, and the fields by name.
        """
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class LowerBound(Risk):
    """Optimise the lower end of intervals: value - z x standard error.

    Parameters
    ----------
    z : float, default=1.0
        Standard errors that are taken off. Raise it to give doses only where their value is sure;
        the expected value of the plan falls.

    Examples
    --------
    >>> import numpy as np
    >>> LowerBound(1.0).penalty(np.array([0.0, 2.0]))
    array([0., 2.])
    """

    z: float = 1.0
    kind: ClassVar[str] = "lower_bound"

    def __post_init__(self) -> None:
        _check(self, "z")

    def penalty(self, standard_error: FloatArray) -> FloatArray:
        """So many standard errors."""
        return self.z * standard_error


@dataclass(frozen=True, slots=True)
class MeanVariance(Risk):
    """Trade value for certainty: value - aversion / 2 x variance.

    Parameters
    ----------
    aversion : float, default=1.0
        Per unit of value: half of it is what a variance of 1 takes off. Raise it to give doses only
        where their value is sure; the expected value of the plan falls.

    Examples
    --------
    >>> import numpy as np
    >>> MeanVariance(1.0).penalty(np.array([0.0, 2.0]))
    array([0., 2.])
    """

    aversion: float = 1.0
    kind: ClassVar[str] = "mean_variance"

    def __post_init__(self) -> None:
        _check(self, "aversion")

    def penalty(self, standard_error: FloatArray) -> FloatArray:
        """Half the aversion for every unit of variance."""
        return self.aversion / 2 * standard_error**2


RISKS: dict[str, type[Risk]] = {kind.kind: kind for kind in (LowerBound, MeanVariance)}


def risk_from_json(described: Any) -> Risk:
    """The rule of plain values; ValueError or TypeError where they are none.

    >>> risk_from_json(LowerBound(1.5).to_json())
    LowerBound(z=1.5)
    """
    fields = dict(described)
    kind = fields.pop("kind")
    if kind not in RISKS:
        raise ValueError(f"The risk must be one of {sorted(RISKS)}. Got {kind!r:.80} instead.")
    return RISKS[kind](**fields)


def checked_risk(risk: Any) -> Risk | None:
    """The rule itself, or TypeError."""
    if risk is not None and not isinstance(risk, Risk):
        raise TypeError(
            "The 'risk' parameter must be LowerBound(z) or MeanVariance(aversion), or None. "
            f"Got {risk!r} instead."
        )
    return risk


def _check(risk: Risk, name: str) -> None:
    value = getattr(risk, name)
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) <= LARGEST:
        raise ValueError(
            f"The {name!r} parameter must be a number from 0 to {LARGEST:.0e}. "
            f"Got {value!r} instead."
        )
    object.__setattr__(risk, name, float(value))
