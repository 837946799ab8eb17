"""The public names of the package: what it exports, and what its three main classes have."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import doseforest

NAMES = Path(__file__).parents[2] / "tests" / "golden" / "public_names.txt"
CLASSES = ("GeneralizedCausalForest", "CurveForest", "EffectForest")
ESTIMATORS = ("GeneralizedCausalForest", "CurveForest")


def public_names() -> str:
    """One name a line, under the module or class that has it."""
    sections = {module.__name__: sorted(module.__all__) for module in exporting_packages()}
    for name in CLASSES:
        form = getattr(doseforest, name)
        sections[f"attributes of {name}"] = [own for own in dir(form) if own[0] != "_"]
    for name in ESTIMATORS:
        signature = inspect.signature(getattr(doseforest, name))
        sections[f"parameters of {name}"] = [
            f"{own.name}={own.default!r}" for own in signature.parameters.values()
        ]
    return (
        "\n\n".join("\n".join([f"# {title}", *names]) for title, names in sections.items()) + "\n"
    )


def exporting_packages() -> list[ModuleType]:
    """The package and all subpackages that have ``__all__``, by name; no module inside them."""
    found = [doseforest]
    for own in pkgutil.walk_packages(doseforest.__path__, "doseforest."):
        if own.ispkg and not any(part.startswith("_") for part in own.name.split(".")):
            module = importlib.import_module(own.name)
            if hasattr(module, "__all__"):
                found.append(module)
    return sorted(found, key=lambda module: module.__name__)
