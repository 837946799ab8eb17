"""The density of the dose given the covariates on a cluster: location, scale, and what they leave.

See `doseforest.nuisance.treatment.location_scale`. Means given the covariates come from
models that have not seen a row; they are a column of the blocks, and the density is one of these
numbers, so that nothing large travels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.binning import sampled_ids
from doseforest.data.row_blocks import RowBlock
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.treatment.location_scale import (
    LocationScaleDensity,
    ResidualDensity,
    log_sizes,
    scale_of,
)
from doseforest.nuisance.treatment.mixed import MixedDensity
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
from doseforest.spark.cluster_means import MeanFitter
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import ForestWork
from doseforest.spark.jobs import described

TOLD = "told"  # the column of what is known of a row's dose: location, log-scale, then shares
LOCATION = "location"
SMALLEST_SHARE = 0.01  # of a mass given the covariates, as a part of its share of all rows


@dataclass(frozen=True, slots=True)
class ToldMean:
    """A column of what is known of rows, as a mean given the covariates."""

    place: int
    level: float = 0.0

    def predict(self, X: FloatArray) -> FloatArray:
        """The column."""
        return X[:, self.place]


@dataclass(frozen=True, slots=True)
class ToldShares:
    """The last columns of what is known of rows: probabilities of masses and of the rest."""

    first: int

    def predict(self, X: FloatArray) -> FloatArray:
        """The columns."""
        return X[:, self.first :]


def fit_dose_density(
    units: Units, means: MeanFitter, sample: TrainingRows, work: ForestWork
) -> MixedDensity:
    """Fit a density and add what it is asked with, `block[TOLD]`, to every block.

    Parameters
    ----------
    means : MeanFitter
        Of all rows.
    sample : TrainingRows
        A sample of the doses: it tells which of them are point masses.
    """
    ground = _ground(units, dose_support(sample.dose, sample.weights))
    _add_location(units, _beside(means, ground), ground, work)
    log_level = _add_told(units, means, ground, work)
    if not ground.continuous:
        return MixedDensity(ground, ToldShares(2), None)
    residual = _residual_density(units, ground, log_level)
    rest = LocationScaleDensity(ToldMean(0), ToldMean(1, log_level), residual, *ground.scaled_ends)
    return MixedDensity(ground, ToldShares(2) if ground.masses else None, rest)


def _ground(units: Units, ground: DoseSupport) -> DoseSupport:
    """The support with the range of all rows in place of that of a sample."""
    if not ground.continuous:
        return ground

    def ends(block: RowBlock) -> tuple[Any, ...]:
        dose = block.dose[~ground.at_mass(block.dose)]
        return -dose.min(initial=np.inf), dose.max(initial=-np.inf)

    minus_low, high = units.largest("range of the doses beside point masses", ends)
    return replace(ground, low=-float(minus_low), high=float(high))


def _beside(means: MeanFitter, ground: DoseSupport) -> MeanFitter:
    """Fits to the rows whose dose is no mass."""
    if not (ground.continuous and ground.masses):
        return means
    return replace(means, gram=None, kept=lambda block: ~ground.at_mass(block.dose))


def _add_location(units: Units, means: MeanFitter, ground: DoseSupport, work: ForestWork) -> None:
    if not ground.continuous:
        units.add("no location", lambda block: {LOCATION: np.zeros((len(block), 2))})
        work.on_progress(2 * units.n_folds)  # of forests that are not needed
        return
    low, high = ground.scaled_ends
    location = means.fit(lambda block: _positions(block, ground)[:, None], work, "dose")
    sent = units.kept.send(units.context, location)
    units.add(
        "location of the dose",
        lambda block: {LOCATION: np.clip(sent.value.predict(block)[:, 0], low, high)},
    )

    def squares(block: RowBlock) -> tuple[Any, ...]:
        own = _row_weights(block, ground)
        return own.sum(), own @ (_positions(block, ground) - block[LOCATION]) ** 2

    weight, total = units.add_up("spread of the dose about its location", squares)
    square = float(total / weight)

    def sizes(block: RowBlock) -> FloatArray:
        left = _positions(block, ground) - block[LOCATION]
        return log_sizes(left, square, high - low)[:, None]

    log_scale = means.fit(sizes, work, "spread of the dose")
    scales = units.kept.send(units.context, log_scale)
    units.add(
        "scale of the dose",
        lambda block: {
            LOCATION: np.column_stack([block[LOCATION], scales.value.predict(block)[:, 0]])
        },
    )


def _add_told(units: Units, means: MeanFitter, ground: DoseSupport, work: ForestWork) -> float:
    """Add shares of the masses to location and scale; returns the mean of the log-scales."""

    def level(block: RowBlock) -> tuple[Any, ...]:
        own = _row_weights(block, ground)
        return own.sum(), own @ block[LOCATION][:, 1]

    weight, total = units.add_up("mean scale of the dose", level)
    if not ground.masses:
        units.add("density of the dose", lambda block: {TOLD: block[LOCATION]}, (LOCATION,))
        work.on_progress(units.n_folds)
        return float(total / weight)
    masses, continuous = np.array(ground.masses), ground.continuous
    shares = means.fit(
        lambda block: (block.dose[:, None] == masses).astype(np.float64), work, "dose levels"
    )
    sent = units.kept.send(units.context, shares)

    def told(block: RowBlock) -> dict[str, FloatArray]:
        overall, own = sent.value.mean, sent.value.predict(block)
        if continuous:
            overall = np.append(overall, 1 - overall.sum())
            own = np.column_stack([own, 1 - own.sum(axis=1)])
        own = np.maximum(own, SMALLEST_SHARE * np.maximum(overall, 0.0))
        own /= own.sum(axis=1, keepdims=True)
        rest = own if continuous else np.column_stack([own, np.zeros(len(block))])
        return {TOLD: np.column_stack([block[LOCATION], rest])}

    units.add("density of the dose", told, (LOCATION,))
    return float(total / weight) if weight > 0 else 0.0


def _residual_density(units: Units, ground: DoseSupport, log_level: float) -> ResidualDensity:
    """Kernel density of standardised residuals of the rows in the sample, with a heavy tail."""
    n_rows, seed = units.n_rows, units.seed

    def residuals(block: RowBlock) -> tuple[FloatArray, FloatArray, int]:
        beside = ~ground.at_mass(block.dose)
        kept = sampled_ids(block.sample_keys, n_rows, seed)
        rows = beside if kept is None else beside & kept
        told = block[TOLD][rows]
        left = _positions(block, ground)[rows] - told[:, 0]
        return left / scale_of(told[:, 1], log_level), block.row_weights[rows], int(beside.sum())

    with described(units.context, "a sample of the residuals of the dose"):
        found = units.blocks.map(residuals).collect()
    z = np.concatenate([own for own, _, _ in found])
    weights = np.concatenate([own for _, own, _ in found])
    order = np.lexsort((weights, z))  # sums over them must not depend on partitions
    z, weights = z[order], weights[order]
    return ResidualDensity.of(z, weights, sum(own for _, _, own in found))


def _positions(block: RowBlock, ground: DoseSupport) -> FloatArray:
    return ground.scale.forward(block.dose)


def _row_weights(block: RowBlock, ground: DoseSupport) -> FloatArray:
    """Weights of rows beside the masses, 0 for the others."""
    if not ground.continuous:
        return block.row_weights
    return np.where(ground.at_mass(block.dose), 0.0, block.row_weights)
