"""Results on disk: a line for each row of each fit, kept until what it depends on changes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from bench.studies.study_methods import METHODS, state
from bench.studies.tasks import Record, Task, fingerprint

TASK_FIELDS = ("method", "design", "n", "seed", "measure")


class Store:
    """A folder with one file for each method; lines are only ever added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, records: list[Record]) -> None:
        """Append the rows of one fit."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        # Begun on a new line, in case a run was killed in the middle of one; in a single write, so
        # that lines of two runs at a time do not mix.
        with self._path(records[0]["method"]).open("ab", buffering=0) as file:
            file.write(f"\n{lines}".encode())

    def find(self, tasks: Iterable[Task]) -> dict[Task, list[Record]]:
        """Records of those tasks that are done and still up to date."""
        wanted = list(tasks)
        methods = dict.fromkeys(task.method for task in wanted)
        found = whole_fits((own for method in methods for own in self._read(method)), wanted)
        return {
            task: records
            for task, records in found.items()
            if all(record["data"] == fingerprint(task) for record in records)
        }

    def _read(self, method: str) -> list[Record]:
        path = self._path(method)
        if not path.exists():
            return []
        found = map(_record, path.read_text(encoding="utf-8").splitlines())
        return [record for record in found if record is not None]

    def _path(self, method: str) -> Path:
        return self.folder / f"{method}.jsonl"


def whole_fits(records: Iterable[Record], tasks: Iterable[Task]) -> dict[Task, list[Record]]:
    """Records of those tasks that have all rows of their method, of the state that it is in now."""
    rows: dict[Task, dict[str, Record]] = {task: {} for task in tasks}
    for own in records:
        task = Task(*(own[name] for name in TASK_FIELDS))
        if task in rows and own["state"] == state(task.method, task.measure):
            rows[task][own["row"]] = own  # the last one counts
    return {
        task: list(own.values())
        for task, own in rows.items()
        if set(own) == set(METHODS[task.method].rows)
    }


def _record(line: str) -> Record | None:
    """One line of a file; nothing where it is empty, or its writer was stopped in the middle."""
    try:
        record: Record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record
