"""Splits by ratios of sums: kernel regressions inside nodes, and their derivatives (PDRF).

With numerators K_h(T_i - t) Y_i and denominators K_h(T_i - t) a node's curve is the
Nadaraya-Watson regression of its rows. `kernel_channels` of smoothing/ makes the columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest import _core
from doseforest.data.exact_grid import exact_channels, padded_width
from doseforest.dtypes import Array, ChannelArray, FloatArray
from doseforest.growth.distances import CURVE_DISTANCES, DistanceFunction, curve_distances
from doseforest.growth.split_statistics import (
    STATISTIC_CODES,
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
        all rows contributes nothing: there is no regression to compare.

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
        refuse_positivity(rows, "SplitByRatios")
        return ratio_statistic(rows, "ratio", self.least_share)


@dataclass(frozen=True, slots=True)
class SplitByRatioSlopes:
    """Children are compared by the derivative of their kernel regressions: PDRF, GCF section 3.

    Parameters
    ----------
    derivative : bool, default=True
        Take the derivative in closed form: ``y`` holds the columns KY, K and their derivatives in
        the dose K'Y, K', in this order. Without, ``y`` holds KY and K, and slopes between
        neighbouring ``doses`` are taken, as kernels without a derivative need.
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
        refuse_positivity(rows, "SplitByRatioSlopes")
        kind = "derivative" if self.derivative else "differences"
        return ratio_statistic(rows, kind, self.least_share)

    @property
    def _n_fields(self) -> int:
        return 4 if self.derivative else 2


