"""Which rows a tree sees: a hash, nothing stored. cpp/hashing.hpp is the compiled twin."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base.seeds import golden, mix, stream

Honesty = Literal["none", "tree", "forest"]
HONESTY_CODES: dict[str, int] = {"none": 0, "tree": 1, "forest": 2}

DRAW_BAG = 1
DRAW_NODE = 5
DRAW_BIN_SAMPLE = 6
DRAW_FOLD = 7


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """How trees draw rows.

    A row enters a tree by a hash of (seed, tree, row id), or of its group's id. With ``bag_size``
    above 1, that many trees in turn draw from one half-sample of the rows.

    Examples
    --------
    >>> plan = SamplingPlan(seed=1, fraction=0.5, honesty="tree")
    >>> plan.rows_per_tree(1000)
    250
    """

    seed: int
    fraction: float = 0.5  # share of all rows that a tree sees
    bootstrap: bool = False  # Poisson(1) copies of each row in place of a subsample
    honesty: Honesty = "tree"
    growth_fraction: float = 0.5  # share of a tree's rows that grow it; the rest fill the leaves
    bag_size: int = 1

    def to_core(self) -> _core.Sampling:
        """Return the compiled twin."""
        in_bag = 2 * self.fraction if self.bag_size > 1 else self.fraction
        return _core.Sampling(
            seed=self.seed,
            fraction=in_bag,
            growth_fraction=self.growth_fraction,
            bag_size=self.bag_size,
            bootstrap=self.bootstrap,
            honesty=HONESTY_CODES[self.honesty],
        )

    def rows_per_tree(self, n_rows: int) -> int:
        """Return the expected number of rows that grow one tree."""
        share = (0.5 if self.bag_size > 1 else 1.0) if self.bootstrap else self.fraction
        return round(n_rows * share * (1.0 if self.honesty == "none" else self.growth_fraction))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return asdict(self)


def root_keys(seed: int, trees: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Key of each tree's root node."""
    return stream(seed, DRAW_NODE, trees.astype(np.uint64))


def child_keys(parents: NDArray[np.uint64], side: int) -> NDArray[np.uint64]:
    """Keys of the left (side 0) or right (side 1) children: a chain of hashes down the path."""
    return mix(parents + golden(side + 1))
