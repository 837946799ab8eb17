"""Runs the parts of the study that are not on disk yet, and reports."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.designs import DISCOUNT_DESIGNS
from bench.real_data import data_folder, missing_files
from bench.real_data.data_folder import missing_message
from bench.studies.provenance import digest_of, installed, source_digest, work_folder
from bench.studies.qini import qini_experiment, qini_trials
from bench.studies.qini.qini_models import QiniEffort
from bench.studies.qini.qini_tables import report
from bench.studies.qini.qini_trials import TRIALS
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.study_methods import BOOSTERS
from bench.studies.study_workers import Clock
from doseforest.base.atomic_files import write_text
from doseforest.base.progress import ProgressBar

SOURCES = (
    *(f"bench/studies/qini/qini_{name}.py" for name in ("models", "experiment", "trials")),
    *(f"evaluation/{name}.py" for name in ("dose_scores", "estimates", "predicted_curves")),
    *(
        f"evaluation/qini/{name}.py"
        for name in (
            *("dose_arms", "budgeted_qini", "qini_curve", "gains", "ranked_units", "spend_paths"),
            "qini_table",
        )
    ),
    "datasets/discount_levels.py",
    "baselines/linear_causal_forest.py",
    "baselines/xgboost_trees.py",
)
TEST_ROWS_PER_ROW = 50  # where fewer training rows are asked for


@dataclass(frozen=True, slots=True)
class QiniStudy:
    """Regimes and trials, each kept on disk once it is measured."""

    about: str
    effort: QiniEffort = field(default_factory=QiniEffort)
    takes: tuple[str, ...] = ("designs", "n")  # options of the command

    @property
    def designs(self) -> tuple[str, ...]:
        """Names of the parts."""
        return *DISCOUNT_DESIGNS, *TRIALS

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure what is missing; also say whether nothing was left out."""
        effort = replace(self.effort, n_jobs=request.processes)
        if request.seed is not None:
            effort = replace(effort, seed=request.seed)
        if request.n is not None:
            effort = replace(effort, n_train=request.n, n_test=TEST_ROWS_PER_ROW * request.n)
        asked = request.designs or self.designs
        done: dict[str, dict[str, Any]] = {}
        with ProgressBar(len(asked), "experiments", "part") as bar:
            for name in asked:
                found = self._part(name, effort, request, clock)
                if found is not None:
                    done[name] = found
                bar.advance(1)
        return report(done, effort), len(done) == len(asked)

    def _part(
        self, name: str, effort: QiniEffort, request: Request, clock: Clock
    ) -> dict[str, Any] | None:
        """Records of a part, from disk or measured; None where its data are absent."""
        absent = missing_files([TRIALS[name].file]) if name in TRIALS else []
        if absent:
            clock.tell(f"{name}: {missing_message(absent[0])} This part is left out.")
            return None
        path = part_file(name, effort)
        if path.exists() and not request.fresh:
            clock.mention(f"{name} is done already")
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        clock.tell(f"{name} begins")
        start = time.perf_counter()
        measure = qini_trials.measure if name in TRIALS else qini_experiment.measure
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of poor support; scores say what matters
                records = measure(name, effort, clock.tell)
        except Exception as error:  # the other parts are worth having
            clock.tell(f"{name} failed: {error!r}")
            return None
        made = {"seconds": round(time.perf_counter() - start, 1), "records": records}
        write_text(path, json.dumps(made) + "\n")
        return made


def part_file(name: str, effort: QiniEffort) -> Path:
    """Where the results of a part are kept, named by all that they depend on."""
    data = ""
    if name in TRIALS:
        data = hashlib.sha256((data_folder() / TRIALS[name].file).read_bytes()).hexdigest()
    versions = [installed(package) for package in (*BOOSTERS, "xgboost-cpu")]
    state = digest_of(source_digest(SOURCES), versions, effort.state, data)
    return work_folder() / "qini" / f"{name}-{state}.json"
