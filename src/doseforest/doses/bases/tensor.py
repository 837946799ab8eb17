"""Functions of doses with several components: products of functions of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.bases.indicators import IndicatorBasis, Indicators
from doseforest.doses.bases.polynomials import Legendre, PolynomialBasis
from doseforest.doses.bases.splines import SplineBasis
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.grids import check_count, dose_sample
from doseforest.doses.stored_values import FileChecks

if TYPE_CHECKING:
    from doseforest.doses.bases.dose_basis import DoseBasis, FittedBasis

CHECKS = FileChecks("basis of the dose")
MAX_INDICATORS = 8  # levels beyond which a polynomial says as much with fewer coefficients
MAX_FUNCTIONS = 32  # rows carry half their square of moments
MAIN_ORDERS = {2: 6, 3: 4}  # by the number of components
JOINT_ORDERS = {2: 4, 3: 3}
NEW_DIRECTION = 1e-4  # the part of a product that the functions before it must leave on the sample


def component_basis(values: FloatArray, weights: Any = None) -> DoseBasis:
    """What "auto" takes for one component: indicators of few levels, else polynomials and masses.

    >>> component_basis(np.array([0.0, 1.0, 1.0]))
    Indicators()
    """
    levels, _ = dose_sample(values, weights).levels()
    return Indicators() if len(levels) <= MAX_INDICATORS else Legendre(masses="auto")


@dataclass(frozen=True, slots=True)
class Tensor:
    """Products of functions of each component, up to a total order.

    The order of a polynomial is its degree, that of an indicator 1, that of a product the sum.
    Indicators come first, then functions of ever higher order. What the sample cannot tell from
    the functions before it is left out, as the product of two levels that no row combines.

    Parameters
    ----------
    parts : sequence of DoseBasis, optional
        A recipe for each component; by default indicators of few levels, else polynomials, with
        indicators of point masses.
    joint_order : int, optional
        Of products; by default 4 for two components, 3 for three.
    main_order : int, optional
        Of functions of one component; by default 6 for two components, 4 for three.

    Examples
    --------
    >>> from doseforest.doses.dose_values import Doses
    >>> doses = Doses.product([np.linspace(0, 1, 21), np.linspace(0, 1, 22)]).values
    >>> basis = Tensor(main_order=2, joint_order=2).fit(doses)
    >>> basis.n_functions, basis.orders
    (6, array([0, 1, 1, 2, 2, 2]))
    >>> middle = Doses.of_table(np.array([[0.5, 0.5]])).values
    >>> basis.evaluate(middle)[0, [0, 1, 2, 5]].round(6) + 0.0
    array([1., 0., 0., 0.])
    """

    parts: Sequence[DoseBasis] | None = None
    joint_order: int | None = None
    main_order: int | None = None

    def __post_init__(self) -> None:
        for name in ("joint_order", "main_order"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), 1, name)

    def fit(self, dose: DoseArray, weights: Any = None) -> TensorBasis:
        """Make the functions from the observed doses, two or three components each."""
        columns = Doses.of(dose).columns
        if len(columns) not in MAIN_ORDERS:
            raise ValueError(
                "The 'dose' parameter of Tensor.fit must have two or three components. "
                f"Got {len(columns)} instead."
            )
        recipes = (
            [component_basis(own, weights) for own in columns] if self.parts is None else self.parts
        )
        if len(recipes) != len(columns):
            raise ValueError(
                "The 'parts' parameter of Tensor must have one recipe per component "
                f"({len(columns)}). Got {len(recipes)} instead."
            )
        parts = tuple(
            own.fit(column, weights) for own, column in zip(recipes, columns, strict=True)
        )
        main = MAIN_ORDERS[len(columns)] if self.main_order is None else self.main_order
        joint = JOINT_ORDERS[len(columns)] if self.joint_order is None else self.joint_order
        candidates = sorted(_products(parts, main, joint), key=lambda own: _rank(parts, own))
        basis = TensorBasis(parts, tuple(candidates))
        kept = new_directions(basis.evaluate(dose), weights)[:MAX_FUNCTIONS]
        return TensorBasis(parts, tuple(candidates[place] for place in kept))


@dataclass(frozen=True, slots=True)
class TensorBasis:
    """The functions that `Tensor` fits."""

    kind: ClassVar[str] = "tensor"
    parts: tuple[FittedBasis, ...]  # (n_components,)
    products: tuple[tuple[int, ...], ...]  # (n_functions, n_components) a function of each part

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return len(self.products)

    @property
    def orders(self) -> IntArray:
        """Order of each function, (n_functions,): 0 for the constant."""
        return np.array([_order(self.parts, own) for own in self.products])

    def evaluate(self, doses: DoseArray) -> FloatArray:
        """Values of the functions, (n, n_functions)."""
        table = Doses.of(doses).table
        values = np.ones((len(table), self.n_functions))
        for k, part in enumerate(self.parts):
            values *= part.evaluate(table[:, k])[:, [own[k] for own in self.products]]
        return values

    def derivative(self, doses: DoseArray) -> NoReturn:
        """Raise: there is one derivative for each component."""
        raise TypeError("A dose of several components has no single derivative.")

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {
            "kind": self.kind,
            "parts": [part.to_json() for part in self.parts],
            "products": [list(own) for own in self.products],
        }

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return len(self.parts)

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self)
        check_parts(self.parts)
        CHECKS.require(len(self.products) <= MAX_FUNCTIONS, "has too many functions")
        check_products(self.parts, self.products)


def _part_order(part: FittedBasis, function: int) -> int:
    """Order of a function of one component."""
    if function == 0:
        return 0
    if isinstance(part, IndicatorBasis):
        return 1
    masses = len(part.masses) if isinstance(part, PolynomialBasis) else 0
    return max(1, function - masses)


def _order(parts: Sequence[FittedBasis], own: tuple[int, ...]) -> int:
    return sum(_part_order(part, k) for part, k in zip(parts, own, strict=True))


def _is_indicator(part: FittedBasis, function: int) -> bool:
    masses = len(part.masses) if isinstance(part, PolynomialBasis) else 0
    return function <= masses or isinstance(part, IndicatorBasis)


def _rank(parts: Sequence[FittedBasis], own: tuple[int, ...]) -> tuple[Any, ...]:
    """Where a product stands: the constant, indicators, then by order, main effects first."""
    smooth = not all(_is_indicator(part, k) for part, k in zip(parts, own, strict=True))
    return any(own), smooth, _order(parts, own), sum(k > 0 for k in own), own


def _products(parts: Sequence[FittedBasis], main: int, joint: int) -> Iterator[tuple[int, ...]]:
    for own in product(*(range(part.n_functions) for part in parts)):
        n_used = sum(k > 0 for k in own)
        if _order(parts, own) <= (main if n_used == 1 else joint):
            yield own


def new_directions(values: FloatArray, weights: Any) -> list[int]:
    """Columns that those before them do not explain on the sample."""
    own = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    root = np.sqrt(own / own.sum())[:, None]
    # Triangular: what is left of each column beside all before it stands on the diagonal.
    triangle = np.asarray(np.linalg.qr(values * root, mode="r"), np.float64)
    sizes = np.sqrt((triangle**2).sum(axis=0))
    left = np.zeros(len(sizes))
    left[: len(triangle)] = np.abs(np.diag(triangle))
    return np.flatnonzero(left > NEW_DIRECTION * np.maximum(sizes, 1e-300)).tolist()


def check_part(part: Any) -> None:
    """Refuse a part of a file that is made of parts itself, or is no basis."""
    simple = type(part) in (PolynomialBasis, SplineBasis, IndicatorBasis)
    CHECKS.require(simple, "has a component of an unknown kind")
    part.check()


def check_parts(parts: Sequence[Any]) -> None:
    """Refuse what is not two or three components."""
    CHECKS.require(2 <= len(parts) <= MAX_COMPONENTS, "has no two or three components")
    for part in parts:
        check_part(part)


def check_products(parts: Sequence[FittedBasis], products: Sequence[Sequence[int]]) -> None:
    """Refuse products of functions that the parts do not have."""
    sizes = [part.n_functions for part in parts]
    CHECKS.require(
        len(products) > 0
        and not any(products[0])
        and all(
            len(own) == len(sizes)
            and all(type(k) is int and 0 <= k < size for k, size in zip(own, sizes, strict=True))
            for own in products
        ),
        "has products of functions that it lacks",
    )
