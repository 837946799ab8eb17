"""The study "coverage": draws of all sections over processes, each kept on disk once it is made."""

from __future__ import annotations

import json
import warnings
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from bench.golden import require_stored_answers
from bench.studies.coverage import (
    coverage_and_positivity,
    coverage_of_averages,
    coverage_of_shapes,
    coverage_of_units,
)
from bench.studies.coverage.coverage_section import CoverageSection
from bench.studies.coverage.published_coverage import measured_at, with_published
from bench.studies.provenance import commit
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.result_keys import digest_of_draw, result_key, source
from bench.studies.study_workers import Clock, worker_pool
from bench.studies.tasks import Record
from doseforest.base.versions import installed

SECTIONS: dict[str, CoverageSection] = {
    "units": coverage_of_units.SECTION,
    "average": coverage_of_averages.CURVE_SECTION,
    "changes": coverage_of_averages.CHANGE_SECTION,
    "positivity": coverage_and_positivity.SECTION,
    "shape": coverage_of_shapes.SECTION,
}
PACKAGES = ("numpy", "scipy", "scikit-learn", "lightgbm", "econml")
STUDY, FOLDER = "bench/studies/coverage", "coverage"  # its files, and of the folder of results
NO_DRAWS = ("coverage_study.py", "published_coverage.py")  # files of the study that change no draw


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of one case of a section."""

    section: str  # of SECTIONS
    case: str
    seed: int

    def __str__(self) -> str:
        return f"{self.section}, {self.case}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class CoverageStudy:
    """Sections of many draws, which take too long for one sitting.

    Cases that a run leaves out are those of the published report, each with the commit that it was
    measured at, as long as the run has all draws of its own cases.
    """

    about: str

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Make the draws that are missing; also say whether nothing was left out."""
        asked = draws_of(request)
        missing = {own.case: absent(own) for own in asked}
        for case, packages in missing.items():
            if packages:
                clock.tell(f"{case} is left out, as {', '.join(packages)} is not installed.")
        draws = [own for own in asked if not missing[own.case]]
        uses = {part for own in draws for part in SECTIONS[own.section].uses}
        require_stored_answers(uses, request.out, clock.tell)
        done = {} if request.fresh else kept(draws, request.out)
        clock.mention(f"{len(done)} of {len(draws)} draws are made already")
        make([own for own in draws if own not in done], request, clock, done)
        found = summarised([done[own] for own in draws if own in done])
        complete = all(own in done for own in asked)
        merged = complete and request.simulations is None and request.seed is None
        if merged:
            found = with_published(found, tuple(SECTIONS))
        return report(found, merged=merged), complete


def draws_of(request: Request) -> list[Draw]:
    """Seeds first, so that a run that is cut short has something of every case."""
    names = request.sections or tuple(SECTIONS)
    cases = [
        (name, case, request.simulations or draws)
        for name in names
        for case, draws in SECTIONS[name].draws.items()
        if all(word in case.split() for text in request.designs or () for word in text.split())
    ]
    seeds = request.seeds(max((draws for *_, draws in cases), default=0))
    return [
        Draw(name, case, seed)
        for place, seed in enumerate(seeds)
        for name, case, draws in cases
        if place < draws
    ]


def absent(draw: Draw) -> list[str]:
    """Packages that a draw needs and that are not installed."""
    needed = SECTIONS[draw.section].packages(draw.case)
    return [name for name in needed if installed(name) == "not installed"]


def make(draws: list[Draw], request: Request, clock: Clock, done: dict[Draw, Record]) -> None:
    """Make draws, one thread each, and keep each of them at once."""
    if not draws:
        return
    paths = {own.section: store_file(own.section, request.out) for own in draws}
    (request.out / FOLDER).mkdir(parents=True, exist_ok=True)
    with worker_pool(request.processes) as pool:
        under_way = {pool.submit(measured, own): own for own in draws}
        try:
            for count, future in enumerate(as_completed(under_way), start=1):
                own, error = under_way[future], future.exception()
                if error is not None:
                    clock.tell(f"{own} failed: {error!r}")
                    continue
                done[own] = future.result()
                with paths[own.section].open(
                    "ab", buffering=0
                ) as file:  # one write: runs do not mix lines
                    file.write(f"\n{json.dumps(done[own])}\n".encode())
                clock.mention(f"{count}/{len(draws)}: {own}")
        finally:
            pool.shutdown(cancel_futures=True)


def measured(draw: Draw) -> Record:
    """Measure one draw."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = SECTIONS[draw.section].measure(draw.case, draw.seed)
    return {"section": draw.section, "case": draw.case, "seed": draw.seed, **found}


def store_file(section: str, out: Path) -> Path:
    """Where draws of a section are kept, named by all that they depend on."""
    own = SECTIONS[section]
    files = [path for path in source(STUDY).glob("*.py") if path.name not in NO_DRAWS]
    drawn_from = [digest_of_draw(design) for design in own.designs]
    state = result_key(own.uses, packages=PACKAGES, files=files, others=drawn_from)
    return out / FOLDER / f"{section}-{state}.jsonl"


def kept(draws: list[Draw], out: Path) -> dict[Draw, Record]:
    """Records of those draws that are made already."""
    wanted = set(draws)
    found = {}
    for section in {own.section for own in draws}:
        path = store_file(section, out)
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:  # empty, or its writer was stopped in the middle
                continue
            own = Draw(record["section"], record["case"], record["seed"])
            if own in wanted:
                found[own] = record
    return found


def summarised(records: list[Record]) -> list[Record]:
    """What the draws of each case amount to, with the commit and the seeds."""
    found: list[Record] = []
    for name, section in SECTIONS.items():
        own = [record for record in records if record["section"] == name]
        for one in section.summary(own):
            seeds = [record["seed"] for record in own if record["case"] == one["case"]]
            about = {"commit": commit(), "first_seed": min(seeds), "last_seed": max(seeds)}
            found.append({"measure": name, **one, **about})
    return found


def report(summaries: list[Record], *, merged: bool = False) -> Report:
    """Tables and bars of the sections that have draws."""
    parts: list[str] = []
    verdicts: list[Verdict] = []
    for name, section in SECTIONS.items():
        own = [one for one in summaries if one["measure"] == name]
        if own:
            parts += [f"## {section.title}", *section.parts(own), measured_at(own)]
            verdicts += section.verdicts(own)
    return Report("Coverage of intervals", parts, verdicts, summaries, merged=merged)
