"""Speed of growth: CPU per tree beside scikit-learn and LightGBM, and the kernels by themselves.

Usage: ``python -m bench.speed.growth_speed [--sizes 1e4 1e5 1e6] [--trees N] [--quick] [--slow]``.
Prints Markdown tables and writes them to ``engine.md`` and, as numbers, to ``engine.json`` in the
folder ``--out``.

The cost of a tree is a difference: the CPU of a fit with many trees less that of a fit with few,
per tree. What a fit does once (checks, binning, layout) is left, and has a column of its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version

from bench.speed.growth.growth_report import SpeedReport, run_checks, to_json, to_markdown
from bench.speed.growth.growth_settings import LARGE, MIDDLE, SEED, Effort
from bench.speed.growth.kernel_speed import measure_kernels, read_bandwidth
from bench.speed.growth.tree_speed import measure_trees
from bench.speed.speed_files import read_options, write_files
from bench.studies.provenance import cpu_model
from doseforest import _core


def run(effort: Effort) -> SpeedReport:
    effort.tell("read bandwidth")
    bandwidth = read_bandwidth()
    kernels = measure_kernels(effort)
    trees, threads = measure_trees(effort)
    packages = ("doseforest", "numpy", "scikit-learn", "lightgbm")
    return SpeedReport(
        seed=SEED,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        duration=time.perf_counter() - effort.started,
        quick=effort.quick,
        machine={
            "cpu": cpu_model(),
            "cores": os.cpu_count() or 1,
            "system": f"{platform.system()} {platform.machine()}",
            "kernel build": _core.current_build(),
        },
        versions={"python": platform.python_version()} | {name: version(name) for name in packages},
        read_gb_per_s=bandwidth,
        trees=trees,
        threads=threads,
        kernels=kernels,
        checks=run_checks(trees, threads),
    )


def whole_number(text: str) -> int:
    """Read 1e6 as well as 1000000."""
    return int(float(text))


def parse_arguments() -> tuple[Effort, argparse.Namespace]:
    parser = argparse.ArgumentParser(description="Speed of growth.")
    parser.add_argument("--sizes", type=whole_number, nargs="+", default=[10_000, MIDDLE, LARGE])
    parser.add_argument(
        "--trees", type=int, help="trees of our smaller fits (default: a whole group)"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test: 1e4 rows, few trees")
    parser.add_argument("--slow", action="store_true", help="scikit-learn also at 1e6")
    given = read_options(parser)
    sizes = [10_000] if given.quick else given.sizes
    return Effort(sizes, given.trees, given.quick, given.slow), given


def main() -> None:
    effort, given = parse_arguments()
    report = run(effort)
    text = to_markdown(report)
    print(text)
    write_files(given, {"engine.md": text, "engine.json": to_json(report)})
    effort.tell(f"wrote {given.out / 'engine.md'} and engine.json")


if __name__ == "__main__":
    main()
