"""What doses are worth and what they cost, said in words that a file can hold.

A rule is a line in the predicted response: amount = constant + slope x response, with numbers that
are the same for all units or come from a column of theirs. Rules add up: the profit of a discount
is ``Response("margin") - DiscountCost("fare")``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from math import isfinite
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.policy.artifact.unit_columns import CheckedUnits

MOST_TERMS = 100  # of a total, in a file


@dataclass(frozen=True, slots=True)
class AmountLine:
    """Amounts that are linear in the response; both shapes broadcast to (n_units, n_doses)."""

    constant: FloatArray
    slope: FloatArray

    def at(self, response: FloatArray) -> FloatArray:
        """Amounts at responses, (n_units, n_doses)."""
        amounts: FloatArray = self.constant + self.slope * response
        return amounts


class AmountRule(ABC):
    """A rule: what a dose is worth or costs. Rules can be added, subtracted and scaled."""

    __slots__ = ()
    kind: ClassVar[str]

    @abstractmethod
    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """Constant and slope of the amounts in the response.

        Parameters
        ----------
        units : CheckedUnits
            Features and columns of the units, checked.
        doses : array of shape (n_doses,)
            Doses.

        Returns
        -------
        AmountLine
            Amounts as a line in the response, for every unit and dose.
        """

    def columns(self) -> tuple[str, ...]:
        """Columns of the units that the rule needs.

        Returns
        -------
        tuple of str
            Their names.
        """
        return tuple(field for field in self._fields().values() if isinstance(field, str))

    def highest_component(self) -> int:
        """The last component of a dose that the rule looks at.

        Returns
        -------
        int
            Its place.
        """
        return int(self._fields().get("component", 0))

    def to_json(self) -> dict[str, Any]:
        """Describe the rule by plain values, for a file.

        Returns
        -------
        dict
            ``kind``, and the fields by name.
        """
        return {"kind": self.kind, **self._fields()}

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __add__(self, other: Any) -> Total:
        return Total((self, checked_rule(other, "other")))

    def __sub__(self, other: Any) -> Total:
        return Total((self, checked_rule(other, "other")), (1.0, -1.0))

    def __mul__(self, factor: Any) -> Total:
        return Total((self,), (_number(factor, "factor"),))

    __rmul__ = __mul__

    def __neg__(self) -> Total:
        return self * -1.0


@dataclass(frozen=True, slots=True)
class Response(AmountRule):
    """The predicted response, times a number or a column: orders, or what they bring.

    Parameters
    ----------
    scale : float or str, default=1.0
        What one unit of response is worth; a name stands for a column with each unit's number.

    Examples
    --------
    >>> Response(), Response(scale="margin").columns()
    (Response(scale=1.0), ('margin',))
    """

    scale: float | str = 1.0
    kind: ClassVar[str] = "response"

    def __post_init__(self) -> None:
        _check(self, "scale")

    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """No constant, the scale as slope."""
        return AmountLine(np.zeros((1, 1)), units.amounts(self.scale))


@dataclass(frozen=True, slots=True)
class DiscountCost(AmountRule):
    """Price x share x dose x response: a discount, paid where there is an order.

    Parameters
    ----------
    price : float or str
        Price before the discount; a name stands for a column with each unit's price.
    share : float, default=1.0
        What one unit of dose is of the price: 0.01 where doses are percent.
    component : int, default=0
        Place of the discount in a dose of several components.

    Examples
    --------
    >>> DiscountCost("fare", share=0.01).columns()
    ('fare',)
    """

    price: float | str
    share: float = 1.0
    component: int = 0
    kind: ClassVar[str] = "discount"

    def __post_init__(self) -> None:
        _check(self, "price")
        object.__setattr__(self, "share", _number(self.share, "share"))
        _check_component(self.component)

    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """No constant, the discount as slope."""
        discount = self.share * Doses.of(doses).table[None, :, self.component]
        return AmountLine(np.zeros((1, 1)), units.amounts(self.price) * discount)


@dataclass(frozen=True, slots=True)
class DoseCost(AmountRule):
    """Price x dose, paid whatever comes of it: a coupon in cash, minutes of a nurse.

    Parameters
    ----------
    price : float or str, default=1.0
        Price of one unit of dose; a name stands for a column with each unit's price.
    component : int, default=0
        Place of what is paid for in a dose of several components.

    Examples
    --------
    >>> DoseCost("wage").columns()
    ('wage',)
    """

    price: float | str = 1.0
    component: int = 0
    kind: ClassVar[str] = "dose"

    def __post_init__(self) -> None:
        _check(self, "price")
        _check_component(self.component)

    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """A constant alone."""
        own = Doses.of(doses).table[None, :, self.component]
        return AmountLine(units.amounts(self.price) * own, np.zeros((1, 1)))


@dataclass(frozen=True, slots=True)
class Fee(AmountRule):
    """An amount for every dose but one: what it costs to treat at all.

    Parameters
    ----------
    amount : float or str, default=1.0
        The amount; a name stands for a column with each unit's amount.
    free : float, default=0.0
        The dose without the fee.
    component : int, default=0
        Place of what is looked at in a dose of several components.

    Examples
    --------
    >>> (DoseCost(2.0) + Fee("postage")).columns()
    ('postage',)
    """

    amount: float | str = 1.0
    free: float = 0.0
    component: int = 0
    kind: ClassVar[str] = "fee"

    def __post_init__(self) -> None:
        _check(self, "amount")
        object.__setattr__(self, "free", _number(self.free, "free"))
        _check_component(self.component)

    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """A constant alone."""
        treated = Doses.of(doses).table[None, :, self.component] != self.free
        return AmountLine(units.amounts(self.amount) * treated, np.zeros((1, 1)))


@dataclass(frozen=True, slots=True)
class Total(AmountRule):
    """A weighted sum of rules, which ``+``, ``-`` and ``*`` make.

    Parameters
    ----------
    terms : tuple of AmountRule
        The rules, at most 100.
    weights : tuple of float, optional
        A factor for each; by default 1.

    Examples
    --------
    >>> profit = Response("margin") - DiscountCost("fare")
    >>> profit.columns(), profit.weights
    (('margin', 'fare'), (1.0, -1.0))
    >>> rule_from_json(profit.to_json()) == profit
    True
    """

    terms: tuple[AmountRule, ...]
    weights: tuple[float, ...] | None = None
    kind: ClassVar[str] = "total"

    def __post_init__(self) -> None:
        weights = (1.0,) * len(self.terms) if self.weights is None else self.weights
        terms = tuple(checked_rule(term, "terms") for term in self.terms)
        if not 1 <= len(terms) <= MOST_TERMS or len(weights) != len(terms):
            raise ValueError(
                f"The 'weights' parameter must be as many as there are terms, 1 to {MOST_TERMS}. "
                f"Got {len(weights)} for {len(terms)} instead."
            )
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "weights", tuple(_number(weight, "weights") for weight in weights))

    def line(self, units: CheckedUnits, doses: DoseArray) -> AmountLine:
        """Sums of the terms' constants and slopes."""
        constant, slope = np.zeros((1, 1)), np.zeros((1, 1))
        for term, weight in zip(self.terms, self.weights or (), strict=True):
            own = term.line(units, doses)
            constant, slope = constant + weight * own.constant, slope + weight * own.slope
        return AmountLine(constant, slope)

    def columns(self) -> tuple[str, ...]:
        """Columns of all terms, each once."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns()))

    def highest_component(self) -> int:
        """The last component that any term looks at."""
        return max(term.highest_component() for term in self.terms)

    def to_json(self) -> dict[str, Any]:
        """The rule as plain values."""
        terms = [term.to_json() for term in self.terms]
        return {"kind": self.kind, "terms": terms, "weights": list(self.weights or ())}


RULES: dict[str, type[AmountRule]] = {
    kind.kind: kind for kind in (Response, DiscountCost, DoseCost, Fee, Total)
}


def rule_from_json(described: Any) -> AmountRule:
    """The rule of plain values; ValueError or TypeError where they are none.

    >>> rule_from_json({"kind": "dose", "price": 2.0, "component": 0})
    DoseCost(price=2.0, component=0)
    """
    fields = dict(described)
    kind = fields.pop("kind")
    if kind not in RULES:
        raise ValueError(f"The rule must be one of {sorted(RULES)}. Got {kind!r:.80} instead.")
    if kind == "total":
        fields["terms"] = tuple(rule_from_json(term) for term in fields["terms"])
    return RULES[kind](**fields)


def checked_rule(rule: Any, name: str) -> AmountRule:
    """The rule itself, or TypeError."""
    if not isinstance(rule, AmountRule):
        raise TypeError(
            f"The {name!r} parameter must be a rule, such as Response() or DiscountCost('fare'): a "
            f"file cannot hold a function. Got {rule!r} instead."
        )
    return rule


def check_components(rule: AmountRule, doses: AnyDoses) -> None:
    """Raise ValueError where a rule looks at a component that doses do not have."""
    place, width = rule.highest_component(), Doses.of(doses).n_components
    if place >= width:
        raise ValueError(
            f"The 'component' parameter of a rule must be below {width}, the number of components "
            f"of a dose. Got {place} instead."
        )


def _number(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not isfinite(value):
        raise ValueError(f"The {name!r} parameter must be a finite number. Got {value!r} instead.")
    return float(value)


def _check(rule: AmountRule, name: str) -> None:
    """Refuse what is neither a finite number nor the name of a column."""
    given = getattr(rule, name)
    if isinstance(given, str) and given:
        return
    if not isinstance(given, Real) or isinstance(given, bool) or not isfinite(given):
        raise ValueError(
            f"The {name!r} parameter must be a finite number or the name of a column. "
            f"Got {given!r} instead."
        )
    object.__setattr__(rule, name, float(given))


def _check_component(component: Any) -> None:
    if type(component) is not int or component < 0:
        raise ValueError(
            "The 'component' parameter must be the place of a component of the dose, an int of at "
            f"least 0. Got {component!r} instead."
        )
