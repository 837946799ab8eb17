"""What all studies' reports share: the heading, verdicts, and where they are written."""

from __future__ import annotations

import csv
import os
import platform
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from accuracy_study.estimators import ROOT, installed, source_digest
from accuracy_study.tasks import Record
from engine import cpu_model

RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("doseforest", "numpy", "scipy", "scikit-learn", "lightgbm", "econml")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line that must hold; nothing holds or fails where nothing was measured."""

    holds: bool | None
    claim: str
    measured: str = ""

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "SKIP"}[self.holds]
        return f"{word}: {self.claim}; {self.measured or 'not measured in this run'}"


@dataclass(frozen=True, slots=True)
class Report:
    """Tables, verdicts, and the records that they were made of."""

    title: str
    parts: list[str]
    verdicts: list[Verdict]
    records: list[Record] = field(repr=False)

    def markdown(self, seconds: float) -> str:
        """Everything for people."""
        must_hold = "\n".join(f"- {verdict}" for verdict in self.verdicts)
        parts = [f"# {self.title}", heading(seconds), *self.parts, "## Must hold", must_hold]
        return "\n\n".join(parts) + "\n"

    def write(self, name: str, folder: Path, seconds: float) -> str:
        """Write the text, and the records as a table; return the text."""
        folder.mkdir(parents=True, exist_ok=True)
        text = self.markdown(seconds)
        (folder / f"{name}.md").write_text(text)
        if self.records:
            write_csv(self.records, folder / f"{name}.csv")
        return text


def heading(seconds: float) -> str:
    versions = ", ".join(f"{name} {installed(name)}" for name in PACKAGES)
    machine = f"{cpu_model()}, {os.cpu_count()} cores, python {platform.python_version()}"
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return (
        f"{date}, {seconds:.0f} s on top of what earlier runs left.\\\n"
        f"{machine}, {versions}.\\\n"
        f"Commit {commit()}, digest of the sources {source_digest()}."
    )


def commit() -> str:
    """The commit of the clone, marked when files differ from it."""
    call = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def write_csv(records: list[Record], path: Path) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
