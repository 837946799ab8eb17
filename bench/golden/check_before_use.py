"""Stored answers speak for the code only if the code gives them: checked once for each version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import doseforest._core
from bench.golden.answers import FILE, compare, read_answers
from bench.golden.fits import FITS, run
from doseforest.base.atomic_files import write_text
from doseforest.base.versions import PACKAGE, installed

VERSIONS = ("numpy", "scipy", "scikit-learn", "lightgbm")
ABOVE_FITS = ("pricing", "spark", "report")  # floors that no golden fit has
PASSED = "golden_fits.json"  # in the folder of results


class ChangedAnswersError(ValueError):
    """The code does not give the answers that results are kept under."""


def fits_of(parts: Iterable[str]) -> list[str]:
    """Names of the golden fits that cover any of the parts.

    Examples
    --------
    >>> fits_of(["paper_defaults", "comparisons"])
    ['paper, all defaults', 'comparisons']
    """
    asked = set(parts)
    if unknown := asked - {part for fit in FITS.values() for part in fit.parts}:
        raise ValueError(
            f"The 'parts' parameter must name parts of `bench.golden`. Got {sorted(unknown)} "
            "instead; `python -m bench.golden keys` prints them."
        )
    return [name for name, fit in FITS.items() if not asked.isdisjoint(fit.parts)]


@cache
def code_stamp() -> str:
    """Digest of the code that runs, its golden fits and packages."""
    skipped = {PACKAGE / name for name in ABOVE_FITS}
    files = [own for own in PACKAGE.rglob("*.py") if skipped.isdisjoint(own.parents)]
    files += [Path(doseforest._core.__file__), FILE, *FILE.parent.glob("*.py")]
    digest = hashlib.sha256(repr([*map(installed, VERSIONS)]).encode())
    for path in sorted(files):
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def require_stored_answers(
    parts: Iterable[str], folder: Path, tell: Callable[[str], None] = print
) -> None:
    """Run the golden fits of parts, unless this very code has passed them before.

    Parameters
    ----------
    parts : names of parts of the algorithm
    folder : Path
        Keeps which fits the code has passed.
    tell : function of a line of text
        Hears of fits that are run.

    Raises
    ------
    ChangedAnswersError
        Where a fit does not give its stored answers.
    """
    path, stamp = folder / PASSED, code_stamp()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    passed = set(kept["fits"]) if kept.get("stamp") == stamp else set()
    missing = [name for name in fits_of(parts) if name not in passed]
    if not missing:
        return
    tell(f"{len(missing)} golden fits first: results are kept under their answers")
    stored = read_answers()
    found = {name: compare(name, run(name), stored) for name in missing}
    passed |= {name for name, own in found.items() if own.holds}
    write_text(path, json.dumps({"stamp": stamp, "fits": sorted(passed)}) + "\n")
    if changed := [name for name, own in found.items() if not own.holds]:
        raise ChangedAnswersError(
            "This code does not give the stored golden answers, under which results are kept: "
            + "; ".join(f"{name}: {found[name]}" for name in changed)
            + ". If the change is meant, say why in the changelog and store the new ones with: "
            + "python -m bench.golden write "
            + " ".join(f"{name!r}" for name in changed)
        )
