"""Runs the parts that are not on disk yet: regimes, one option or two, and seeds."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.studies.market.market_part import MarketEffort, booster_name, measure, part_name
from bench.studies.market.market_tables import report
from bench.studies.provenance import digest_of, installed, source_digest, work_folder
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.study_methods import BOOSTERS
from bench.studies.study_workers import Clock
from bench.studies.tasks import Record
from doseforest.base.atomic_files import write_text
from doseforest.base.progress import ProgressBar
from doseforest.pricing.market import REGIMES

SIMULATIONS = 20
PARTS = {part_name(regime, options): (regime, options) for options in (1, 2) for regime in REGIMES}
SOURCES = (
    "bench/studies/market/market_part.py",
    "pricing/pipeline/linear_demand.py",
    "pricing/pipeline/market_source.py",
    *(f"baselines/{name}.py" for name in ("linear_causal_forest", "xgboost_trees")),
    *(f"pricing/market/{name}.py" for name in ("city", "demand", "market_draws", "marketplace")),
    *(f"pricing/market/{name}.py" for name in ("discount_experiment", "matching")),
    "pricing/market/view_outcomes.py",
    "pricing/market/oracle.py",
    "pricing/market/regimes.py",
    "pricing/market/traffic.py",
)


@dataclass(frozen=True, slots=True)
class MarketplaceStudy:
    """Parts by seeds, each kept on disk once it is measured."""

    about: str
    effort: MarketEffort = field(default_factory=MarketEffort)
    takes: tuple[str, ...] = ("designs", "simulations", "n")  # options of the command

    @property
    def designs(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(PARTS)

    def run(self, request: Request, clock: Clock) -> tuple[Report, bool]:
        """Measure what is missing, all parts of a seed before the next seed."""
        effort = replace(self.effort, n_jobs=request.processes)
        if request.n is not None:
            effort = replace(effort, n_train=request.n)
        seeds, parts = request.seeds(SIMULATIONS), request.designs or self.designs
        asked = [(name, seed) for seed in seeds for name in parts]
        records: list[Record] = []
        failed = 0
        with ProgressBar(len(asked), "experiments", "part") as bar:
            for name, seed in asked:
                found = self._part(name, seed, effort, request, clock)
                failed += not found
                records += found
                bar.advance(1)
        return report(records, effort), not failed

    def _part(
        self, name: str, seed: int, effort: MarketEffort, request: Request, clock: Clock
    ) -> list[Record]:
        path = part_file(name, seed, effort)
        if path.exists() and not request.fresh:
            clock.mention(f"{name}, seed {seed} is done already")
            stored: list[Record] = json.loads(path.read_text(encoding="utf-8"))
            return stored
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of poor support; orders say what matters
                found = measure(*PARTS[name], seed, effort)
        except Exception as error:  # the other parts are worth having
            clock.tell(f"{name}, seed {seed} failed: {error!r}")
            return []
        clock.mention(f"{name}, seed {seed}: {time.perf_counter() - start:.0f} s")
        write_text(path, json.dumps(found) + "\n")
        return found


def part_file(name: str, seed: int, effort: MarketEffort) -> Path:
    """Where the results of a part are kept, named by all that they depend on."""
    versions = [installed(package) for package in (*BOOSTERS, "xgboost-cpu")]
    state = digest_of(source_digest(SOURCES), versions, effort.state, booster_name())
    return work_folder() / "marketplace" / f"{name}-{seed}-{state}.json"
