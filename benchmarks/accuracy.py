"""Accuracy on designs with a known truth, beside the baselines and EconML.

Usage: ``python benchmarks/accuracy.py [designs|adrf|rate|joint|paper|scale] [options]``, see
``--help``.

- ``designs``: errors of all rows on all designs, one table;
- ``adrf``: bias and error of the average curve over many draws;
- ``rate``: how fast errors fall with the number of units;
- ``joint``: doses of several components, point masses and arms;
- ``paper``: the paper's algorithm as printed, beside its published errors;
- ``scale``: time and memory of one fit with 100,000 units.

Prints Markdown. A whole study is written to ``benchmarks/results``, a part of one to
``out/accuracy``, where the results of single fits are also kept: a run that is cut short goes on
where it stopped. Our fits are done again when the sources change, the others when their versions
or settings do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from accuracy_study import adrf, designs, joint, paper, rate, scale
from accuracy_study.estimators import ROOT
from accuracy_study.options import Options, parse_options
from accuracy_study.report import RESULTS, Report
from accuracy_study.store import Store
from accuracy_study.tasks import Record, Task
from accuracy_study.workers import Clock, run_tasks

KEPT = ROOT / "out" / "accuracy"


@dataclass(frozen=True, slots=True)
class Study:
    """Fits that run in any order, and what is said about them."""

    file: str
    tasks: Callable[[Options], list[Task]]
    report: Callable[[list[Record], Options], Report]

    def run(self, options: Options, clock: Clock) -> tuple[Report, bool]:
        """Run what is missing; also say whether all went well."""
        tasks = self.tasks(options)
        store = Store(KEPT)
        records, failed = run_tasks(tasks, store, options.processes, clock, fresh=options.fresh)
        return self.report(records, options), not failed


@dataclass(frozen=True, slots=True)
class SingleFit:
    """One fit, measured by itself."""

    file: str
    measure: Callable[[Options, Clock], Report]

    def run(self, options: Options, clock: Clock) -> tuple[Report, bool]:
        """Measure it."""
        return self.measure(options, clock), True


STUDIES: dict[str, Study | SingleFit] = {
    "designs": Study("accuracy", designs.tasks, designs.report),
    "adrf": Study("adrf", adrf.tasks, adrf.report),
    "rate": Study("rate", rate.tasks, rate.report),
    "joint": Study("joint", joint.tasks, joint.report),
    "paper": Study("paper", paper.tasks, paper.report),
    "scale": SingleFit("scale", scale.run),
}


def main() -> None:
    options = parse_options(STUDIES, "Accuracy on designs with a known truth.")
    study, clock = STUDIES[options.study], Clock()
    report, complete = study.run(options, clock)
    folder = RESULTS if complete and options.whole else KEPT
    print(report.write(study.file, folder, clock.seconds))
    clock.tell(f"wrote {folder / study.file}.md and .csv")
    if not complete:
        sys.exit("Some fits failed: see the lines above.")


if __name__ == "__main__":
    main()
