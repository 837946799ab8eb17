"""Doses as the service takes, answers and stores them.

A dose of one component is a number. One of several is a number for each component by its name, an
object in JSON and ``express=0,premium=5`` as text; policies know its numbers alone, in their order.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

Components = tuple[str, ...] | None  # names, where a dose has several
Dose = float | dict[str, float]
PlainDose = float | tuple[float, ...]  # as the `tolist` of an array of doses has them

RULE = "a finite number, or one for each component such as express=0,premium=0"


def named_dose(dose: PlainDose, components: Components) -> Dose:
    """A dose with the names of its components.

    >>> named_dose((0.0, 5.0), ("express", "premium")), named_dose(5.0, None)
    ({'express': 0.0, 'premium': 5.0}, 5.0)
    """
    return dict(zip(components or (), dose, strict=True)) if isinstance(dose, tuple) else dose


def components_of(dose: Dose) -> Components:
    """Names of the components of a dose; None where it is a number."""
    return tuple(dose) if isinstance(dose, dict) else None


def has_components(dose: Dose, components: Components) -> bool:
    """Whether a dose has these components, in any order.

    >>> has_components({"a": 0.0, "b": 1.0}, ("b", "a")), has_components(0.0, ("b", "a"))
    (True, False)
    """
    if components is None or not isinstance(dose, dict):
        return components is None and not isinstance(dose, dict)
    return set(dose) == set(components)


def in_order(dose: Dose, components: Components) -> Dose:
    """A dose with its components in an order.

    >>> in_order({"b": 1.0, "a": 0.0}, ("a", "b"))
    {'a': 0.0, 'b': 1.0}
    """
    return {name: dose[name] for name in components or ()} if isinstance(dose, dict) else dose


def dose_name(dose: Dose) -> str:
    """A dose as text, which `read_dose` reads.

    >>> dose_name(0.5), dose_name({"express": 0.0, "premium": 5.0})
    ('0.5', 'express=0,premium=5')
    """
    if isinstance(dose, dict):
        return ",".join(f"{name}={each:g}" for name, each in dose.items())
    return f"{dose:g}"


def components_text(components: Components) -> str:
    """Names as a sentence has them.

    >>> components_text(("express", "premium")), components_text(None)
    ('express, premium', 'one without a name')
    """
    return "one without a name" if components is None else ", ".join(components)


def read_dose(text: str) -> Dose:
    """A dose of its text.

    >>> read_dose("express=0, premium=5"), read_dose("0.5")
    ({'express': 0.0, 'premium': 5.0}, 0.5)
    """
    parts = [part.rpartition("=") for part in text.split(",")]
    names = [name.strip() for name, _, _ in parts]
    try:
        numbers = [float(number) for _, _, number in parts]
    except ValueError:
        numbers = []
    if names == [""] and "=" not in text and numbers:
        return numbers[0]
    if len(set(names)) != len(numbers):
        raise ValueError(f"The dose must be {RULE}. Got {text!r} instead.")
    return dict(zip(names, numbers, strict=True))


def checked_dose(given: Any, name: str) -> Dose:
    """A dose itself, or ValueError."""
    if _is_number(given):
        return float(given)
    several = isinstance(given, dict) and len(given) > 1
    if several and all(isinstance(key, str) and key and _is_number(given[key]) for key in given):
        return {key: float(each) for key, each in given.items()}
    raise ValueError(f"The {name!r} parameter must be {RULE}. Got {given!r} instead.")


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and isfinite(given)
