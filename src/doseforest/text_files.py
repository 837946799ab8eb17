"""Text files that are never half-written."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write beside the file, then take its place.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_text(folder / "a.txt", "one")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
