"""Tables, the lines that must hold, and the files."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from bench.speed.growth.growth_settings import (
    LARGE,
    MIDDLE,
    MIN_NODE_SIZE,
    MTRY,
    N_CHANNELS,
    N_FEATURES,
    PER_TREE,
    REFERENCE,
    SKLEARN,
)
from bench.speed.growth.kernel_speed import SCAN_NODES, KernelCost
from bench.speed.growth.tree_speed import ThreadCost, TreeCost
from bench.studies.markdown import markdown_table

LEAST_SPEEDUP, AIMED_SPEEDUP = 10.0, 20.0  # times less CPU than scikit-learn
MOST_GROWTH = 1.30  # of CPU per row visit from MIDDLE to LARGE
MOST_THREAD_COST = 1.15  # CPU of a fit with two threads over one
SETTING = (
    f"{N_CHANNELS} channels, {N_FEATURES} normal features, mtry {MTRY}, at least {MIN_NODE_SIZE} "
    "rows a leaf, half of the rows per tree, one thread, no honesty unless marked. Set-up is what "
    "a fit does once (checks, binning): a fit less its trees, up to noise. Row visits: rows of all "
    "nodes whose split was searched."
)
TREE_NOTES = (
    "scikit-learn cannot draw without replacement: its trees see n / 2 draws with replacement, "
    "which are 39 % of the rows in place of our 50 %, so they are smaller; the last column allows "
    "for that.",
    "LightGBM grows for one channel only, and sums histograms of all 60 features: its 20 are "
    "drawn after that.",
    "Not measured in this run, published on other machines, for orientation (forest only, one "
    "core, 60 features, CPU s per tree): grf, one scalar effect, 0.9 at 1e5 and 16 at 1e6; "
    "EconML 5 at 1e5.",
)
KERNEL_NOTE = (
    "One thread, best of several. ns per row x feature x channel (accumulation; scattered: an "
    "eighth of the rows, ascending, as in a node three levels down) and per bin x channel (scan "
    f"of {SCAN_NODES} histograms; 20 features of 64 bins each). GB/s: a row's number, "
    "bins and channels counted once; histograms that outgrow a cache tile read rows again."
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line that must hold; nothing measured: the sizes of this run do not tell."""

    claim: str
    measured: float | None
    holds: bool | None

    def line(self) -> str:
        """Return the verdict for people."""
        if self.holds is None:
            return f"SKIP: {self.claim} (its sizes are not in this run)"
        return f"{'PASS' if self.holds else 'FAIL'}: {self.claim}; measured {self.measured:.2f}"


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """Everything that is printed and written."""

    seed: int
    date: str
    duration: float  # seconds
    quick: bool
    machine: dict[str, str | int]
    versions: dict[str, str]
    read_gb_per_s: float
    trees: list[TreeCost]
    threads: list[ThreadCost]
    kernels: list[KernelCost]
    checks: list[Check]


def run_checks(trees: list[TreeCost], threads: list[ThreadCost]) -> list[Check]:
    cost = {(line.n, line.method): line for line in trees}
    ours, theirs = cost.get((MIDDLE, REFERENCE)), cost.get((MIDDLE, SKLEARN))
    speedup = theirs.cpu_per_tree / ours.cpu_per_tree if ours and theirs else None
    checks = [
        _check(
            f"at least {LEAST_SPEEDUP:.0f} times less CPU per tree than scikit-learn at 1e5 "
            f"(aim {AIMED_SPEEDUP:.0f}), mtry per node",
            speedup,
            speedup is not None and speedup >= LEAST_SPEEDUP,
        )
    ]
    for method in (REFERENCE, PER_TREE):
        middle, large = cost.get((MIDDLE, method)), cost.get((LARGE, method))
        growth = large.ns_per_visit / middle.ns_per_visit if middle and large else None
        claim = f"CPU per row visit at 1e6 at most {MOST_GROWTH:.2f} of 1e5, {method}"
        checks.append(_check(claim, growth, growth is not None and growth <= MOST_GROWTH))
    ratio = threads[1].cpu / threads[0].cpu if threads else None
    claim = f"CPU of a fit at 1e5 with two threads at most {MOST_THREAD_COST:.2f} of one thread"
    return [*checks, _check(claim, ratio, ratio is not None and ratio <= MOST_THREAD_COST)]


