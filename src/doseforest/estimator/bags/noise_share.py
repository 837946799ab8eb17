"""How much of what differs between bags is sampling noise: what units have in common.

A unit's own share is known poorly where most of what differs is the noise of a bag's few trees. The
shares of other units tell what to expect, and how much to believe the unit's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import draw, stream, uniform
from doseforest.data.sampling import DRAW_BAG, SamplingPlan

FEWEST_SHARES = 320  # of rows with a few contrasts each, which are much alike
FEWEST_DEGREES = 5  # of freedom below the line, for a ratio to have a variance
MOST_VARIANCE = 1e9  # of shares: anything is possible


@dataclass(frozen=True, slots=True)
class NoiseShare:
    """Shares of sampling noise over units: their mean, and their variance beside what noise adds.

    Examples
    --------
    Shares vary much less between units than a unit's own is known: it hardly counts.

    >>> share = NoiseShare(mean=0.2, variance=0.001)
    >>> round(share.trust(n_bags=100, bag_size=20), 2)
    0.06
    >>> round(NoiseShare.unknown().trust(n_bags=100, bag_size=20), 6)
    1.0
    """

    mean: float
    variance: float

    @classmethod
    def unknown(cls) -> NoiseShare:
        """Nothing is known of other units."""
        return cls(0.0, MOST_VARIANCE)

    def doubt(self, n_bags: int, bag_size: int) -> float:
        """Variance of a unit's own share."""
        return (1 - self.mean) ** 2 * _ratio_moments(n_bags, bag_size)[1]

    def trust(self, n_bags: int, bag_size: int) -> float:
        """Weight of a unit's own share; the mean has the rest."""
        if self.variance == 0:
            return 0.0
        return 1 / (1 + self.doubt(n_bags, bag_size) / self.variance)


def pool_shares(between: FloatArray, within: FloatArray, n_bags: int, bag_size: int) -> NoiseShare:
    """Mean and variance of shares, from mean squares between and within the bags of units.

    Examples
    --------
    >>> between = np.random.default_rng(0).chisquare(99, size=1000) / 99
    >>> share = pool_shares(between, np.full(1000, 0.8), n_bags=100, bag_size=20)
    >>> round(share.mean, 2), round(share.variance, 2)
    (0.2, 0.0)
    """
    known = (between > 0) & np.isfinite(within / np.where(between > 0, between, 1.0))
    if known.sum() < FEWEST_SHARES:
        return NoiseShare.unknown()
    ratios = within[known] / between[known]
    centre, spread = _ratio_moments(n_bags, bag_size)
    ratio = float(np.clip(ratios.mean() / centre, 0.0, 1.0))
    apart = (float(ratios.var(ddof=1)) - ratio**2 * spread) / (centre**2 + spread)
    return NoiseShare(1 - ratio, min(max(apart, 0.0), MOST_VARIANCE))


def _ratio_moments(n_bags: int, bag_size: int) -> tuple[float, float]:
    """Mean and variance of a ratio of mean squares, within bags over between them: F."""
    above, below = n_bags * (bag_size - 1), max(n_bags - 1, FEWEST_DEGREES)
    mean = below / (below - 2)
    return mean, mean**2 * 2 * (above + below - 2) / (above * (below - 4))


def bags_without(plan: SamplingPlan, ids: IntArray, n_bags: int) -> NDArray[np.bool_]:
    """Which bags have left each row out, (n_rows, n_bags)."""
    keys = stream(plan.seed, DRAW_BAG, np.arange(n_bags, dtype=np.uint64))
    hashes = draw(keys[None], ids.astype(np.uint64)[:, None])
    out: NDArray[np.bool_] = uniform(hashes) >= 0.5
    return out
