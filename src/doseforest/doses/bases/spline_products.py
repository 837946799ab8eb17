"""Splines of doses with several components: main effects of each, and smooth products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.bases.indicators import IndicatorBasis, Indicators
from doseforest.doses.bases.splines import Spline, SplineBasis
from doseforest.doses.bases.tensor import (
    MAX_INDICATORS,
    check_parts,
    check_products,
    new_directions,
)
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.doses.grids import dose_sample
from doseforest.doses.stored_values import FileChecks

if TYPE_CHECKING:
    from doseforest.doses.bases.dose_basis import FittedBasis

CHECKS = FileChecks("basis of the dose")
MOST_SPLINES = 200  # functions of an outcome model's splines of three components
N_KNOTS = 10  # of each component
JOINT = 3  # functions of a component that are multiplied with those of another
LEADING = {2: 3, 3: 2}  # functions of a component that covariates are multiplied with
MOST_JOINT = 120  # products of components


def fit_splines(dose: AnyDoses, weights: Any = None) -> SplineBasis | SplineProductBasis:
    """Splines of a dose of one component, or of several with their products."""
    known = Doses.of(dose)
    recipe: Any = SplineProducts() if known.joint else Spline()
    fitted: SplineBasis | SplineProductBasis = recipe.fit(known.values, weights)
    return fitted


@dataclass(frozen=True, slots=True)
class SplineProducts:
    """Splines of each component, indicators of one with few levels, and products of the first.

    The functions that covariates shall be multiplied with come first: the constant, the smoothest
    of each component, and the products of linear ones.

    Examples
    --------
    >>> from doseforest.doses.dose_values import Doses
    >>> doses = Doses.product([np.linspace(0, 1, 21), np.linspace(0, 1, 22)]).values
    >>> basis = SplineProducts().fit(doses)
    >>> basis.n_leading, basis.n_functions
    (8, 32)
    """

    def fit(self, dose: DoseArray, weights: Any = None) -> SplineProductBasis:
        """Make the functions from the observed doses."""
        columns = Doses.of(dose).columns
        parts = tuple(_component(column, weights) for column in columns)
        ranked = sorted(_products(parts), key=lambda own: _rank(parts, own))
        joint = [own for own in ranked if sum(k > 0 for k in own) > 1][:MOST_JOINT]
        mains = [own for own in ranked if sum(k > 0 for k in own) <= 1]
        candidates = sorted([*mains, *joint], key=lambda own: _rank(parts, own))
        whole = SplineProductBasis(parts, tuple(candidates), (0.0,) * len(candidates), 1)
        kept = new_directions(whole.evaluate(dose), weights)
        products = tuple(candidates[place] for place in kept)
        return SplineProductBasis(
            parts,
            products,
            tuple(_roughness(parts, own) for own in products),
            sum(_leads(parts, own) for own in products),
        )


@dataclass(frozen=True, slots=True)
class SplineProductBasis:
    """The functions that `SplineProducts` fits."""

    kind: ClassVar[str] = "spline_products"
    parts: tuple[FittedBasis, ...]  # (n_components,)
    products: tuple[tuple[int, ...], ...]  # (n_functions, n_components)
    bends: tuple[float, ...]  # (n_functions,), see `roughness`
    n_leading: int  # functions that covariates are multiplied with, the constant included

    @property
    def n_functions(self) -> int:
        """Number of functions, the constant B_0 included."""
        return len(self.products)

    @property
    def roughness(self) -> FloatArray:
        """Penalty of each function, (n_functions,): the bends of its factors added up."""
        return np.array(self.bends)

    def evaluate(self, doses: DoseArray) -> FloatArray:
        """Values of the functions, (n, n_functions)."""
        table = Doses.of(doses).table
        values = np.ones((len(table), self.n_functions))
        for k, part in enumerate(self.parts):
            values *= part.evaluate(table[:, k])[:, [own[k] for own in self.products]]
        return values

    def to_json(self) -> dict[str, Any]:
        """Return the basis as plain values."""
        return {
            "kind": self.kind,
            "parts": [part.to_json() for part in self.parts],
            "products": [list(own) for own in self.products],
            "bends": list(self.bends),
            "n_leading": self.n_leading,
        }

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return len(self.parts)

    def check(self) -> None:
        """Refuse numbers of a file that cannot be evaluated."""
        CHECKS.fields(self)
        check_parts(self.parts)
        check_products(self.parts, self.products)
        CHECKS.finite(*self.bends)
        CHECKS.require(
            len(self.bends) == len(self.products) <= MOST_SPLINES
            and type(self.n_leading) is int
            and 1 <= self.n_leading <= len(self.products),
            "has bends that do not fit its functions",
        )


def _component(values: FloatArray, weights: Any) -> FittedBasis:
    levels, _ = dose_sample(values, weights).levels()
    if len(levels) <= MAX_INDICATORS:
        return Indicators().fit(values, weights)
    return Spline(N_KNOTS).fit(values, weights)


def _products(parts: tuple[FittedBasis, ...]) -> Iterator[tuple[int, ...]]:
    """Main effects of each component, and products of the first functions of two of them."""
    for own in product(*(range(part.n_functions) for part in parts)):
        used = [(part, k) for part, k in zip(parts, own, strict=True) if k > 0]
        if len(used) <= 1 or (len(used) == 2 and all(_joins(part, k) for part, k in used)):
            yield own


def _joins(part: FittedBasis, function: int) -> bool:
    return isinstance(part, IndicatorBasis) or function <= JOINT


def _leads(parts: tuple[FittedBasis, ...], own: tuple[int, ...]) -> bool:
    used = [(part, k) for part, k in zip(parts, own, strict=True) if k > 0]
    most = LEADING[len(parts)] if len(used) <= 1 else 1
    return all(isinstance(part, IndicatorBasis) or k <= most for part, k in used)


def _rank(parts: tuple[FittedBasis, ...], own: tuple[int, ...]) -> tuple[Any, ...]:
    return not _leads(parts, own), sum(k > 0 for k in own), sum(own), own


def _roughness(parts: tuple[FittedBasis, ...], own: tuple[int, ...]) -> float:
    bends = (getattr(part, "roughness", None) for part in parts)
    return float(sum(0.0 if b is None else b[k] for b, k in zip(bends, own, strict=True)))
