"""The public names of the package: what it exports, and what its three main classes have."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import doseforest
from doseforest.base.accessors import Accessor
from doseforest.base.late import late

NAMES = Path(__file__).parents[2] / "tests" / "golden" / "public_names.txt"
CLASSES = ("GeneralizedCausalForest", "CurveForest", "EffectForest")
ESTIMATORS = ("GeneralizedCausalForest", "CurveForest")


def public_names() -> str:
    """One name a line, under the module or class that has it."""
    sections = {module.__name__: sorted(module.__all__) for module in exporting_packages()}
    for name in CLASSES:
        form = getattr(doseforest, name)
        sections[f"attributes of {name}"] = list(attributes(form))
    for name in ESTIMATORS:
        signature = inspect.signature(getattr(doseforest, name))
        sections[f"parameters of {name}"] = [
            f"{own.name}={own.default!r}" for own in signature.parameters.values()
        ]
    return (
        "\n\n".join("\n".join([f"# {title}", *names]) for title, names in sections.items()) + "\n"
    )


def attributes(form: type) -> Iterator[str]:
    """Public attributes of a class, and what there is under its accessors."""
    for name in sorted(own for own in dir(form) if own[0] != "_"):
        found = inspect.getattr_static(form, name)
        if isinstance(found, Accessor):
            yield from (f"{name}.{own}" for own in attributes(late(found.place)))
        else:
            yield name


def exporting_packages() -> list[ModuleType]:
    """Packages that have ``__all__``, and modules right under the first, by name."""
    found = [doseforest]
    for own in pkgutil.walk_packages(doseforest.__path__, "doseforest."):
        public = own.ispkg or own.name.count(".") == 1
        if public and not any(part.startswith("_") for part in own.name.split(".")):
            module = importlib.import_module(own.name)
            if hasattr(module, "__all__"):
                found.append(module)
    return sorted(found, key=lambda module: module.__name__)
