"""What a run leaves out of a published report stays in it: long studies take several sittings."""

from __future__ import annotations

import json
from collections import Counter

from doseforest.studies.provenance import commit, results_folder
from doseforest.studies.report import ungrouped
from doseforest.studies.tasks import Record, design_digest


def marked(records: list[Record]) -> list[Record]:
    """The records of a run, with its commit and what their data sets are drawn from."""
    name = commit()
    return [own | {"commit": name, "drawn_from": design_digest(own["design"])} for own in records]


def kept_records(file: str, ran: list[Record]) -> list[Record]:
    """Published records of the rows and data sets that a run leaves out.

    Those whose design has changed since, or is not known, are not among them. A method that has
    changed must be run anew: its published rows stay as well as those of any other.
    """
    anew = {(own["design"], own["row"]) for own in ran}
    path = results_folder() / file
    if not path.exists():
        return []
    published = json.loads(path.read_text(encoding="utf-8"))
    records = ungrouped(published["results"])
    return [
        {"commit": published["commit"], **own}
        for own in records
        if (own["design"], own["row"]) not in anew
        and own.get("drawn_from") == design_digest(own["design"])
    ]


def commits_told(records: list[Record], now: str) -> list[str]:
    """A sentence on what was reported at which commit, unless all of it is of `now`.

    Examples
    --------
    >>> zero = {"design": "steps", "row": "zero", "commit": "abc"}
    >>> commits_told([zero, {**zero, "design": "waves", "commit": "abd"}], "abd")
    ['Reported at commit abc: steps. At commit abd: waves.']
    >>> commits_told([zero, {**zero, "row": "one", "commit": "abd"}], "abd")
    ['Reported at commit abc: steps (zero). At commit abd: steps (one).']
    >>> commits_told([zero], "abd"), commits_told([zero], "abc")
    (['Reported at commit abc: steps.'], [])
    """
    rows: dict[str, dict[str, list[str]]] = {}  # by commit and design
    for own in records:
        named = rows.setdefault(own["commit"], {}).setdefault(own["design"], [])
        if own["row"] not in named:
            named.append(own["row"])
    if set(rows) <= {now}:
        return []
    times = Counter(design for designs in rows.values() for design in designs)
    texts = []
    for name, designs in rows.items():
        told: dict[str, list[str]] = {}  # designs by what is said of their rows
        for design, named in designs.items():
            which = f" ({', '.join(named)})" if times[design] > 1 else ""
            told.setdefault(which, []).append(design)
        parts = "; ".join(", ".join(own) + which for which, own in told.items())
        texts.append(f"commit {name}: {parts}.")
    return ["Reported at " + " At ".join(texts)]
