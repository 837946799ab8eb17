"""The mean-curve split statistic: what is summed over rows, and the gain made of the sums.

A node's statistic is the mean of its rows' curves; the gain of a split is
``n1 n2 / nP * D(mean_1, mean_2) + zeta * sigma`` (GCF Eq. 2). Everything is a sum over rows, so
any engine that can add histograms can search splits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest import _core
from doseforest.base.dtypes import Array, ChannelArray, FloatArray
from doseforest.data.exact_grid import exact_channels, row_blocks
from doseforest.engine.splits.distances import DistanceFunction, compiled_distance, curve_distances
from doseforest.engine.splits.positivity import POSITIVITY_CODES, Positivity, positivity_gain


@dataclass(frozen=True, slots=True)
class MeanCurveStatistic:
    """Channels of the rows and how a split is judged by their sums."""

    channels: ChannelArray  # (n_rows, padded): curves less their centre | weight? | spread?
    centre: FloatArray  # (n_doses,) half-way between the lowest and the highest curve
    quadrature: FloatArray  # (n_doses,)
    distance: str | DistanceFunction
    weighted: bool
    zeta: float  # in units of the gain
    positivity: str  # a key of POSITIVITY_CODES
    noise_per_row: float  # a gain below this, per row of the node, is rounding noise

    @property
    def n_doses(self) -> int:
        """Number of curve channels."""
        return len(self.quadrature)

    @property
    def weight_channel(self) -> int:
        """Channel of the row weights, or -1."""
        return self.n_doses if self.weighted else -1

    @property
    def spread_channel(self) -> int:
        """First channel of the positivity term, or -1."""
        return self.n_doses + self.weighted if self.positivity != "none" else -1

    def child_curves(
        self, left: FloatArray, left_weight: FloatArray, total: FloatArray, total_weight: float
    ) -> tuple[FloatArray, FloatArray]:
        """Mean curves of the children of each cut, (n_cuts, n_doses)."""
        means = [
            side[:, : self.n_doses] / weight[:, None] + self.centre
            for side, weight in ((left, left_weight), (total - left, total_weight - left_weight))
        ]
        return means[0], means[1]

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

    def rule(self, *, min_rows: int, min_fraction: float) -> _core.SplitRule:
        """Return the compiled form of a distance of the table."""
        assert isinstance(self.distance, str)
        compiled = compiled_distance(self.distance)
        channel_weights = np.zeros(self.channels.shape[1])
        channel_weights[: self.n_doses] = self.quadrature if compiled.uses_quadrature else 1.0
        return _core.SplitRule(
            channel_weights=channel_weights,
            norm=compiled.norm,
            squared=compiled.squared,
            positivity=POSITIVITY_CODES[self.positivity],
            weight_channel=self.weight_channel,
            spread_channel=self.spread_channel,
            zeta=self.zeta,
            min_rows=min_rows,
            min_fraction=min_fraction,
        )


def mean_curve_statistic(
    curves: Array,
    *,
    quadrature: FloatArray,
    distance: str | DistanceFunction = "l2",
    weights: ChannelArray | None = None,
    spread: Array | None = None,
    zeta: float = 0.0,
    positivity: Positivity = "conditional",
) -> MeanCurveStatistic:
    """Lay out the channels of a forest of curves.

    Parameters
    ----------
    curves : array of shape (n_rows, n_doses)
    quadrature : array of shape (n_doses,)
    distance : key of CURVE_DISTANCES or callable
    weights : array of shape (n_rows,), optional
        Row weights of mean 1.
    spread : array of shape (n_rows,) or (n_rows, 2), optional
        Of the treatment given the covariates: its variance in units of the treatment's variance
        (``positivity="conditional"``), or its first two moments (``"mixture"``).
    zeta : float
        Weight of the positivity term; 0 leaves it, and its channel, out.
    positivity : {"conditional", "mixture"}

    Notes
    -----
    With ``"conditional"`` zeta has no unit: the term is scaled by the curves' own spread at the
    root. With ``"mixture"``, the published reading, zeta is taken as it is.
    """
    # Distances ignore what all curves share, and rounding to the grid should too: it goes by the
    # largest value. Equal curves become zeros, which stay equal whatever their weights.
    counted = curves if weights is None or weights.all() else curves[weights > 0]
    centre = counted.min(axis=0) / 2.0 + counted.max(axis=0) / 2.0
    columns = [curves]
    shifts = [centre]
    if weights is not None:
        columns.append(np.ones(len(curves)))
        shifts.append(np.zeros(1))
    with_spread = zeta > 0 and spread is not None
    if with_spread and spread is not None:
        columns.append(spread)
        shifts.append(np.zeros(spread.reshape(len(spread), -1).shape[1]))
    channels = exact_channels(*columns, weights=weights, shift=np.concatenate(shifts))
    scale = 1.0
    if with_spread and positivity == "conditional":
        scale = _root_spread(curves, centre, weights, quadrature, distance)
    noise = 0.0
    if weights is not None:
        noise = rounding_noise(channels[:, : len(quadrature)], quadrature, distance)
    return MeanCurveStatistic(
        channels=channels,
        centre=centre,
        quadrature=quadrature,
        distance=distance,
        weighted=weights is not None,
        zeta=zeta * scale,
        positivity=positivity if with_spread else "none",
        noise_per_row=noise,
    )


def _root_spread(
    curves: Array,
    centre: FloatArray,
    weights: ChannelArray | None,
    quadrature: FloatArray,
    distance: str | DistanceFunction,
) -> float:
    """Mean distance of the rows' curves from their mean: the root's impurity per row.

    Sums are exact or taken in ascending order, so that the order of rows does not matter.
    """
    rounded = exact_channels(curves, weights=weights, shift=centre, pad=False)
    total = float(len(curves)) if weights is None else float(weights.sum(dtype=np.float64))
    mean = rounded.sum(axis=0, dtype=np.float64) / total + centre
    distances = np.empty(len(curves))
    for rows in row_blocks(len(curves), 3 * curves.shape[1]):
        values = curves[rows].astype(np.float64)
        own_mean = np.broadcast_to(mean, values.shape)
        distances[rows] = curve_distances(distance, values, own_mean, quadrature)
    if weights is not None:
        distances *= weights
    return float(np.sort(distances).sum() / total)


def rounding_noise(
    curves: ChannelArray, quadrature: FloatArray, distance: str | DistanceFunction
) -> float:
    """Distance of two curves that differ by what rounding to the grid may have done to them."""
    step = np.abs(curves).max(axis=0, keepdims=True).astype(np.float64) * 2.0**-22
    noise = curve_distances(distance, step, np.zeros_like(step), quadrature)[0]
    return float(noise) if np.isfinite(noise) else 0.0
