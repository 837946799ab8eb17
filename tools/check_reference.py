"""Docstrings of the public names: every parameter, what comes back, and an example.

Usage: python tools/check_reference.py

Public are the names in ``__all__`` of doseforest and of what lies directly in it or in its pricing,
the accessors of those classes, and the methods and properties of all of them, those of our base
classes included. numpydoc reads the docstrings and has the rules. Two are wider here: a field of a
dataclass may stand under Attributes, and a method that fulfils a public protocol, or overrides one
of a base class, is documented there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, error, validate

from doseforest.base.accessors import Accessor

PARENTS = ("doseforest", "doseforest.pricing")
RULES = {
    "GL06",  # a section that numpydoc does not know
    "GL07",  # sections in another order than numpydoc's
    "GL08",  # no docstring
    "SS03",  # no full stop after the first sentence
    "PR01",  # a parameter that is not documented
    "PR02",  # a documented parameter that is not there
    "PR03",  # parameters in another order
    "PR04",  # a parameter without a type
    "PR07",  # a parameter without a text
    "RT01",  # nothing about what comes back
    "RT03",  # a type that comes back, without a text
    "YD01",  # nothing about what is yielded
}
RULES_OF_NAMES = RULES | {"EX01"}  # an example; methods share that of their class
RULES_OF_FULFILLED = RULES - {"PR01", "RT01"}

# Places whose docstrings are not complete yet. The list gets shorter, never longer.
NOT_YET: tuple[str, ...] = ()


class ReferenceValidator(Validator):  # type: ignore[misc]
    """numpydoc's validator, with fields of dataclasses under Parameters or Attributes."""

    def __init__(self, obj_name: str) -> None:
        config = {"show_class_members": False}  # or members would count as Attributes unasked
        super().__init__(get_doc_object(Validator._load_obj(obj_name), config=config))

    @property
    def parameter_mismatches(self) -> list[tuple[str, str]]:
        """Faults of the list of parameters."""
        if getattr(self.obj, "_is_protocol", False):  # nothing is made of it
            return []
        if not (inspect.isclass(self.obj) and is_dataclass(self.obj)):
            return list(super().parameter_mismatches)
        names = [field.name for field in fields(self.obj) if not field.name.startswith("_")]
        documented = list(self.doc_all_parameters)
        attributes = self._doc_parameters(["Attributes"])
        mismatches = []
        if missing := [name for name in names if name not in {*documented, *attributes}]:
            mismatches.append(error("PR01", missing_params=missing))
        if unknown := [name for name in documented if name not in names]:
            mismatches.append(error("PR02", unknown_params=unknown))
        return mismatches


def public_modules() -> Iterator[ModuleType]:
    """doseforest, and packages and modules below it that say which of their names are public."""
    for parent in map(import_module, PARENTS):
        children = [f"{parent.__name__}.{child.name}" for child in iter_modules(parent.__path__)]
        for module in (parent, *map(import_module, children)):
            if hasattr(module, "__all__"):
                yield module


def public_names() -> Iterator[tuple[str, Any]]:
    """Place and object of every public class and function, once."""
    seen = set()
    for module in public_modules():
        for name in module.__all__:
            try:
                value = getattr(module, name)
            except ImportError as missing:  # PySpark
                print(f"not checked: {module.__name__}.{name}: {missing}")
                continue
            for named in (value, *accessors(value)):
                documented = inspect.isclass(named) or inspect.isfunction(named)
                if documented and place_of(named) not in seen:
                    seen.add(place_of(named))
                    yield place_of(named), named


def accessors(value: Any) -> Iterator[Any]:
    """Classes that answer under an attribute of a class, as ``forest.average``."""
    for parent in getattr(value, "__mro__", ()):
        for name, member in vars(parent).items():
            if isinstance(member, Accessor):
                yield getattr(value, name)


def public_members(owner: type) -> Iterator[tuple[str, Any, type]]:
    """Name, function or property, and class of each public member of a class and our bases."""
    for parent in owner.__mro__:
        if parent.__module__.partition(".")[0] == "doseforest":
            for name, value in vars(parent).items():
                kinds = (classmethod, staticmethod, property)
                if not name.startswith("_") and (isinstance(value, kinds) or _is_method(value)):
                    yield name, value, parent


def is_fulfilled(name: str, value: Any, owner: type, protocols: list[type]) -> bool:
    """Whether a base class or a protocol documents a member that has the same parameters."""
    if not _is_method(value):
        return False
    followed = [
        protocol
        for protocol in protocols
        if all(hasattr(owner, member) for member in vars(protocol) if not member.startswith("_"))
    ]
    for other in [*owner.__mro__[1:], *followed]:
        theirs = vars(other).get(name)
        ours = other.__module__.partition(".")[0] == "doseforest"
        if other is not owner and ours and _is_method(theirs):
            return list(inspect.signature(theirs).parameters) == list(
                inspect.signature(value).parameters
            )
    return False


def _is_error(value: Any) -> bool:
    """Whether a name is an error or a warning, which shows itself without an example."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def _is_method(value: Any) -> bool:
    """Whether a member of a class is a plain method, wrapped or not."""
    return callable(value) and inspect.isfunction(inspect.unwrap(value))


def place_of(value: Any) -> str:
    """Module and name of a class or function."""
    return f"{value.__module__}.{value.__qualname__}"


def faults() -> Iterator[tuple[str, str, str]]:
    """Place, rule and text of everything that a docstring lacks."""
    names = dict(public_names())
    protocols = [value for value in names.values() if getattr(value, "_is_protocol", False)]
    rules = {place: RULES if _is_error(value) else RULES_OF_NAMES for place, value in names.items()}
    for owner in filter(inspect.isclass, names.values()):
        for name, value, parent in public_members(owner):
            fulfilled = is_fulfilled(name, value, parent, protocols)
            rules[f"{place_of(parent)}.{name}"] = RULES_OF_FULFILLED if fulfilled else RULES
    for place, applicable in rules.items():
        for rule, text in validate(place, ReferenceValidator)["errors"]:
            if rule in applicable:
                yield place, rule, text


def main() -> None:
    """Print what is missing; exit with 1 where something is."""
    incomplete = list(faults())
    unexpected = [fault for fault in incomplete if not fault[0].startswith(NOT_YET)]
    for place, rule, text in unexpected:
        print(f"{place}: {rule} {text}")
    done = [
        exception
        for exception in NOT_YET
        if not any(place.startswith(exception) for place, _, _ in incomplete)
    ]
    for exception in done:
        print(f"{exception}: complete; take it off NOT_YET")
    sys.exit(1 if unexpected or done else 0)


if __name__ == "__main__":
    main()
