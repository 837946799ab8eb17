"""What a value of a configuration must be: rules with a text, one for each key."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in words, and what makes a clean value of one that keeps it (else raises)."""

    text: str
    clean: Callable[[Any], Any]


def setting(rule: Rule, default: Any = None) -> Any:
    """A field of a section that follows a rule; None means that it may be left out."""
    return field(default=default, metadata={"rule": rule})


def text() -> Rule:
    """Any text but an empty one."""
    return Rule("be text, not empty", _text)


def one_of(*names: str) -> Rule:
    """One of a few names."""

    def clean(value: Any) -> str:
        if value not in names or not isinstance(value, str):
            raise ValueError
        return value

    return Rule(f"be one of {', '.join(map(repr, names))}", clean)


def names(least: int = 0) -> Rule:
    """Different names; a single one may stand without brackets."""

    def clean(value: Any) -> tuple[str, ...]:
        result = tuple(
            _text(each) for each in ([value] if isinstance(value, str) else _list(value))
        )
        if len(result) < least or len(set(result)) < len(result):
            raise ValueError
        return result

    return Rule("be a list of different names" + (", not empty" if least else ""), clean)


def whole(least: int, most: int | None = None) -> Rule:
    """A whole number within limits."""

    def clean(value: Any) -> int:
        if type(value) is not int or value < least or (most is not None and value > most):
            raise ValueError
        return value

    upper = "" if most is None else f" and at most {most}"
    return Rule(f"be a whole number of at least {least}{upper}", clean)


def number(above: float = -math.inf, below: float = math.inf) -> Rule:
    """A finite number strictly between two."""

    def clean(value: Any) -> float:
        result = _number(value)
        if not above < result < below:
            raise ValueError
        return result

    limits = [f"above {above:g}"] if above > -math.inf else []
    limits += [f"below {below:g}"] if below < math.inf else []
    return Rule(f"be a number {' and '.join(limits)}".strip(), clean)


def number_or_name() -> Rule:
    """A number for all units, or the column with each unit's own."""

    def clean(value: Any) -> float | str:
        return _text(value) if isinstance(value, str) else _number(value)

    return Rule("be a number or the name of a column", clean)


def dose() -> Rule:
    """One dose: a number, or a list with one for each component."""

    def clean(value: Any) -> float | tuple[float, ...]:
        if isinstance(value, list):
            return tuple(_number(each) for each in _list(value))
        return _number(value)

    return Rule("be a dose: a number, or a list of its components", clean)


def doses() -> Rule:
    """Several different doses."""
    one = dose()

    def clean(value: Any) -> tuple[Any, ...]:
        result = tuple(one.clean(each) for each in _list(value))
        if len(result) < 2 or len(set(result)) < len(result):
            raise ValueError
        if len({len(each) if isinstance(each, tuple) else 1 for each in result}) > 1:
            raise ValueError
        return result

    return Rule("be a list of at least two different doses, each a number or a list", clean)


def tables() -> Rule:
    """Settings of several things by name."""

    def clean(value: Any) -> dict[str, dict[str, Any]]:
        if not isinstance(value, dict) or not all(
            isinstance(each, dict) for each in value.values()
        ):
            raise ValueError
        return value

    return Rule("be tables of parameters", clean)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError
    return value
