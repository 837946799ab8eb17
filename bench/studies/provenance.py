"""Where numbers come from: sources, versions, machine, commit."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from doseforest.base.versions import CLONE, PACKAGE, digest_of_files, in_clone, installed

PACKAGES = ("doseforest", "numpy", "scipy", "scikit-learn", "lightgbm", "econml", "xgboost-cpu")
# Floors that no fit of a forest depends on.
BESIDE_FITS = (
    *("baselines", "datasets", "evaluation", "files", "inference", "policy", "pricing"),
    *("report", "spark"),
)


def results_folder() -> Path:
    """Folder of whole studies' reports."""
    return CLONE / "bench" / "results" if in_clone() else Path("doseforest-results")


def work_folder() -> Path:
    """Folder of single fits' results, and of reports that leave something out."""
    return CLONE / "out" / "bench" if in_clone() else results_folder() / "parts"


@cache
def source_digest(also: tuple[str, ...] = ()) -> str:
    """Digest of the sources that fits depend on, the same as long as results cannot change.

    `also` names files of the other parts that a method is made of.
    """
    skipped = {PACKAGE / name for name in BESIDE_FITS}
    files = [path for path in PACKAGE.rglob("*.py") if skipped.isdisjoint(path.parents)]
    files += [source(name) for name in also]
    core = (CLONE / "cpp").iterdir() if in_clone() else PACKAGE.glob("_core*.so")
    return digest_of_files([*files, *core])


def source(name: str) -> Path:
    """A file of the bench, or of the library by its path in there."""
    return CLONE / name if name.startswith("bench/") else PACKAGE / name


def digest_of(*parts: Any) -> str:
    """Short digest of values by their representation."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def cpu_model() -> str:
    """Name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def commit() -> str:
    """The commit of the clone, marked when sources differ from it."""
    try:
        name = _git("describe", "--always")
        return name + ("-dirty" if _git("status", "--porcelain", "--", "src", "cpp") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    call = ["git", "-C", str(CLONE), *words]
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()


def provenance() -> dict[str, Any]:
    """Date, commit, sources, versions and machine of a report."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "sources": source_digest(),
        "machine": f"{cpu_model()}, {os.cpu_count()} cores",
        "versions": {
            "python": platform.python_version(),
            **{package: installed(package) for package in PACKAGES},
        },
    }
