"""What is grown, and how much is measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.growth.memory import ROWS_AT_ONCE

SEED = 20240611
N_FEATURES = 60
N_CHANNELS = 16
MTRY = 20
N_BINS = 64
MIN_NODE_SIZE = 50
SAMPLE_FRACTION = 0.5
MIDDLE, LARGE = 100_000, 1_000_000  # sizes that the must-hold lines speak of
REFERENCE = "doseforest, mtry per node"
PER_TREE = "doseforest, mtry per tree"
HONEST = "doseforest, mtry per node, honesty='tree'"
SKLEARN = "scikit-learn, 16 outputs"
LIGHTGBM = "LightGBM rf, 1 output"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    sizes: list[int]
    trees: int | None  # of our smaller fits; None: one group of trees that grow together
    quick: bool
    slow: bool
    started: float = field(default_factory=time.perf_counter)

    @property
    def kernel_rows(self) -> int:
        """Rows of the table of kernels."""
        return MIDDLE if self.quick else LARGE

    def few_trees(self, n: int, method: str) -> int:
        """Trees of the smaller fit of a pair; ours grow in groups, and a pair differs by one."""
        if method.startswith("doseforest"):
            share = SAMPLE_FRACTION / 2 if method == HONEST else SAMPLE_FRACTION
            return self.trees or (10 if self.quick else max(1, int(ROWS_AT_ONCE / (share * n))))
        if method == LIGHTGBM:
            return 5 if self.quick else max(1, min(20, 1_000_000 // n))
        return 1 if n >= LARGE or self.quick else max(2, min(5, MIDDLE // n))

    def tell(self, text: str) -> None:
        """Print a line of progress."""
        elapsed = time.perf_counter() - self.started
        print(f"[{elapsed:5.0f} s] {text}", file=sys.stderr, flush=True)


def repeats(n: int) -> int:
    """Number of fits of each kind."""
    return 5 if n == MIDDLE else 3  # the size that most must-hold lines speak of


def simulate(n: int, n_channels: int = N_CHANNELS) -> tuple[FloatArray, FloatArray]:
    """Normal features, and curves that a handful of them bend under noise."""
    rng = np.random.default_rng([SEED, n])
    x = rng.standard_normal((n, N_FEATURES))
    doses = np.linspace(0, 1, n_channels)
    height = np.tanh(x[:, 0]) + 0.5 * x[:, 1]
    bend = np.where(x[:, 2] > 0, x[:, 3], -x[:, 4])
    y = rng.standard_normal((n, n_channels))
    y += height[:, None] * doses + bend[:, None] * doses**2
    return x, y


def cpu_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads of this process, and what the work returned."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
