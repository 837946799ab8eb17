"""What results are kept under: what the algorithm answers, not the files that it is written in.

A part of the algorithm goes into a key by its golden answers, a design by the rows that it draws,
a method without golden fits and the bench's own code by what small files do. A file that moves
changes none of them.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.designs import CATEGORY_COLUMNS, Design
from bench.golden import part_keys
from doseforest.base.versions import PACKAGE, installed

BENCH = Path(__file__).parents[1]
# Parts of the algorithm, by what uses them.
FOREST = ("engine", "outcome", "density", "orthogonal", "averages", "defaults")
PAPER = ("engine", "outcome", "density", "paper", "paper_defaults")


def result_key(
    uses: Iterable[str],
    *,
    packages: Iterable[str] = (),
    files: Iterable[Path] = (),
    others: Any = (),
) -> str:
    """A short digest of all that results depend on.

    Parameters
    ----------
    uses : names of parts of the algorithm
        Their golden answers go into the key.
    packages : names of packages
        Their versions do.
    files : paths
        Small files without golden answers: what they do goes into the key.
    others : any
        What else matters, by its representation.

    Examples
    --------
    >>> result_key(["engine"]) == result_key(["engine"]) != result_key(["engine", "outcome"])
    True
    """
    answers = answers_of(uses)
    versions = {package: installed(package) for package in packages}
    return digest_of(answers, versions, digest_of_code(files), others)


def answers_of(uses: Iterable[str]) -> dict[str, str]:
    """Digests of the golden answers of parts."""
    stored = stored_keys()
    names = sorted(set(uses))
    if unknown := [name for name in names if name not in stored]:
        raise ValueError(
            f"The 'uses' parameter must name parts of the algorithm, {', '.join(stored)}. "
            f"Got {unknown} instead."
        )
    return {name: stored[name] for name in names}


@cache
def stored_keys() -> Mapping[str, str]:
    """Digests of the golden answers of all parts, as they were when this process began."""
    return part_keys()


def source(name: str) -> Path:
    """A file of the bench, or of the library by its path in there."""
    return BENCH.parent / name if name.startswith("bench/") else PACKAGE / name


def digest_of_code(files: Iterable[Path]) -> str:
    """Digest of what files do: without their names, imports, comments and docstrings."""
    return digest_of(sorted(map(_code_of, files)))


def _code_of(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [own for own in body if not isinstance(own, ast.Import | ast.ImportFrom)]
            kept = [own for own in kept if not _is_text(own)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a string, such as a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def digest_of_draw(design: Design, n: int = 100, seed: int = 0) -> str:
    """Digest of the rows of a draw, their categories and truth, which a changed design changes."""
    data = design.draw(n=n, seed=seed)
    codes = map(np.array, CATEGORY_COLUMNS.get(data.name, ()))
    return digest_of_arrays(data.X, data.treatment, data.y, data.doses, data.effect(), *codes)


def digest_of_arrays(*arrays: Any) -> str:
    """Short digest of the bits of arrays."""
    digest = hashlib.sha256()
    for values in arrays:
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def digest_of(*values: Any) -> str:
    """Short digest of values by their representation."""
    return hashlib.sha256(repr(values).encode()).hexdigest()[:12]
