"""Rows in several blocks without a cluster: what a step gives there it must give in one block."""

from __future__ import annotations

import numpy as np


class ManyBlocks:
    """Rows of groups that share an id are in one block; some blocks may be empty."""

    def __init__(self, blocks, n_folds):
        self.blocks, self.n_folds = list(blocks), n_folds

    @classmethod
    def split(cls, block, n_folds, n_blocks=3):
        """Shares the groups of a block out, and adds a block without rows."""
        parts = [block.take(block.ids % n_blocks == part) for part in range(n_blocks + 1)]
        assert not len(parts[-1])
        return cls(parts, n_folds)

    @property
    def n_rows(self):
        return sum(map(len, self.blocks))

    def add(self, text, make, dropped=()):
        self.blocks = [block.with_columns(make(block), dropped) for block in self.blocks]

    def add_up(self, text, function):
        sums = [function(block) for block in self.blocks]
        return tuple(sum(own[1:], start=own[0]) for own in zip(*sums, strict=True))

    def triangles(self, text, function):
        parts = [function(block) for block in self.blocks]
        return [np.linalg.qr(np.vstack(own), mode="r") for own in zip(*parts, strict=True)]

    def each(self, text, function, items):
        return [function(item) for item in items]
