"""What all studies' reports share: the heading, verdicts, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.studies.provenance import provenance
from bench.studies.tasks import Record
from doseforest.base.atomic_files import write_text

# What records of one group share.
ABOUT = ("design", "n", "method", "row", "measure", "case", "commit", "drawn_from", "state")
FIT = ("method", "design", "n", "case", "seed", "measure")  # what tells fits apart
LEFT_OUT = ("data",)  # of the store, not of the results
SIGNIFICANT_DIGITS = 5

Picture = Callable[[Path], None]  # draws into the file of a path


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
    pictures: Mapping[str, Picture] = field(default_factory=dict)  # by file name
    merged: bool = False  # with what was published of parts that the run leaves out

    def markdown(self, about: Mapping[str, Any]) -> str:
        """Everything for people."""
        must_hold = "\n".join(f"- {verdict}" for verdict in self.verdicts)
        parts = [f"# {self.title}", heading(about), *self.parts]
        if self.verdicts:
            parts += ["## Must hold", must_hold]
        return "\n\n".join(parts) + "\n"

    def as_json(self, about: Mapping[str, Any]) -> str:
        """Everything for programs: a line for each group of records."""
        head = {"title": self.title, **about}
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        verdicts = [asdict(verdict) for verdict in self.verdicts]
        lines.append(f'"verdicts": {_list_of_lines(verdicts)}')
        lines.append(f'"results": {_list_of_lines(grouped(self.records))}')
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def write(
        self, name: str, folders: Sequence[Path], seconds: float, json_file: Path | None = None
    ) -> str:
        """Write text, numbers and pictures to each folder; return the text."""
        about = {
            **provenance(),
            "seconds": round(seconds, 1),
            "fit_seconds": round(fit_seconds_of(self.records)),
            "seeds": seeds_of(self.records),
        }
        text = self.markdown(about)
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / f"{name}.md", text)
            write_text(folder / f"{name}.json", self.as_json(about))
            for file, draw in self.pictures.items():
                draw(folder / file)
        if json_file is not None:
            write_text(json_file, self.as_json(about))
        return text


def heading(about: Mapping[str, Any]) -> str:
    """Where and when the numbers were measured."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    seeds, fits = about["seeds"], about.get("fit_seconds", 0)
    return (
        f"{about['date']}, {about['seconds']:.0f} s on top of what earlier runs left"
        + (f"; {fits:,} s of fits in all.\\\n" if fits else ".\\\n")
        + f"{about['machine']}, {versions}.\\\n"
        f"Commit {about['commit']}, digest of the golden answers {about['answers']}"
        + (f", seeds {seeds[0]} to {seeds[1]}." if seeds else ".")
    )


def seeds_of(records: list[Record]) -> list[int]:
    """The first and the last seed."""
    found = [record["seed"] for record in records if "seed" in record]
    found += [seed for record in records for seed in record.get("seeds", [])]
    return [min(found), max(found)] if found else []


def fit_seconds_of(records: list[Record]) -> float:
    """Seconds of all fits; rows of one fit count once.

    Examples
    --------
    >>> fit = {"design": "steps", "method": "doseforest", "seed": 0, "fit_seconds": 2.0}
    >>> fit_seconds_of([{**fit, "row": "one"}, {**fit, "row": "two"}, {"row": "three"}])
    2.0
    """
    timed = [record for record in records if "fit_seconds" in record and "method" in record]
    fits = {tuple(own.get(name) for name in FIT): own["fit_seconds"] for own in timed}
    return float(sum(fits.values()))


def grouped(records: list[Record]) -> list[dict[str, Any]]:
    """Records that share what they are about as lists of numbers by seed.

    Examples
    --------
    >>> common = {"design": "steps", "row": "zero"}
    >>> grouped([{**common, "seed": 0, "rms": 1.23456789}, {**common, "seed": 1, "rms": 2.0}])
    [{'design': 'steps', 'row': 'zero', 'seed': [0, 1], 'rms': [1.2346, 2.0]}]
    """
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for record in records:
        shared = {name: record[name] for name in ABOUT if name in record}
        own = groups.setdefault(tuple(shared.values()), dict(shared))
        for name, value in record.items():
            if name not in ABOUT and name not in LEFT_OUT:
                own.setdefault(name, []).append(_rounded(value))
    return list(groups.values())


def ungrouped(groups: list[dict[str, Any]]) -> list[Record]:
    """The records of groups, whose numbers are lists of the same length.

    Examples
    --------
    >>> ungrouped([{"design": "steps", "seed": [0, 1], "rms": [1.2, 2.0]}])
    [{'design': 'steps', 'seed': 0, 'rms': 1.2}, {'design': 'steps', 'seed': 1, 'rms': 2.0}]
    """
    records = []
    for group in groups:
        shared = {name: value for name, value in group.items() if name in ABOUT}
        lists = {name: value for name, value in group.items() if name not in ABOUT}
        rows = zip(*lists.values(), strict=True) if lists else [()]  # one, with nothing but names
        records += [shared | dict(zip(lists, row, strict=True)) for row in rows]
    return records


def _rounded(value: Any) -> Any:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def _list_of_lines(values: list[Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, values)) + "\n]" if values else "[]"
