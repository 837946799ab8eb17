"""Arms that each have a dose of their own: no discount, a coupon of 5 to 30 %, a price cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.bases.indicators import IndicatorBasis, Indicators
from doseforest.doses.bases.polynomials import Legendre
from doseforest.doses.bases.tensor import check_part
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.doses.grids import dose_sample
from doseforest.doses.stored_values import FileChecks

if TYPE_CHECKING:
    from doseforest.doses.bases.dose_basis import FittedBasis

CHECKS = FileChecks("basis of the dose")
MAX_ARMS = 8
FEWEST_ROWS = 20  # of an arm whose doses tell that arms have doses of their own
LEAST_SPAN = 0.5  # of all doses: an arm whose doses span less has doses of its own

MAX_FUNCTIONS = 24  # polynomials of all arms together


@dataclass(frozen=True, slots=True)
class Arms:
    """Indicators of arms, and polynomials of the dose within each arm whose dose varies.

    The first component of a dose is the arm, the second its dose.

    Examples
    --------
    >>> from doseforest.doses.dose_values import Doses
    >>> arm = np.repeat([0.0, 1.0], 50)
    >>> dose = np.append(np.zeros(50), np.linspace(5.0, 30.0, 50))
    >>> basis = Arms().fit(Doses.of_table(np.column_stack([arm, dose])).values)
    >>> basis.n_functions
    8
    >>> basis.evaluate(Doses.of_table(np.array([[0.0, 0.0], [1.0, 30.0]])).values)[:, :3].round(2)
    array([[1. , 0. , 0. ],
           [1. , 1. , 1.7]])
    """

    def fit(self, dose: DoseArray, weights: Any = None) -> ArmsBasis:
        """Make the functions from the observed arms and doses."""
        if Doses.of(dose).n_components != 2:
            raise ValueError(
                "The 'dose' parameter of Arms.fit must have two components, the arm and its dose. "
                f"Got {Doses.of(dose).n_components} instead."
            )
        arm, amount = Doses.of(dose).table.T
        own = np.ones(len(arm)) if weights is None else np.asarray(weights, np.float64)
        indicators = Indicators().fit(arm, own)
        varying = [
            level
            for level in indicators.levels
            if len(np.unique(amount[(arm == level) & (own > 0)])) > 1
        ]
        most = max(2, 1 + MAX_FUNCTIONS // max(1, len(varying)))
        doses = tuple(
            Legendre(min(7, most)).fit(amount[arm == level], own[arm == level])
            if level in varying
            else None
            for level in indicators.levels
        )
        return ArmsBasis(indicators, doses)


@dataclass(frozen=True, slots=True)
class ArmsBasis:
    """The functions that `Arms` fits: 1, indicators, then polynomials by ever higher order."""

    kind: ClassVar[str] = "arms"
    arms: IndicatorBasis
    doses: tuple[FittedBasis | None, ...]  # (n_arms,) None: the arm has one dose

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return self.arms.n_functions + len(self._places)

    @property
    def orders(self) -> IntArray:
        """Order of each function, (n_functions,): 0 for the constant."""
        indicators = [1] * (self.arms.n_functions - 1)
        return np.array([0, *indicators, *(order for order, _ in self._places)])

    @property
    def _places(self) -> list[tuple[int, int]]:
        """Order and arm of each polynomial."""
        return sorted(
            (order, arm)
            for arm, basis in enumerate(self.doses)
            if basis is not None
            for order in range(1, basis.n_functions)
        )

    def evaluate(self, doses: DoseArray) -> FloatArray:
        """Values of the functions, (n, n_functions); every arm must be one of those seen."""
        arm, amount = Doses.of(doses).table.T
        values = [self.arms.evaluate(arm)]
        tables = [
            np.zeros((len(arm), 1)) if basis is None else basis.evaluate(amount)
            for basis in self.doses
        ]
        for order, place in self._places:
            own = np.where(arm == self.arms.levels[place], tables[place][:, order], 0.0)
            values.append(own[:, None])
        return np.hstack(values)

    def derivative(self, doses: DoseArray) -> NoReturn:
        """Raise: an arm has no derivative."""
        raise TypeError("A dose of several components has no single derivative.")

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {
            "kind": self.kind,
            "arms": self.arms.to_json(),
            "doses": [None if basis is None else basis.to_json() for basis in self.doses],
        }

    @property
    def n_components(self) -> int:
        """The arm and its dose."""
        return 2

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self, IndicatorBasis)
        CHECKS.require(isinstance(self.arms, IndicatorBasis), "has no arms")
        self.arms.check()
        fits = len(self.doses) == self.arms.n_functions
        CHECKS.require(fits, "has not one dose per arm")
        for part in self.doses:
            if part is not None:
                check_part(part)


def has_arms(dose: AnyDoses) -> bool:
    """Whether a treatment is arms with doses of their own.

    Its first component has few levels, and in some of them the second one does not vary, or varies
    over a part of its range only.

    >>> from doseforest.doses.dose_values import Doses
    >>> arm, dose = np.repeat([0.0, 1.0], 50), np.append(np.zeros(50), np.linspace(5, 30, 50))
    >>> has_arms(Doses.of_table(np.column_stack([arm, dose])).values)
    True
    """
    columns = Doses.of(dose).columns
    if len(columns) != 2:
        return False
    arm, amount = columns
    levels, _ = dose_sample(arm).levels()
    if len(levels) > MAX_ARMS or len(np.unique(amount)) <= MAX_ARMS:
        return False
    own = [amount[arm == level] for level in levels]
    # A handful of rows spans little by chance.
    spans = np.array([np.ptp(doses) for doses in own if len(doses) >= FEWEST_ROWS])
    return bool((spans < LEAST_SPAN * np.ptp(amount)).any())
