"""Data sets of a published report beside those of a run: long studies take several sittings."""

from __future__ import annotations

import json
from collections.abc import Collection

from doseforest.studies.provenance import commit, results_folder
from doseforest.studies.report import ungrouped
from doseforest.studies.tasks import Record, design_digest


def marked(records: list[Record]) -> list[Record]:
    """The records of a run, with its commit and what their data sets are drawn from."""
    name = commit()
    return [own | {"commit": name, "drawn_from": design_digest(own["design"])} for own in records]


def kept_records(file: str, ran: Collection[str]) -> list[Record]:
    """Published records of the data sets that a run leaves out.

    Those whose design has changed since, or is not known, are not among them.
    """
    path = results_folder() / file
    if not path.exists():
        return []
    published = json.loads(path.read_text(encoding="utf-8"))
    records = ungrouped(published["results"])
    return [
        {"commit": published["commit"], **own}
        for own in records
        if own["design"] not in ran and own.get("drawn_from") == design_digest(own["design"])
    ]


def commits_told(records: list[Record]) -> list[str]:
    """A sentence on which data sets were reported at which commit, where these are several.

    Examples
    --------
    >>> commits_told([{"design": "steps", "commit": "abc"}, {"design": "waves", "commit": "abd"}])
    ['Reported at commit abc: steps. At commit abd: waves.']
    >>> commits_told([{"design": "steps", "commit": "abc"}])
    []
    """
    designs: dict[str, list[str]] = {}
    for own in records:
        designs.setdefault(own["commit"], []).append(own["design"])
    if len(designs) < 2:
        return []
    texts = [f"commit {name}: {', '.join(dict.fromkeys(own))}." for name, own in designs.items()]
    return ["Reported at " + " At ".join(texts)]
