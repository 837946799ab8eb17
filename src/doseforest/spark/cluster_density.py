"""The density of the dose given the covariates on a cluster: location, scale, and what they leave.

The steps are those of `doseforest.nuisance.treatment.location_scale`. Means given the covariates
come from models that have not seen a row; they are a column of the blocks, and the density is one
of these numbers, so that nothing large travels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.binning import sampled_ids
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.grids import DoseRange
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.treatment.location_scale import (
    LOCATION,
    LOG_SCALE,
    LocationScaleDensity,
    ResidualDensity,
    Values,
    standardise,
)
from doseforest.nuisance.treatment.mixed import MixedDensity
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
from doseforest.spark.cluster_means import MeanFitter, MeanModels
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import ForestWork
from doseforest.spark.jobs import described

PREDICTED = "predicted"  # the column of what is predicted of a row's dose: see `_add_predicted`
SMALLEST_SHARE = 0.01  # of a mass given the covariates, as a part of its share of all rows
WHAT = {LOCATION: "dose", LOG_SCALE: "spread of the dose"}  # that means are of


@dataclass(frozen=True, slots=True)
class ColumnMean:
    """A column of predictions, as a mean given the covariates."""

    place: int
    level: float

    def predict(self, X: FloatArray) -> FloatArray:
        """The column."""
        return X[:, self.place]


@dataclass(frozen=True, slots=True)
class ColumnShares:
    """The last columns of predictions: probabilities of masses and of the rest."""

    first: int

    def predict(self, X: FloatArray) -> FloatArray:
        """The columns."""
        return X[:, self.first :]


def fit_dose_density(
    units: Units, means: MeanFitter, sample: TrainingRows, work: ForestWork
) -> MixedDensity:
    """Fit a density and add what it is read from, `block[PREDICTED]`, to every block.

    Parameters
    ----------
    means : MeanFitter
        Of all rows.
    sample : TrainingRows
        A sample of the doses: it shows which of them are point masses.
    """
    ground = _ground(units, dose_support(sample.dose, sample.weights))
    rest = None
    if ground.continuous:
        rest = _location_scale(units, _beside(means, ground), ground, work)
    else:
        work.on_progress(2 * units.n_folds)  # of forests that are not needed
    masses = _mass_shares(units, means, ground, work)
    _add_predicted(units, ground, masses)
    shares = None if masses is None else ColumnShares(2 if ground.continuous else 0)
    return MixedDensity(ground, shares, rest)


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


def _location_scale(
    units: Units, means: MeanFitter, ground: DoseSupport, work: ForestWork
) -> LocationScaleDensity:
    """The steps of `LocationScale`, with means that are fitted on the cluster."""
    ends = DoseRange(*ground.scaled_ends)

    def fit_mean(targets: Values, column: str) -> ColumnMean:
        fitted = means.fit(lambda block: targets(block)[:, None], work, WHAT[column])
        sent = units.kept.send(units.context, fitted)
        text = f"{WHAT[column]} given the covariates"
        units.add(text, lambda block: {column: sent.value.predict(block)[:, 0]})
        return ColumnMean(tuple(WHAT).index(column), float(fitted.levels[0]))

    location, log_scale, residuals = standardise(
        units,
        ends,
        lambda block: ground.scale.forward(block.dose),
        lambda block: np.where(ground.at_mass(block.dose), 0.0, block.row_weights),
        fit_mean,
    )
    residual = _residual_density(units, ground, residuals)
    return LocationScaleDensity(location, log_scale, residual, ends.low, ends.high)


def _residual_density(units: Units, ground: DoseSupport, residuals: Values) -> ResidualDensity:
    """Kernel density of standardised residuals, as of all rows, from those of a sample."""
    n_rows, seed = units.n_rows, units.seed

    def sampled(block: RowBlock) -> tuple[FloatArray, FloatArray, int]:
        beside = ~ground.at_mass(block.dose)
        kept = sampled_ids(block.sample_keys, n_rows, seed)
        rows = beside if kept is None else beside & kept
        return residuals(block)[rows], block.row_weights[rows], int(beside.sum())

    with described(units.context, "a sample of the residuals of the dose"):
        parts = units.blocks.map(sampled).collect()
    z = np.concatenate([part[0] for part in parts])
    weights = np.concatenate([part[1] for part in parts])
    order = np.lexsort((weights, z))  # sums over them must not depend on partitions
    return ResidualDensity.of(z[order], weights[order], sum(part[2] for part in parts))


def _mass_shares(
    units: Units, means: MeanFitter, ground: DoseSupport, work: ForestWork
) -> MeanModels | None:
    """Means of indicators of the masses: a multinomial model takes many passes over the rows."""
    if not ground.masses:
        work.on_progress(units.n_folds)
        return None
    masses = np.array(ground.masses)
    return means.fit(
        lambda block: (block.dose[:, None] == masses).astype(np.float64), work, "dose levels"
    )


def _add_predicted(units: Units, ground: DoseSupport, masses: MeanModels | None) -> None:
    """Put location, log-scale and shares of the masses and of the rest into one column."""
    moments = tuple(WHAT) if ground.continuous else ()
    sent = None if masses is None else units.kept.send(units.context, masses)

    def predicted(block: RowBlock) -> dict[str, FloatArray]:
        columns = [block[name][:, None] for name in moments]
        if sent is not None:
            shares, overall = sent.value.predict(block), sent.value.levels
            rest, overall_rest = 1 - shares.sum(axis=1), 1 - overall.sum()
            if ground.continuous:
                shares, overall = np.column_stack([shares, rest]), np.append(overall, overall_rest)
            shares = np.maximum(shares, SMALLEST_SHARE * np.maximum(overall, 0.0))
            shares /= shares.sum(axis=1, keepdims=True)
            columns += [shares] if ground.continuous else [shares, np.zeros((len(block), 1))]
        return {PREDICTED: np.hstack(columns)}

    units.add("density of the dose", predicted, moments)
