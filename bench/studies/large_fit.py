"""Time and memory of one fit with many units, in a process of its own."""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import doseforest
from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import digits
from bench.studies.study_settings import FIRST_SEED, MOST_FIT_BYTES, MOST_FIT_SECONDS
from bench.studies.study_workers import Clock
from bench.studies.tasks import Record
from doseforest.base.machine import end_with_parent
from doseforest.datasets.overlap_designs import OVERLAP_DESIGNS
from doseforest.evaluation import effect_errors

DESIGN, N_UNITS, N_FEATURES, N_CORES = "confounded", 100_000, 30, 2
MEASURED_UNITS = 5000  # enough for an error, and quick
NOTE = (
    f"The {DESIGN} design with {N_FEATURES} features and {N_UNITS:,} units, default settings, "
    f"{N_CORES} cores. Memory is the most that the process held at once, data included; the rms "
    f"of effects is on {MEASURED_UNITS:,} of the units."
)


def run(request: Request, clock: Clock) -> Report:
    """Fit in a fresh process, so that its peak is of this fit alone."""
    clock.tell(f"a fit of {N_UNITS:,} units")
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        record = pool.submit(measure_fit, FIRST_SEED if request.seed is None else request.seed)
        measured = record.result()
    phases = [[name, f"{seconds:.1f}"] for name, seconds in measured.pop("phases").items()]
    lines = [
        ["fit, s", f"{measured['fit_seconds']:.1f}"],
        ["peak memory, GB", f"{measured['peak_bytes'] / 1e9:.2f}"],
        [f"curves of {MEASURED_UNITS:,} units, s", f"{measured['curve_seconds']:.1f}"],
        ["rms of effects", digits(measured["rms"])],
    ]
    parts = [
        NOTE,
        markdown_table(["", "measured"], lines),
        markdown_table(["phase", "s"], phases),
    ]
    return Report("Scale", parts, bars(measured), [measured])


def measure_fit(seed: int) -> Record:
    """In the child: fit, then say how long it took and how much memory it had."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:N_CORES])
    design = replace(OVERLAP_DESIGNS[DESIGN], n_features=N_FEATURES)
    data = design.draw(n=N_UNITS, seed=seed)
    forest = doseforest.GeneralizedCausalForest(random_state=seed)
    start = time.perf_counter()
    forest.fit(data.X, data.y, treatment=data.treatment)
    fitted = time.perf_counter()
    peak = peak_bytes()
    errors = effect_errors(forest, data, X=data.X[:MEASURED_UNITS])
    return {
        "seed": seed,
        "fit_seconds": fitted - start,
        "curve_seconds": time.perf_counter() - fitted,
        "peak_bytes": peak,
        "rms": errors.rms,
        "phases": dict(forest.seconds_),
    }


def peak_bytes() -> int:
    """Most memory that this process has held; of the whole process, its threads included."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bars(measured: Record) -> list[Verdict]:
    seconds, peak = measured["fit_seconds"], measured["peak_bytes"]
    return [
        Verdict(
            seconds <= MOST_FIT_SECONDS,
            f"a fit within {MOST_FIT_SECONDS / 60:.0f} minutes",
            f"measured {seconds / 60:.1f}",
        ),
        Verdict(
            peak <= MOST_FIT_BYTES,
            f"a fit within {MOST_FIT_BYTES / 1e9:.0f} GB",
            f"measured {peak / 1e9:.2f}",
        ),
    ]
