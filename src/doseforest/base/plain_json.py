"""JSON that every reader takes: numbers that are not finite are null."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from doseforest.base.atomic_files import write_text


def json_text(value: Any, indent: int | None = None) -> str:
    """A value of dicts, lists, text and numbers as JSON.

    Examples
    --------
    >>> json_text({"interval": (-float("inf"), 2.5), "p": float("nan")})
    '{"interval": [null, 2.5], "p": null}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def write_json(path: Path, value: Any, indent: int | None = None) -> None:
    """Write a value to a file, all of it or nothing."""
    write_text(path, json_text(value, indent) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
