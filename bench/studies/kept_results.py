"""What a run leaves out of a published report stays in it: long studies take several sittings."""

from __future__ import annotations

import json
from collections.abc import Iterable

from bench.studies.provenance import commit, results_folder
from bench.studies.report import ungrouped
from bench.studies.store import whole_fits
from bench.studies.tasks import Record, Task, design_digest


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
    return [own for own in published_records(file) if (own["design"], own["row"]) not in anew]


def published_fits(file: str, tasks: Iterable[Task]) -> dict[Task, list[Record]]:
    """Published records of tasks, where nothing has changed that they depend on.

    More draws of a data set then take those fits alone that are not published yet.
    """
    told = (own for own in published_records(file) if "state" in own)
    return whole_fits(told, tasks)


def published_records(file: str) -> list[Record]:
    """Records of a published report whose data sets are drawn as then."""
    path = results_folder() / file
    if not path.exists():
        return []
    published = json.loads(path.read_text(encoding="utf-8"))
    return [
        {"commit": published["commit"], **own}
        for own in ungrouped(published["results"])
        if own.get("drawn_from") == design_digest(own["design"])
    ]


def commits_told(records: list[Record], now: str) -> list[str]:
    """A sentence on what was reported at which commit, unless all of it is of `now`.

    Of a design with several commits rows are named, but for those of the commit with the most.

    Examples
    --------
    >>> zero = {"design": "steps", "row": "zero", "commit": "abc"}
    >>> commits_told([zero, {**zero, "design": "waves", "commit": "abd"}], "abd")
    ['Reported at commit abc: steps. At commit abd: waves.']
    >>> one, two = {**zero, "row": "one"}, {**zero, "row": "two", "commit": "abd"}
    >>> commits_told([zero, one, two], "abd")
    ['Reported at commit abc: steps (other rows). At commit abd: steps (two).']
    >>> commits_told([zero], "abd"), commits_told([zero], "abc")
    (['Reported at commit abc: steps.'], [])
    """
    rows: dict[str, dict[str, list[str]]] = {}  # by design and commit
    for own in records:
        named = rows.setdefault(own["design"], {}).setdefault(own["commit"], [])
        if own["row"] not in named:
            named.append(own["row"])
    told: dict[str, dict[str, list[str]]] = {}  # designs by commit and what is said of their rows
    for design, commits in rows.items():
        most = max(commits, key=lambda name: len(commits[name]))
        for name, named in commits.items():
            which = " (other rows)" if name == most else f" ({', '.join(named)})"
            which = which if len(commits) > 1 else ""
            told.setdefault(name, {}).setdefault(which, []).append(design)
    if set(told) <= {now}:
        return []
    texts = [
        f"commit {name}: " + "; ".join(", ".join(own) + which for which, own in parts.items())
        for name, parts in told.items()
    ]
    return ["Reported at " + ". At ".join(texts) + "."]
