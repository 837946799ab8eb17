"""The studies by name. To add one: a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.designs import JOINT_DESIGNS
from bench.golden import require_stored_answers
from bench.real_data import require_files
from bench.real_data.data_folder import load_pandas
from bench.studies import (
    ab_coverage,
    ablation,
    accuracy,
    adrf_figure,
    colangelo_lee,
    joint,
    large_fit,
    published_curves,
    scaling,
    table1,
    world_errors,
)
from bench.studies.coverage.coverage_study import CoverageStudy
from bench.studies.kept_results import commits_told, kept_records, marked, published_fits
from bench.studies.market.market_study import MarketplaceStudy
from bench.studies.provenance import commit, results_folder
from bench.studies.qini.qini_study import QiniStudy
from bench.studies.real.real_study import RealStudy
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.result_keys import FOREST
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
    other_designs: bool = False  # whether it takes any other one, too
    takes: tuple[str, ...] = (*WITHOUT_SIZE, "n")  # options of the command
    keeps: str = ""  # published file whose designs and rows stay where a run leaves them out
    untold: tuple[str, ...] = ()  # rows that its report does not have
    methods: tuple[str, ...] = SINGLE_METHODS  # to choose from
    files: tuple[str, ...] = ()  # of the data folder

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Run what is missing; also say whether nothing was left out."""
        if self.files:
            require_files(self.files)
            load_pandas()
        asked = self.tasks(request)
        absent = {task.method: METHODS[task.method].missing for task in asked}
        for name, packages in absent.items():
            if packages:
                clock.tell(
                    f"{METHODS[name].row} is left out, as {', '.join(packages)} is not installed: "
                    "pip install 'doseforest[baselines]'"
                )
        tasks = [task for task in asked if not absent[task.method]]
        uses = {part for task in tasks for part in METHODS[task.method].uses}
        require_stored_answers(uses, request.out, clock.tell)
        known = published_fits(self.keeps, tasks) if self.keeps and not request.fresh else {}
        store = Store(request.out)
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
    uses: tuple[str, ...]  # parts of the algorithm that it measures
    takes: tuple[str, ...] = ()
    designs: tuple[str, ...] = ()

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure it."""
        require_stored_answers(self.uses, request.out, clock.tell)
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
        other_designs=True,
        keeps="ablation.json",
        methods=ablation.METHODS,
    ),
    "accuracy": Study(
        "errors on designs with a known truth",
        accuracy.tasks,
        accuracy.report,
        accuracy.COLUMNS,
        other_designs=True,
        takes=WITHOUT_SIZE,
        keeps="accuracy.json",
    ),
    "worlds": Study(
        "designs that are not ours, beside what a user would reach for",
        world_errors.tasks,
        world_errors.report,
        world_errors.COLUMNS,
        other_designs=True,
        keeps="worlds.json",
    ),
    "ihdp": Study(
        "published splits of infants with a continuous dose, beside GIKS and its peers",
        published_curves.ihdp_tasks,
        published_curves.ihdp_report,
        published_curves.IHDP_DESIGNS,
        takes=("methods", "simulations"),
        keeps="ihdp.json",
        methods=published_curves.CHOICE,
        files=published_curves.IHDP_FILES,
    ),
    "cadr": Study(
        "published draws of three sets with held-out curves, beside nine methods",
        published_curves.cadr_tasks,
        published_curves.cadr_report,
        published_curves.CADR_DESIGNS,
        takes=WITHOUT_SIZE,
        keeps="cadr.json",
        methods=published_curves.CHOICE,
        files=published_curves.CADR_FILES,
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
        other_designs=True,
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
    "large-fit": Measurement("time and memory of a fit with 100,000 units", large_fit.run, FOREST),
    "ab": Measurement(
        "false alarms and coverage of A/B tests in the marketplace",
        ab_coverage.run,
        (),
        takes=("simulations",),
    ),
    "marketplace": MarketplaceStudy(
        "orders that policies bring at the same budget", (*FOREST, "linear_forest")
    ),
    "qini": QiniStudy(
        "Table 2 of the GCF paper, and what Qini scores are worth",
        (*FOREST, "linear_forest", "regressions", "comparisons"),
    ),
    "coverage": CoverageStudy("whether intervals cover, and how wide they are"),
    "real": RealStudy(
        "real data beside published numbers", (*FOREST, "inference", "comparisons", "reference")
    ),
}


def run_study(name: str, request: Request, json_file: Path | None = None) -> tuple[str, bool]:
    """Run a study and write its report; return its text and whether nothing was left out.

    The report goes to the folder of the request and, where it is to be published and is whole, to
    the published ones.
    """
    clock = Clock(verbose=request.verbose)
    report, complete = STUDIES[name].run(request, clock)
    whole = complete and (request.whole or report.merged)
    folders = [request.out, *([results_folder()] if request.publish and whole else [])]
    file = name.replace("-", "_")
    text = report.write(file, folders, clock.seconds, json_file)
    places = ", ".join(f"{folder / file}.md and .json" for folder in folders)
    clock.tell(f"wrote {places}" + (f", {json_file}" if json_file else ""))
    if request.publish and not whole:
        clock.tell("not published: the report leaves out what the published one has")
    return text, complete and (whole or not request.publish)
