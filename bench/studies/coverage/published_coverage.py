"""Cases of the published report beside those of a run."""

from __future__ import annotations

import json

from bench.studies.provenance import results_folder
from bench.studies.report import ungrouped
from bench.studies.tasks import Record

FILE = "coverage.json"


def with_published(found: list[Record], sections: tuple[str, ...]) -> list[Record]:
    """Summaries of a run, and of the published cases that it leaves out, by section and case."""
    path = results_folder() / FILE
    known: list[Record] = []
    if path.exists():
        known = ungrouped(json.loads(path.read_text(encoding="utf-8"))["results"])
    ran = {(own["measure"], own["case"]) for own in found}
    kept = [own for own in known if (own["measure"], own["case"]) not in ran]
    together = [own for own in kept + found if own["measure"] in sections]
    return sorted(together, key=lambda own: (sections.index(own["measure"]), own["case"]))


def measured_at(found: list[Record]) -> str:
    """A sentence on the commits and seeds of cases.

    >>> one = {"case": "flat", "commit": "abc", "first_seed": 5, "last_seed": 9}
    >>> measured_at([one, one | {"case": "steep"}, one | {"case": "round", "last_seed": 7}])
    'Seeds 5 to 9, commit abc: flat, steep. Seeds 5 to 7, commit abc: round.'
    """
    runs: dict[str, list[str]] = {}
    for own in found:
        about = f"Seeds {own['first_seed']} to {own['last_seed']}, commit {own['commit']}"
        runs.setdefault(about, []).append(own["case"])
    return " ".join(f"{run}: {', '.join(dict.fromkeys(own))}." for run, own in runs.items())
