"""What results were made with: versions of packages, and the sources of a clone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CLONE = PACKAGE.parents[1]  # in a clone: the folder of pyproject.toml


def in_clone() -> bool:
    """Whether the package runs from a clone of its repository."""
    return (CLONE / "pyproject.toml").exists() and (CLONE / "cpp").is_dir()


def installed(package: str) -> str:
    """Version of a package.

    >>> installed("no-such-package")
    'not installed'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def digest_of_files(files: Iterable[Path]) -> str:
    """Short digest of names and contents."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
