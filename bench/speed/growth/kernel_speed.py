"""The kernels by themselves: accumulation and scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.speed.growth.growth_settings import N_BINS, SEED, Effort, cpu_of
from doseforest import _core
from doseforest.base.dtypes import BIN_DTYPE, ROW_DTYPE
from doseforest.engine.growth.frontier import Splits
from doseforest.engine.growth.histogram_slots import aligned_sums
from doseforest.engine.splits.mean_statistic import MeanCurveStatistic, mean_curve_statistic

KERNEL_CHANNELS = (4, 8, 16, 32)
KERNEL_FEATURES = 20
SCAN_NODES = 512
KERNEL_REPEATS = 5
BANDWIDTH_BYTES = 512 * 2**20


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One line of the table of kernels, in nanoseconds."""

    build: str
    n_channels: int
    accumulate: float  # per row x feature x channel, all rows
    accumulate_scattered: float  # the same on a scattered eighth of the rows
    scan: float  # per bin x channel
    input_gb_per_s: float  # what accumulation of all rows reads
    scattered_gb_per_s: float


@contextmanager
def kernel_build(name: str) -> Iterator[None]:
    """Use one build of the kernels for a while."""
    before = _core.current_build()
    _core.choose_build(name)
    try:
        yield
    finally:
        _core.choose_build(before)


def best_cpu(work: Callable[[], Any]) -> float:
    return min(cpu_of(work)[0] for _ in range(KERNEL_REPEATS))


@dataclass(frozen=True, slots=True)
class KernelCase:
    """Random bins and channels for the kernels alone, one thread."""

    bins: NDArray[np.uint8]  # (n_rows, KERNEL_FEATURES)
    statistic: MeanCurveStatistic
    n_bins: NDArray[np.int32]  # (KERNEL_FEATURES,)
    features: NDArray[np.int32]  # (1, KERNEL_FEATURES)
    sums: NDArray[np.float64]  # (SCAN_NODES, n_cells, n_channels)
    counts: NDArray[np.uint32]  # (SCAN_NODES, n_cells)

    @classmethod
    def of(cls, n_rows: int, n_channels: int) -> KernelCase:
        """Draw a case."""
        rng = np.random.default_rng([SEED, n_rows, n_channels])
        bins = rng.integers(0, N_BINS, (n_rows, KERNEL_FEATURES), dtype=BIN_DTYPE)
        curves = rng.standard_normal((n_rows, n_channels))
        n_cells = KERNEL_FEATURES * (N_BINS + 1)
        return cls(
            bins=bins,
            statistic=mean_curve_statistic(curves, quadrature=np.ones(n_channels)),
            n_bins=np.full(KERNEL_FEATURES, N_BINS, np.int32),
            features=np.arange(KERNEL_FEATURES, dtype=np.int32)[None, :],
            sums=aligned_sums((SCAN_NODES, n_cells, n_channels)),
            counts=np.zeros((SCAN_NODES, n_cells), np.uint32),
        )

    def accumulate(self, rows: NDArray[np.uint32], n_nodes: int = 1) -> None:
        """Sum the histograms of as many nodes of equal size."""
        limits = np.linspace(0, len(rows), n_nodes + 1).astype(np.int64)
        _core.histograms(
            self.bins,
            self.statistic.channels,
            self.n_bins,
            rows,
            np.stack([limits[:-1], limits[1:]], axis=1),
            self.features,
            1,
            self.sums[:n_nodes],
            self.counts[:n_nodes],
        )

    def scan(self) -> None:
        """Search the best split of every histogram."""
        rule = self.statistic.rule(min_rows=1, min_fraction=0.0)
        splits = Splits.none(SCAN_NODES)
        _core.scan_histograms(
            self.n_bins,
            rule,
            self.features,
            self.sums,
            self.counts,
            1,
            splits.gain,
            splits.cut,
            splits.sets,
            None,
        )


def measure_kernel(case: KernelCase, build: str) -> KernelCost:
    n_rows, n_channels = len(case.bins), case.statistic.n_doses
    every = np.arange(n_rows, dtype=ROW_DTYPE)
    scattered = every[np.random.default_rng(SEED).random(n_rows) < 1 / 8]
    with kernel_build(build):
        on_all = best_cpu(lambda: case.accumulate(every)) / n_rows
        on_some = best_cpu(lambda: case.accumulate(scattered)) / len(scattered)
        case.accumulate(every, SCAN_NODES)
        per_bin = best_cpu(case.scan) / (SCAN_NODES * KERNEL_FEATURES * N_BINS)
    row_bytes = every.itemsize + KERNEL_FEATURES + n_channels * case.statistic.channels.itemsize
    return KernelCost(
        build=build,
        n_channels=n_channels,
        accumulate=1e9 * on_all / (KERNEL_FEATURES * n_channels),
        accumulate_scattered=1e9 * on_some / (KERNEL_FEATURES * n_channels),
        scan=1e9 * per_bin / n_channels,
        input_gb_per_s=1e-9 * row_bytes / on_all,
        scattered_gb_per_s=1e-9 * row_bytes / on_some,
    )


def measure_kernels(effort: Effort) -> list[KernelCost]:
    builds = _core.available_builds()
    costs = []
    for n_channels in KERNEL_CHANNELS:
        effort.tell(f"kernels: {n_channels} channels, builds {', '.join(builds)}")
        case = KernelCase.of(effort.kernel_rows, n_channels)
        costs += [measure_kernel(case, build) for build in builds]
    return sorted(costs, key=lambda cost: builds.index(cost.build))


def read_bandwidth() -> float:
    """GB/s at which one thread of NumPy sums a large array."""
    values = np.ones(BANDWIDTH_BYTES // 8)
    return 1e-9 * values.nbytes / best_cpu(values.sum)
