"""What belongs to an object of a lower floor and is done on a higher one: pictures, files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


@cache
def late(place: str) -> Any:
    """A function or class by its place, imported when it is first asked for.

    Floors import downwards only. A method that draws or saves is asked for on a fitted object far
    below the floor that knows how; it names the place instead, so that nothing below loads
    matplotlib or readers of files. ``tests/test_floors.py`` looks up every place that is named.

    Parameters
    ----------
    place : str
        Module and name, with a colon between.

    Examples
    --------
    >>> late("doseforest.base.progress:ProgressBar").__name__
    'ProgressBar'
    """
    module, name = place.split(":")
    return getattr(import_module(module), name)


def late_names(
    package: str, homes: Mapping[str, str], *others: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose names are imported on first use.

    Parameters
    ----------
    package : str
    homes : mapping
        Module of each public name.
    others : str
        Names beside them that the package has at once.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return late(f"{homes[name]}:{name}")

    return find, lambda: sorted([*homes, *others])
