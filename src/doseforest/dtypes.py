"""Every array type that crosses a module border, with its reason."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BIN_DTYPE = np.uint8  # 255 bins and one for missing values; a quarter of float32's traffic
CHANNEL_DTYPE = np.float32  # rounded to a 24-bit grid, see data/exact_grid.py
ROW_DTYPE = np.uint32  # positions of rows: half the memory of int64, enough for 4e9 rows
ID_DTYPE = np.int64  # row and group ids, as users have them

# One node of a finished forest: struct Node of cpp/layout.hpp, byte for byte.
NODE_DTYPE = np.dtype(
    [
        ("threshold", "<f8"),  # a raw value goes left when value <= threshold
        ("left", "<i4"),  # split: left child, the right one follows; leaf: leaf number
        ("feature", "<u2"),
        ("bin", "<u1"),  # a binned value goes left when bin <= this
        ("flags", "<u1"),
    ]
)
LEAF = 1
MISSING_LEFT = 2
ZERO_MISSING = 4  # in boosted trees: zero counts as a missing value
MAX_FEATURES = 2**16 - 1  # what a node's feature field can hold

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BinArray = NDArray[np.uint8]
ChannelArray = NDArray[np.float32]
