"""Where numbers come from: golden answers, versions, machine, commit; and where they go."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.studies.result_keys import BENCH, digest_of, stored_keys
from doseforest.base.versions import installed

PACKAGES = ("doseforest", "numpy", "scipy", "scikit-learn", "lightgbm", "econml", "xgboost-cpu")
CLONE = BENCH.parent
OUT = Path("out", "bench")  # of the folder that a study is run in: reports and single fits


def results_folder() -> Path:
    """Folder of the published reports, in the clone."""
    return BENCH / "results"


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
    """Date, commit, golden answers, versions and machine of a report."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "answers": digest_of(dict(stored_keys())),
        "machine": f"{cpu_model()}, {os.cpu_count()} cores",
        "versions": {
            "python": platform.python_version(),
            **{package: installed(package) for package in PACKAGES},
        },
    }
