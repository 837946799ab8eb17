"""The positivity term zeta * sigma of a split: how varied the treatment stays in the children.

scan.hpp of cpp/ has its compiled twin.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from doseforest.base.dtypes import FloatArray

Positivity = Literal["conditional", "mixture"]
POSITIVITY_CODES: dict[str, int] = {"none": 0, "conditional": 1, "mixture": 2}


def positivity_gain(
    positivity: str,
    zeta: float,
    channel: int,
    left: FloatArray,
    left_weight: FloatArray,
    total: FloatArray,
    total_weight: float,
) -> FloatArray:
    """Term zeta * sigma of each cut, (n_cuts,): the smaller of the children's spreads.

    Parameters
    ----------
    positivity : key of POSITIVITY_CODES
    zeta : float
        In units of the gain.
    channel : int
        First channel of the spread.
    left, left_weight, total, total_weight
        Sums and weights of the left children, (n_cuts, n_channels) and (n_cuts,), and of the node.

    Examples
    --------
    Rows with moments (0, 1) on the left and (2, 4) on the right: spreads 1 and 0.

    >>> left, total = np.array([[0.0, 1.0]]), np.array([2.0, 5.0])
    >>> positivity_gain("mixture", 3.0, 0, left, np.array([1.0]), total, 2.0)
    array([0.])
    """
    if positivity == "none":
        return np.zeros(len(left))
    sides = ((left, left_weight), (total - left, total_weight - left_weight))
    spreads = [_spread(sums[:, channel:], weight, positivity) for sums, weight in sides]
    term: FloatArray = zeta * np.minimum(*spreads)
    return term


def _spread(sums: FloatArray, weight: FloatArray, positivity: str) -> FloatArray:
    first: FloatArray = sums[:, 0] / weight
    if positivity == "conditional":
        return first
    return np.maximum(sums[:, 1] / weight - first**2, 0.0)