def _check(claim: str, measured: float | None, holds: bool) -> Check:
    return Check(claim, measured, None if measured is None else holds)


def tree_table(trees: list[TreeCost]) -> str:
    ours = {line.n: line.cpu_per_tree for line in trees if line.method == REFERENCE}
    header = [
        *("n", "method", "CPU s/tree", "ratio to ours (node)", "set-up CPU s"),
        *("leaves/tree", "row visits/tree", "ns CPU/row visit"),
    ]
    lines = [
        [
            str(line.n),
            line.method,
            f"{line.cpu_per_tree:.4f}",
            f"{line.cpu_per_tree / ours[line.n]:.2f}",
            f"{round(line.setup_cpu, 2) + 0.0:.2f}",
            f"{line.shape.leaves:.0f}",
            f"{line.shape.row_visits:.0f}",
            f"{line.ns_per_visit:.1f}",
        ]
        for line in trees
    ]
    return markdown_table(header, lines)


def thread_table(threads: list[ThreadCost]) -> str:
    lines = [
        [str(t.n), str(t.n_trees), str(t.n_threads), f"{t.cpu:.2f}", f"{t.wall:.2f}"]
        for t in threads
    ]
    return markdown_table(["n", "trees", "threads", "CPU s", "wall s"], lines)


def kernel_table(kernels: list[KernelCost]) -> str:
    header = [
        *("build", "channels", "accumulate ns", "scattered ns", "scan ns"),
        *("accumulate GB/s", "scattered GB/s"),
    ]
    lines = [
        [
            line.build,
            str(line.n_channels),
            f"{line.accumulate:.3f}",
            f"{line.accumulate_scattered:.3f}",
            f"{line.scan:.3f}",
            f"{line.input_gb_per_s:.1f}",
            f"{line.scattered_gb_per_s:.1f}",
        ]
        for line in kernels
    ]
    return markdown_table(header, lines)


def to_markdown(report: SpeedReport) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.items())
    quick = " A quick run: figures are rough." if report.quick else ""
    parts = [
        "# Speed of growth",
        f"{report.date}, {report.duration:.0f} s, seed {report.seed}.{quick}\\\n"
        f"{machine}.\\\n{versions}.",
        "## CPU seconds per tree",
        SETTING,
        tree_table(report.trees),
        "\n".join(f"- {note}" for note in TREE_NOTES),
        *(["## Threads, whole fit", thread_table(report.threads)] if report.threads else []),
        "## Kernels",
        KERNEL_NOTE,
        kernel_table(report.kernels),
        f"Read bandwidth of one core (NumPy sum): {report.read_gb_per_s:.1f} GB/s.",
        "## Must hold",
        "\n".join(f"- {check.line()}" for check in report.checks),
    ]
    return "\n\n".join(parts) + "\n"


def to_json(report: SpeedReport) -> str:
    content = asdict(report)
    ours = {line.n: line.cpu_per_tree for line in report.trees if line.method == REFERENCE}
    for line, plain in zip(report.trees, content["trees"], strict=True):
        plain["cpu_per_tree"] = line.cpu_per_tree
        plain["setup_cpu"] = line.setup_cpu
        plain["ratio"] = line.cpu_per_tree / ours[line.n]
        plain["ns_per_visit"] = line.ns_per_visit
    content["notes"] = [SETTING, *TREE_NOTES, KERNEL_NOTE]
    return json.dumps(content, indent=2) + "\n"
