"""Sums whose ratios are curves of nodes: the statistic behind the recipes of ratio_splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import Array, ChannelArray, FloatArray
from doseforest.data.exact_grid import exact_channels, padded_width
from doseforest.engine.splits.distances import DistanceFunction, compiled_distance, curve_distances
from doseforest.engine.splits.positivity import POSITIVITY_CODES, positivity_gain
from doseforest.engine.splits.split_statistics import STATISTIC_CODES, StatisticRows


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
    zeta: float = 0.0  # in units of the gain
    positivity: str = "none"  # a key of POSITIVITY_CODES

    @property
    def stride(self) -> int:
        """Channels of a field."""
        return padded_width(len(self.least))

    @property
    def weight_channel(self) -> int:
        """Channel of the row weights, or -1."""
        return self._n_fields * self.stride if self.weighted else -1

    @property
    def spread_channel(self) -> int:
        """First channel of the positivity term, or -1."""
        first = self._n_fields * self.stride + self.weighted
        return first if self.positivity != "none" else -1

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Return the compiled form of a distance of the table."""
        assert isinstance(self.distance, str)
        compiled = compiled_distance(self.distance)
        weights = self.quadrature if compiled.uses_quadrature else np.ones(len(self.quadrature))
        settings = [weights, self.least]
        if self.gaps is not None:
            settings.append(1.0 / self.gaps)
        return _core.SplitRule(
            channel_weights=np.zeros(self.channels.shape[1]),
            norm=compiled.norm,
            squared=compiled.squared,
            positivity=POSITIVITY_CODES[self.positivity],
            weight_channel=self.weight_channel,
            spread_channel=self.spread_channel,
            zeta=self.zeta,
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
        """Positivity term zeta * sigma of each cut."""
        return positivity_gain(
            self.positivity,
            self.zeta,
            self.spread_channel,
            left,
            left_weight,
            total,
            total_weight,
        )

    @property
    def _n_fields(self) -> int:
        return 4 if self.kind == "derivative" else 2

    def _fields(self, sums: FloatArray) -> list[FloatArray]:
        n_doses, stride = len(self.least), self.stride
        return [sums[:, field * stride :][:, :n_doses] for field in range(self._n_fields)]

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
    with_spread = rows.zeta > 0 and rows.spread is not None
    if with_spread and rows.spread is not None:
        columns.append(rows.spread)
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
        zeta=rows.zeta,
        positivity=rows.positivity if with_spread else "none",
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


def _check_denominators(denominators: Array) -> None:
    if denominators.min() < 0:
        row, dose = np.argwhere(denominators < 0)[0]
        raise ValueError(
            "The 'y' parameter must have denominators that are not negative in its second field. "
            f"Got {denominators[row, dose]} in row {row}, dose {dose} instead."
        )
