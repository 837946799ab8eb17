"""Kept histograms of the local engine: which node's lies where."""

from __future__ import annotations

import math

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.engine.growth.frontier import Frontier

_CACHE_LINE = 64


class HistogramSlots:
    """Histograms of some nodes. Whether one is kept changes no result."""

    def __init__(self, n_slots: int, n_cells: int, n_channels: int) -> None:
        self.n_slots = n_slots
        self.sums = aligned_sums((n_slots, n_cells, n_channels))
        self.counts = np.empty((n_slots, n_cells), np.uint32)
        self.clear()

    def clear(self) -> None:
        """Forget all nodes."""
        self._free = list(range(self.n_slots))
        self._used_up: list[int] = []  # free from the next batch on: this one still reads them
        self._slot_of_node: dict[int, int] = {}

    def of(self, nodes: IntArray) -> IntArray:
        """Slot of each node, -1 where none is kept."""
        slots = self._slot_of_node
        return np.array([slots.get(node, -1) for node in nodes.tolist()], np.int64)

    def assign(self, families: Frontier, min_rows: int) -> IntArray:
        """Give slots to the children worth keeping, (n_families, 2).

        The larger child takes over its parent's slot, where it is subtracted in place.
        """
        self._free += self._used_up
        self._used_up.clear()
        sizes = np.stack([families.middle - families.start, families.end - families.middle], axis=1)
        wanted = families.searched & (sizes >= min_rows)
        larger = (sizes[:, 1] >= sizes[:, 0]).astype(np.int64)
        slots = np.full((len(families), 2), -1, np.int64)
        inherited = {
            family: self._slot_of_node.pop(parent)
            for family, parent in enumerate(families.parent.tolist())
            if parent in self._slot_of_node
        }
        for family, side in np.argwhere(wanted).tolist():
            if side == larger[family] and family in inherited:
                slot = inherited.pop(family)
            elif self._free:
                slot = self._free.pop()
            else:
                continue
            slots[family, side] = slot
            self._slot_of_node[int(families.left[family]) + side] = slot
        self._used_up += inherited.values()
        return slots

    def release(self, nodes: IntArray) -> None:
        """Free the slots of nodes whose children will not be searched."""
        if self._slot_of_node:
            for node in nodes.tolist():
                if node in self._slot_of_node:
                    self._free.append(self._slot_of_node.pop(node))


def aligned_sums(shape: tuple[int, int, int]) -> FloatArray:
    """Sums that start on a cache line; inside one, accumulation takes a fifth longer."""
    n_bytes = 8 * math.prod(shape)
    memory = np.empty(n_bytes + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + n_bytes].view(np.float64).reshape(shape)
