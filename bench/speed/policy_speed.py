"""Speed of deciding on doses: CPU relative to one sort of the value matrix, in the same run.

Usage: ``python -m bench.speed.policy_speed [--units 1e6]``. Prints Markdown and writes it to
``policy.md`` in the folder ``--out``.

The market is made up: riders who order the more the higher their discount, each with a fare and a
sensitivity of their own. Values are margins, costs are expected discounts, demand is the chance of
an order. Matrices are in single precision, as forests' predictions may be.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.speed.speed_files import read_options, write_files
from bench.studies.markdown import markdown_table
from bench.studies.provenance import provenance
from bench.studies.report import heading
from doseforest.base.machine import readable_bytes
from doseforest.policy import budget_path, optimize_doses

SEED = 0
N_CELLS = 10_000
N_GROUPS = 50


@dataclass(frozen=True, slots=True)
class Market:
    """Made-up riders; all matrices are (n_units, n_doses)."""

    value: NDArray[np.float32]
    cost: NDArray[np.float32]
    demand: NDArray[np.float32]


def market(n_units: int, n_doses: int) -> Market:
    rng = np.random.default_rng(SEED)
    discount = np.linspace(0, 0.3, n_doses)
    usual, fare = rng.uniform(0.05, 0.5, (n_units, 1)), rng.gamma(4, 5, (n_units, 1))
    sensitivity = rng.gamma(2, 1, (n_units, 1)) * rng.uniform(0.5, 3, (n_units, 1))
    demand = usual + 0.7 * (1 - usual) * (1 - np.exp(-sensitivity * discount))
    margin = 0.25 * fare * demand + 0.02 * rng.normal(size=demand.shape)
    spent = fare * demand * discount
    return Market(margin.astype(np.float32), spent.astype(np.float32), demand.astype(np.float32))


def cpu_of(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def lines_of(n_units: int, n_doses: int, *, cells: bool) -> list[list[str]]:
    """Rows of the table for one size."""
    own = market(n_units, n_doses)
    sort, _ = cpu_of(lambda: np.sort(own.value, axis=None))
    by_row, _ = cpu_of(lambda: np.sort(own.value))
    middle = own.cost[:, n_doses // 2].sum(dtype=np.float64)
    rng = np.random.default_rng(SEED + 1)
    place = rng.integers(0, N_CELLS, n_units)
    low, high = (np.bincount(place, own.demand[:, k], N_CELLS) for k in (0, -1))
    group = rng.integers(0, N_GROUPS, n_units)
    of_groups = np.bincount(group, own.cost[:, n_doses // 2], N_GROUPS)
    jobs: dict[str, Callable[[], Any]] = {
        "a budget": lambda: optimize_doses(own.value, own.cost, 0.3 * middle),
        "the path of all budgets": lambda: budget_path(own.value, own.cost),
        f"a budget and {N_GROUPS} groups": lambda: optimize_doses(
            own.value,
            own.cost,
            0.3 * middle,
            groups=group,
            group_budgets=of_groups * rng.uniform(0.1, 0.9, N_GROUPS),
        ),
    }
    if cells:
        jobs[f"a budget and {N_CELLS:,} supplies"] = lambda: optimize_doses(
            own.value,
            own.cost,
            0.5 * middle,
            cells=place,
            supply=low + (high - low) * rng.uniform(0.05, 0.6, N_CELLS),
            demand=own.demand,
        )
    lines = []
    for name, work in jobs.items():
        seconds, result = cpu_of(work)
        gap = f"{result.gap / result.value:.1e}" if hasattr(result, "gap") else "none"
        peak = readable_bytes(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        size = f"{n_units:,} x {n_doses}"
        ratios = [f"{seconds / own_sort:.1f}" for own_sort in (sort, by_row)]
        lines.append([size, name, f"{seconds:.1f}", *ratios, gap, peak])
        print(" | ".join(lines[-1]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=lambda text: int(float(text)), default=1_000_000)
    options = read_options(parser)
    start = time.perf_counter()
    lines = lines_of(options.units, 6, cells=True) + lines_of(options.units, 20, cells=True)
    about = {**provenance(), "seconds": time.perf_counter() - start, "seeds": [SEED, SEED + 1]}
    head = [
        "units x doses",
        "limits",
        "CPU s",
        "sorts",
        "sorts by row",
        "gap / value",
        "peak so far",
    ]
    parts = [
        "# Deciding on doses: speed",
        heading(about),
        "CPU of `optimize_doses` and `budget_path` beside that of one `np.sort` of the value "
        "matrix, all of it (`axis=None`) or within each row, in the same run (single precision, "
        "which NumPy sorts by vector instructions; one thread). The gap is the certified one. The "
        "peak is of the whole process, with the made-up market. The machine "
        "was shared with other work, which slows either by a factor that changes over the run.",
        markdown_table(head, lines),
    ]
    text = "\n\n".join(parts) + "\n"
    write_files(options, {"policy.md": text})
    print(text)


if __name__ == "__main__":
    main()
