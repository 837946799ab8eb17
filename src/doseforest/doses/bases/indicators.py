"""Functions of a dose of few levels: an indicator for each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import as_doses, dose_sample
from doseforest.doses.levels import MODELLED
from doseforest.doses.stored_values import FileChecks

CHECKS = FileChecks("basis of the dose")
MAX_LEVELS = 100  # beyond this a dose is a quantity, and a function per level a mistake


@dataclass(frozen=True, slots=True)
class Indicators:
    """One function per level of a discrete dose.

    B_0 = 1 stands for the level with the most weight, the lowest of equals; each other level has
    its indicator, in ascending order.

    Examples
    --------
    >>> Indicators().fit([0, 0, 5, 10]).evaluate([0, 5, 10])
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 0., 1.]])
    """

    def fit(self, dose: Any, weights: Any = None) -> IndicatorBasis:
        """Find the levels among the observed doses."""
        levels, shares = dose_sample(dose, weights).levels()
        if len(levels) > MAX_LEVELS:
            raise ValueError(
                f"The 'dose' parameter of Indicators.fit must have at most {MAX_LEVELS} distinct "
                f"values. Got {len(levels)} instead; Legendre suits a continuous dose."
            )
        return IndicatorBasis(tuple(levels.tolist()), float(levels[np.argmax(shares)]))


@dataclass(frozen=True, slots=True)
class IndicatorBasis:
    """The functions that `Indicators` fits."""

    kind: ClassVar[str] = "indicators"
    levels: tuple[float, ...]  # (n_functions,) ascending
    reference: float  # the level that the constant stands for

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return len(self.levels)

    def evaluate(self, doses: Any) -> FloatArray:
        """Values of the functions, (n, n_functions); every dose must be one of the levels."""
        checked = as_doses(doses)
        levels = np.array(self.levels)
        unknown = ~np.isin(checked, levels)
        if unknown.any():
            raise ValueError(
                f"The 'doses' parameter must hold levels seen in fit, {list(self.levels)}. "
                f"Got {checked[unknown][0]} instead: ask for levels, or take {MODELLED}, which "
                "models the curve between them."
            )
        own = checked[:, None] == levels[levels != self.reference]
        return np.hstack([np.ones((len(checked), 1)), own])

    def derivative(self, doses: Any) -> NoReturn:
        """Raise: levels have no derivative."""
        raise TypeError(
            "Indicators of levels have no derivative. Compare two levels instead, or use a basis "
            "that treats the dose as a quantity, such as Legendre."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {"kind": self.kind, **asdict(self)}

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self)
        CHECKS.finite(self.reference, *self.levels)
        CHECKS.increasing(self.levels, "levels")
        CHECKS.require(self.reference in self.levels, "has a reference that is no level")
