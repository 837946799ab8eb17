"""Packages of the extra `baselines`, imported when they are first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def from_extra(module: str, name: str, *, baseline: str, package: str) -> Any:
    """A class or function of a package of the extra, or an error that says how to get it.

    Examples
    --------
    >>> from_extra("no_such_package", "Forest", baseline="Jungle", package="NoSuch")
    Traceback (most recent call last):
    ...
    ImportError: The baseline Jungle needs NoSuch. Install it with: pip install
    'doseforest[baselines]'
    """
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise ImportError(
            f"The baseline {baseline} needs {package}. "
            "Install it with: pip install 'doseforest[baselines]'"
        ) from error