@dataclass(frozen=True, slots=True)
class RatioStatistic:
    """Channels of ratios in fields of whole vectors, and how they are read."""

    channels: ChannelArray  # (n_rows, padded): centred numerators | denominators | … | weight?
    kind: str  # "ratio", "differences" or "derivative" of STATISTIC_CODES
    quadrature: FloatArray  # (n_points,)
    least: FloatArray  # (n_doses,) mean denominator that a child must exceed for a dose to count
    gaps: FloatArray | None  # (n_points,) between the doses of "differences"
    distance: str | DistanceFunction
    weighted: bool
    noise_per_row: float

    @property
    def stride(self) -> int:
        """Channels of a field."""
        return padded_width(len(self.least))

    @property
    def weight_channel(self) -> int:
        """Channel of the row weights, or -1."""
        return (4 if self.kind == "derivative" else 2) * self.stride if self.weighted else -1

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Return the compiled form of a distance of the table."""
        assert isinstance(self.distance, str)
        compiled = CURVE_DISTANCES[self.distance]
        weights = self.quadrature if compiled.uses_quadrature else np.ones(len(self.quadrature))
        settings = [weights, self.least]
        if self.gaps is not None:
            settings.append(1.0 / self.gaps)
        return _core.SplitRule(
            channel_weights=np.zeros(self.channels.shape[1]),
            norm=compiled.norm,
            squared=compiled.squared,
            positivity=0,
            weight_channel=self.weight_channel,
            spread_channel=-1,
            zeta=0.0,
            min_rows=min_rows,
            min_fraction=min_fraction,
            statistic=STATISTIC_CODES[self.kind],
            stride=self.stride,
            settings=np.concatenate([_filled(field, self.stride) for field in settings]),
        )

    def child_curves(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Ratios or slopes of the children of each cut; both 0 where either has no denominator."""
        sides = [self._fields(left), self._fields(total - left)]
        least = [
            self.least * weight[:, None] for weight in (left_weight, total_weight - left_weight)
        ]
        seen = (sides[0][1] > least[0]) & (sides[1][1] > least[1])
        curves = [self._curve(fields, seen) for fields in sides]
        return curves[0], curves[1]

    def extra_gain(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> FloatArray:
        """Nothing."""
        return np.zeros(len(left))

    def _fields(self, sums: FloatArray) -> list[FloatArray]:
        n_doses, stride = len(self.least), self.stride
        n_fields = 4 if self.kind == "derivative" else 2
        return [sums[:, field * stride :][:, :n_doses] for field in range(n_fields)]

    def _curve(self, fields: list[FloatArray], seen: Array) -> FloatArray:
        numerator, denominator = fields[0], np.where(seen, fields[1], 1.0)
        if self.kind == "derivative":
            slope = (fields[2] * denominator - numerator * fields[3]) / denominator**2
            return np.where(seen, slope, 0.0)
        ratio = np.where(seen, numerator / denominator, 0.0)
        if self.gaps is None:
            return ratio
        return np.where(seen[:, 1:] & seen[:, :-1], np.diff(ratio, axis=1) / self.gaps, 0.0)


def ratio_statistic(rows: StatisticRows, kind: str, least_share: float) -> RatioStatistic:
    """Lay out numerators, denominators and, for "derivative", their derivatives.

    What the regressions of all nodes share is taken out of the numerators first, N - c M with c the
    ratio over all rows: differences of ratios and their derivatives do not see it, and rounding to
    the exact grid should not either.
    """
    values = rows.values if rows.values.dtype.kind == "f" else rows.values.astype(np.float64)
    n_fields = 4 if kind == "derivative" else 2
    n_doses = values.shape[1] // n_fields
    fields = [values[:, field * n_doses :][:, :n_doses] for field in range(n_fields)]
    _check_denominators(fields[1])
    means = _means(values, rows.weights).reshape(n_fields, n_doses)
    centre = np.divide(means[0], means[1], out=np.zeros(n_doses), where=means[1] > 0)
    centre = centre.astype(values.dtype)
    sizes = [np.abs(field).max(axis=0).astype(np.float64) for field in fields]
    for numerator in range(0, n_fields, 2):
        fields[numerator] = fields[numerator] - centre * fields[numerator + 1]
    empty = np.zeros((len(values), padded_width(n_doses) - n_doses), values.dtype)
    columns = [column for field in fields for column in (field, empty) if column.shape[1]]
    if rows.weights is not None:
        columns.append(np.ones((len(values), 1)))
    gaps = np.diff(rows.doses) if kind == "differences" and rows.doses is not None else None
    errors = [
        4 * np.finfo(values.dtype).eps * size + 2.0**-22 * np.abs(field).max(axis=0)
        for size, field in zip(sizes, fields, strict=True)
    ]
    return RatioStatistic(
        channels=exact_channels(*columns, weights=rows.weights),
        kind=kind,
        quadrature=rows.quadrature,
        least=least_share * means[1],
        gaps=gaps,
        distance=rows.distance,
        weighted=rows.weights is not None,
        noise_per_row=_noise(_curve_error(errors, sizes, means[1], gaps), rows),
    )


def _means(values: Array, weights: ChannelArray | None) -> FloatArray:
    """Mean of each column by exact sums, so that the order of rows does not matter."""
    rounded = exact_channels(values, weights=weights, pad=False)
    total = float(len(values)) if weights is None else float(weights.sum(dtype=np.float64))
    means: FloatArray = rounded.sum(axis=0, dtype=np.float64) / total
    return means


def _curve_error(
    errors: list[FloatArray], sizes: list[FloatArray], mean: FloatArray, gaps: FloatArray | None
) -> FloatArray:
    """What rounding may do to each point of a curve with the mean denominators of all rows."""
    known = mean > 0
    mean = np.where(known, mean, 1.0)
    error = errors[0] / mean
    if len(errors) == 4:
        error = (errors[2] + errors[0] * sizes[3] / mean) / mean
    error = np.where(known, error, 0.0)
    return error if gaps is None else (error[1:] + error[:-1]) / gaps


def _noise(error: FloatArray, rows: StatisticRows) -> float:
    noise = curve_distances(rows.distance, error[None], np.zeros((1, len(error))), rows.quadrature)
    return float(noise[0]) if np.isfinite(noise[0]) else 0.0


def _filled(field: FloatArray, stride: int) -> FloatArray:
    return np.concatenate([field, np.zeros(stride - len(field))])


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


def _check_denominators(denominators: Array) -> None:
    if denominators.min() < 0:
        row, dose = np.argwhere(denominators < 0)[0]
        raise ValueError(
            "The 'y' parameter must have denominators that are not negative in its second field. "
            f"Got {denominators[row, dose]} in row {row}, dose {dose} instead."
        )
