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
from bench.golden import require_stored_answers
from bench.real_data import data_folder, missing_files
from bench.real_data.data_folder import missing_message
from bench.studies.qini import qini_experiment, qini_trials
from bench.studies.qini.qini_models import QiniEffort
from bench.studies.qini.qini_tables import report
from bench.studies.qini.qini_trials import TRIALS
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.result_keys import digest_of_draw, result_key, source
from bench.studies.study_methods import BOOSTERS
from bench.studies.study_workers import Clock
from doseforest.base.atomic_files import write_text
from doseforest.base.progress import ProgressBar

FILES = (
    *(f"bench/studies/qini/qini_{name}.py" for name in ("models", "experiment", "trials")),
    "baselines/xgboost_trees.py",
)
TEST_ROWS_PER_ROW = 50  # where fewer training rows are asked for


@dataclass(frozen=True, slots=True)
class QiniStudy:
    """Regimes and trials, each kept on disk once it is measured."""

    about: str
    uses: tuple[str, ...]  # parts of the algorithm whose golden answers its results rest on
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
        require_stored_answers(self.uses, request.out, clock.tell)
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
        path = self.part_file(name, effort, request.out)
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

    def part_file(self, name: str, effort: QiniEffort, out: Path) -> Path:
        """Where the results of a part are kept, named by all that they depend on."""
        if name in TRIALS:
            file = data_folder() / TRIALS[name].file
            data = hashlib.sha256(file.read_bytes()).hexdigest()
        else:
            data = digest_of_draw(DISCOUNT_DESIGNS[name])
        state = result_key(
            self.uses,
            packages=(*BOOSTERS, "xgboost-cpu"),
            files=map(source, FILES),
            others=(effort.state, data),
        )
        return out / "qini" / f"{name}-{state}.json"
