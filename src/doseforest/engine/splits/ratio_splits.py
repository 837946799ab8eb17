"""Splits by ratios of sums: kernel regressions inside nodes, and their derivatives (PDRF).

With numerators K_h(T_i - t) Y_i and denominators K_h(T_i - t) a node's curve is the
Nadaraya-Watson regression of its rows. `kernel_channels` of smoothing/ makes the columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from doseforest.base.dtypes import FloatArray
from doseforest.data.exact_grid import padded_width
from doseforest.engine.splits.ratio_statistic import RatioStatistic, ratio_statistic
from doseforest.engine.splits.split_statistics import (
    StatisticRows,
    dose_weights,
    gap_weights,
    refuse_positivity,
)

# A mean denominator this small against that of all rows may be off by a hundredth from rounding
# to the grid alone, where the largest denominator is a hundred times the mean.
LEAST_SHARE = 1e-3


@dataclass(frozen=True, slots=True)
class SplitByRatios:
    """Children are compared by ratios of their sums, at each dose: kernel regressions.

    ``y`` holds numerators, then as many denominators, which are not negative.

    Parameters
    ----------
    least_share : float, default=0.001
        A dose at which the mean denominator of either child is no more than this share of that of
        all rows contributes nothing: there is no regression to compare. Raise it where splits chase
        doses that a child hardly has; doses with little data then count less.

    Examples
    --------
    >>> SplitByRatios().n_doses(40)
    20
    """

    least_share: float = LEAST_SHARE

    def __post_init__(self) -> None:
        _check_share(self.least_share, "SplitByRatios")

    def n_doses(self, n_columns: int) -> int:
        """Two columns a dose."""
        return _doses_of(n_columns, 2, "SplitByRatios")

    def n_channels(self, n_columns: int) -> int:
        """Fields of whole vectors."""
        return 2 * padded_width(n_columns // 2)

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the doses."""
        return dose_weights(n_doses, doses, given)

    def lay_out(self, rows: StatisticRows) -> RatioStatistic:
        """Make the channels."""
        refuse_positivity(rows, "SplitByRatios", mixture=True)
        return ratio_statistic(rows, "ratio", self.least_share)


@dataclass(frozen=True, slots=True)
class SplitByRatioSlopes:
    """Children are compared by the slopes of their kernel regressions: PDRF, GCF section 3.

    Parameters
    ----------
    derivative : bool, default=True
        Take the derivative in closed form: ``y`` holds the columns KY, K and their derivatives in
        the dose K'Y, K', in this order. With False, ``y`` holds KY and K, and slopes between
        neighbouring ``doses`` are taken, as kernels without a derivative need; that halves the
        columns and blurs the slope over the gap.
    least_share : float, default=0.001
        As in `SplitByRatios`; a slope needs both of its doses.

    Examples
    --------
    >>> SplitByRatioSlopes().n_doses(40), SplitByRatioSlopes(derivative=False).n_doses(40)
    (10, 20)
    """

    derivative: bool = True
    least_share: float = LEAST_SHARE

    def __post_init__(self) -> None:
        _check_share(self.least_share, "SplitByRatioSlopes")

    def n_doses(self, n_columns: int) -> int:
        """Two columns a dose, or four with derivatives."""
        return _doses_of(n_columns, self._n_fields, "SplitByRatioSlopes")

    def n_channels(self, n_columns: int) -> int:
        """Fields of whole vectors."""
        return self._n_fields * padded_width(n_columns // self._n_fields)

    def point_weights(
        self, n_doses: int, doses: FloatArray | None, given: FloatArray | None
    ) -> FloatArray:
        """Weights of the doses, or gaps between them."""
        if self.derivative:
            return dose_weights(n_doses, doses, given)
        return gap_weights(doses, given, "SplitByRatioSlopes(derivative=False)")

    def lay_out(self, rows: StatisticRows) -> RatioStatistic:
        """Make the channels."""
        refuse_positivity(rows, "SplitByRatioSlopes", mixture=True)
        kind = "derivative" if self.derivative else "differences"
        return ratio_statistic(rows, kind, self.least_share)

    @property
    def _n_fields(self) -> int:
        return 4 if self.derivative else 2


def _doses_of(n_columns: int, n_fields: int, recipe: str) -> int:
    if n_columns % n_fields:
        raise ValueError(
            f"The 'y' parameter must have {n_fields} columns per dose for {recipe}. "
            f"Got {n_columns} columns instead."
        )
    return n_columns // n_fields


def _check_share(share: float, recipe: str) -> None:
    if not 0 <= share < 1:
        raise ValueError(
            f"The 'least_share' parameter of {recipe} must be a float in [0, 1). "
            f"Got {share!r} instead."
        )
