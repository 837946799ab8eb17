"""The studies by name. To add one: a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.designs import JOINT_DESIGNS
from bench.studies import (
    ab_coverage,
    ablation,
    accuracy,
    adrf_figure,
    colangelo_lee,
    joint,
    large_fit,
    scaling,
    table1,
)
from bench.studies.coverage.coverage_study import CoverageStudy
from bench.studies.kept_results import commits_told, kept_records, marked, published_fits
from bench.studies.market.market_study import MarketplaceStudy
from bench.studies.provenance import commit, results_folder, work_folder
from bench.studies.qini.qini_study import QiniStudy
from bench.studies.real.real_study import RealStudy
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.store import Store
from bench.studies.study_methods import METHODS, SINGLE_METHODS
from bench.studies.study_settings import PUBLISHED, SIZES
from bench.studies.study_workers import Clock, run_tasks
from bench.studies.tasks import Record, Task

WITHOUT_SIZE = ("methods", "designs", "simulations")


@dataclass(frozen=True, slots=True)
class Study:
    """Fits that run in any order, and what is said about them."""

    about: str
    tasks: Callable[[Request], list[Task]]
    report: Callable[[list[Record], Request], Report]
    designs: tuple[str, ...]  # to choose from
    takes: tuple[str, ...] = (*WITHOUT_SIZE, "n")  # options of the command
    keeps: str = ""  # published file whose designs and rows stay where a run leaves them out
    untold: tuple[str, ...] = ()  # rows that its report does not have
    methods: tuple[str, ...] = SINGLE_METHODS  # to choose from

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Run what is missing; also say whether nothing was left out."""
        asked = self.tasks(request)
        absent = {task.method: METHODS[task.method].missing for task in asked}
        for name, packages in absent.items():
            if packages:
                clock.tell(
                    f"{METHODS[name].row} is left out, as {', '.join(packages)} is not installed: "
                    "pip install 'doseforest[baselines]'"
                )
        tasks = [task for task in asked if not absent[task.method]]
        known = published_fits(self.keeps, tasks) if self.keeps and not request.fresh else {}
        store = Store(work_folder())
        records, failed = run_tasks(
            tasks, store, request.processes, clock, fresh=request.fresh, known=known
        )
        complete = len(tasks) == len(asked) and not failed
        if not self.keeps:
            return self.report(records, request), complete
        together = marked(records)
        usual = {task.design for task in self.tasks(request.all_parts)}
        if request.only_parts and usual.issuperset(task.design for task in tasks):
            together += kept_records(self.keeps, together)
            request = request.all_parts
            rows = [row for method in METHODS.values() for row in method.rows]
            order = {row: place for place, row in enumerate(rows)}
            together.sort(key=lambda own: (self.designs.index(own["design"]), order[own["row"]]))
        report = self.report(together, request)
        parts = [*report.parts, *commits_told(together, commit())]
        return replace(report, parts=parts, merged=self._has_all(together, request)), complete

    def _has_all(self, records: list[Record], request: Request) -> bool:
        """Whether records may take the place of the published ones: a whole table, and no more."""
        wanted = {
            (task.design, row)
            for task in self.tasks(request)
            for row in METHODS[task.method].rows
            if row not in self.untold
        }
        found = {(own["design"], own["row"]) for own in records if own["row"] not in self.untold}
        return request.whole and found == wanted


@dataclass(frozen=True, slots=True)
class Measurement:
    """Something that is measured by itself, without fits that are shared with others."""

    about: str
    measure: Callable[[Request, Clock], Report]
    takes: tuple[str, ...] = ()
    designs: tuple[str, ...] = ()

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure it."""
        return self.measure(request, clock), True


AnyStudy = Study | Measurement | QiniStudy | MarketplaceStudy | CoverageStudy | RealStudy

STUDIES: dict[str, AnyStudy] = {
    "table1": Study(
        "Table 1 of the GCF paper, every method",
        table1.tasks,
        table1.report,
        table1.COLUMNS,
        keeps="table1.json",
    ),
    "adrf": Study(
        "average curves on the paper's designs",
        adrf_figure.tasks,
        adrf_figure.report,
        PUBLISHED,
        keeps="adrf.json",
        untold=adrf_figure.UNTOLD,
    ),
    "ablation": Study(
        "each part of the default switched off",
        ablation.tasks,
        ablation.report,
        tuple(SIZES),
        keeps="ablation.json",
        methods=ablation.METHODS,
    ),
    "accuracy": Study(
        "errors on designs with a known truth",
        accuracy.tasks,
        accuracy.report,
        accuracy.COLUMNS,
        takes=WITHOUT_SIZE,
        keeps="accuracy.json",
    ),
    "colangelo-lee": Study(
        "bias and error of the average curve",
        colangelo_lee.tasks,
        colangelo_lee.report,
        (),
        takes=("methods", "simulations"),
    ),
    "scaling": Study(
        "error against the number of units",
        scaling.tasks,
        scaling.report,
        tuple(SIZES),
        keeps="scaling.json",
    ),
    "joint": Study(
        "doses of several components",
        joint.tasks,
        joint.report,
        tuple(JOINT_DESIGNS),
        takes=WITHOUT_SIZE,
        methods=(*SINGLE_METHODS, "apart"),
    ),
    "large-fit": Measurement("time and memory of a fit with 100,000 units", large_fit.run),
    "ab": Measurement(
        "false alarms and coverage of A/B tests in the marketplace",
        ab_coverage.run,
        takes=("simulations",),
    ),
    "marketplace": MarketplaceStudy("orders that policies bring at the same budget"),
    "qini": QiniStudy("Table 2 of the GCF paper, and what Qini scores are worth"),
    "coverage": CoverageStudy("whether intervals cover, and how wide they are"),
    "real": RealStudy("real data beside published numbers"),
}


def run_study(name: str, request: Request, json_file: Path | None = None) -> tuple[str, bool]:
    """Run a study and write its report; return its text and whether nothing was left out."""
    clock = Clock(verbose=request.verbose)
    report, complete = STUDIES[name].run(request, clock)
    publishes = complete and (request.whole or report.merged)
    folder = results_folder() if publishes else work_folder()
    file = name.replace("-", "_")
    text = report.write(file, folder, clock.seconds, json_file)
    clock.tell(f"wrote {folder / file}.md and .json" + (f", {json_file}" if json_file else ""))
    return text, complete
