"""The study "real": its sections one after the other, those that are done already from disk."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.golden import require_stored_answers
from bench.real_data import MissingDataError, data_folder, missing_files
from bench.real_data.data_folder import load_pandas, missing_message
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_sections import SECTIONS
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.result_keys import result_key, source
from bench.studies.study_methods import BOOSTERS
from bench.studies.study_workers import Clock
from bench.studies.tasks import Record
from doseforest.base.atomic_files import write_text

SHARED = ("real_effort.py", "held_out.py", "plain.py", "real_section.py")
NOTE = (
    "Ours beside what was published about the same data. Standard errors are in brackets; "
    "intervals are 1.96 of them on either side. Units' curves have none: their means in groups are "
    "beside estimates that need no forest. R-risk: mean square of what a curve's shape leaves of "
    "the outcome, less is better; only differences mean something."
)


@dataclass(frozen=True, slots=True)
class RealStudy:
    """Sections of real data, each kept on disk once it is measured."""

    about: str
    uses: tuple[str, ...]  # parts of the algorithm whose golden answers its results rest on
    effort: RealEffort = field(default_factory=RealEffort)

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure what is missing; also say whether nothing was left out."""
        asked = list(request.sections or SECTIONS)
        names = _with_data(asked, clock)
        load_pandas()
        require_stored_answers(self.uses, request.out, clock.tell)
        effort = replace(
            self.effort,
            n_rows=request.n or self.effort.n_rows,
            seeds=tuple(request.seeds(len(self.effort.seeds))),
            n_jobs=request.processes,
        )
        done: dict[str, dict[str, Any]] = {}
        for name in names:
            path = self.section_file(name, effort, request.out)
            if not request.fresh and path.exists():
                clock.mention(f"{name} is done already")
                done[name] = json.loads(path.read_text(encoding="utf-8"))
                continue
            clock.tell(f"{name} begins")
            try:
                done[name] = _measured(name, effort)
            except Exception as error:  # the other sections are worth having
                clock.tell(f"{name} failed: {error!r}")
                continue
            write_text(path, json.dumps(done[name]) + "\n")
        return _report(done, effort), len(done) == len(asked)

    def section_file(self, name: str, effort: RealEffort, out: Path) -> Path:
        """Where the results of a section are kept, named by all that they depend on."""
        module = f"{name.replace('-', '_')}.py"
        files = [source(f"bench/studies/real/{file}") for file in (module, *SHARED)]
        files += [source(f"bench/real_data/{file}") for file in ("data_folder.py", "dose_rows.py")]
        data = [_digest(data_folder() / file) for file in SECTIONS[name].files]
        others = effort.state, data
        state = result_key(self.uses, packages=BOOSTERS, files=files, others=others)
        return out / "real" / f"{name}-{state}.json"


def _with_data(asked: list[str], clock: Clock) -> list[str]:
    """Sections whose files are there; the others are told of, before any work is done."""
    absent = {name: missing_files(SECTIONS[name].files) for name in asked}
    told = [f"{name}: {missing_message(file)}" for name in asked for file in absent[name]]
    names = [name for name in asked if not absent[name]]
    if not names:
        raise MissingDataError("\n".join(told))
    for text in told:
        clock.tell(f"{text} This section is left out.")
    return names


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _measured(name: str, effort: RealEffort) -> dict[str, Any]:
    start = time.perf_counter()
    records = [{"design": name, **record} for record in SECTIONS[name].measure(effort)]
    return {"seconds": round(time.perf_counter() - start, 1), "records": records}


def _report(done: dict[str, dict[str, Any]], effort: RealEffort) -> Report:
    parts = [f"{NOTE} Settings: {effort.settings_text()}."]
    verdicts: list[Verdict] = []
    records: list[Record] = []
    for name, found in done.items():
        section, own = SECTIONS[name], found["records"]
        parts += [f"## {section.title}", *section.parts(own)]
        parts.append(f"Measured in {found['seconds']:.0f} s.")
        verdicts += section.verdicts(own)
        records += own
    return Report("Real data", parts, verdicts, records)
