"""Every array type that crosses a module border, with its reason."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BIN_DTYPE = np.uint8  # 255 bins and one for missing values; a quarter of float32's traffic
WIDE_BIN_DTYPE = np.uint16  # where a feature has more categories than that
CHANNEL_DTYPE = np.float32  # rounded to a 24-bit grid, see data/exact_grid.py
ROW_DTYPE = np.uint32  # positions of rows: half the memory of int64, enough for 4e9 rows
ID_DTYPE = np.int64  # row and group ids, as users have them

# One node of a finished forest: struct Node of cpp/layout.hpp, byte for byte.
NODE_DTYPE = np.dtype(
    [
        ("threshold", "<f8"),  # a value goes left when value <= this; categorical: row of its set
        ("left", "<i4"),  # split: left child, the right one follows; leaf: leaf number
        ("feature", "<u2"),
        ("bin", "<u1"),  # a binned value goes left when bin <= this
        ("flags", "<u1"),
    ]
)
LEAF = 1
MISSING_LEFT = 2
ZERO_MISSING = 4  # in boosted trees: zero counts as a missing value
CATEGORICAL = 8  # in forests of curves: the bins of a set go left
SET_WORDS = 4  # a set of bins is 256 bits, one for each; uint64
WIDE_SET_WORDS = 16  # in forests where a feature has more than 255 categories: 1,024 bits
BY_SET = -1  # in the place of a split's bin: a set of bins goes left
MAX_FEATURES = 2**16 - 1  # what a node's feature field can hold

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BinArray = NDArray[np.uint8 | np.uint16]
ChannelArray = NDArray[np.float32]
DoseArray = NDArray[Any]  # `values` of Doses, doses/dose_values.py: float64, or records of it
SetArray = NDArray[np.uint64]  # (n, set words): bit b % 64 of word b // 64 stands for bin b


def bin_dtype(most_bins: int) -> type[np.uint8] | type[np.uint16]:
    """Type of the bins of a table, by the feature with most of them.

    >>> bin_dtype(255), bin_dtype(256)
    (<class 'numpy.uint8'>, <class 'numpy.uint16'>)
    """
    return BIN_DTYPE if most_bins <= np.iinfo(BIN_DTYPE).max else WIDE_BIN_DTYPE


def set_words(most_bins: int) -> int:
    """Words of every set of a forest, by the feature with most bins.

    >>> set_words(255), set_words(256)
    (4, 16)
    """
    return SET_WORDS if bin_dtype(most_bins) is BIN_DTYPE else WIDE_SET_WORDS


def bins_of_codes(codes: IntArray, n_words: int) -> IntArray:
    """Bins of categories where sets have so many words: the rarest share the last.

    >>> bins_of_codes(np.array([3, 254, 300, 2000]), 4), bins_of_codes(np.array([300, 2000]), 16)
    (array([  3, 254, 254, 254]), array([ 300, 1022]))
    """
    bins: IntArray = np.minimum(codes, 64 * n_words - 2)  # of its bits one is for missing values
    return bins


def no_sets() -> SetArray:
    """Category sets of a forest without a categorical node."""
    return np.zeros((0, SET_WORDS), np.uint64)
