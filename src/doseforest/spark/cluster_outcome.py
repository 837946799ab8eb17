"""The outcome model of a cluster: the spline core, forests and other members, stacked.

The core and the weights are those of the local stack, from sums over blocks. Its boosted members
are of LightGBM, which fits on one machine; forests stand in for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose
from doseforest.data.row_blocks import RowBlock
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_models import BoostedCore, OutcomeModel, Stack
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.spark.cluster_units import Units
from doseforest.spark.fold_forests import (
    BinnedFeatures,
    ForestWork,
    Targets,
    as_ensemble,
    fold_forests,
)
from doseforest.spark.jobs import broadcast

OUTCOME_MODELS = ("stack", "core", "members")
Members = dict[str, OutcomeModel]


@dataclass(frozen=True, slots=True)
class FoldOutcomes:
    """An outcome model without each fold, and one of all rows for new units."""

    without: tuple[OutcomeModel, ...]  # (n_folds,)
    full: OutcomeModel
    weights: dict[str, float]  # of the members


def observed(models: tuple[OutcomeModel, ...], block: RowBlock) -> FloatArray:
    """Predictions at the rows' doses by the models that have not seen them, (n_rows,)."""
    return FoldModels(block.folds, models, None).out_of_fold(
        lambda model, rows: model.predict(block.numbers[rows], block.dose[rows])
    )


def fit_outcomes(
    units: Units,
    cores: tuple[SplineCore, ...],
    splits: BinnedFeatures,
    kind: str,
    work: ForestWork,
    given: Sequence[Members] = (),
) -> FoldOutcomes:
    """Stack the cores with forests of the outcome and of what the cores leave.

    Parameters
    ----------
    cores : tuple of SplineCore
        Without each fold, and last of all rows; none with "members".
    splits : BinnedFeatures
        Covariates, as numbers, and dose.
    kind : {"stack", "core", "members"}
    given : sequence of mappings
        A user's members, without each fold and last of all rows.
    """
    *apart, whole = [dict(each) for each in given] or [{} for _ in range(units.n_folds + 1)]
    if kind == "stack":
        *apart, whole = _with_forests(units, cores, splits, work, [*apart, whole])
    elif kind == "core":
        *apart, whole = [
            {"core": c, **each} for c, each in zip(cores, [*apart, whole], strict=True)
        ]
    if len(whole) == 1:
        ((name, full),) = whole.items()
        return FoldOutcomes(tuple(each[name] for each in apart), full, {name: 1.0})
    shares = _shares(units, apart)
    weights = dict(zip(whole, shares.tolist(), strict=True))
    return FoldOutcomes(
        tuple(Stack(each, weights) for each in apart), Stack(whole, weights), weights
    )


def _with_forests(
    units: Units,
    cores: tuple[SplineCore, ...],
    splits: BinnedFeatures,
    work: ForestWork,
    given: list[Members],
) -> list[Members]:
    """The cores, forests of what they leave, and forests of the outcome, before other members."""
    *without, full = cores
    residual = fold_forests(
        units, splits, work, lambda fold: _residual_of(without[fold]), Purpose.RESIDUAL_FOREST
    )
    plain = fold_forests(units, splits, work, lambda fold: _outcome, Purpose.OUTCOME_FOREST)
    shape = units.n_numbers, splits.bins.n_features - units.n_numbers

    def members(core: SplineCore, left: Any, own: Any, others: Members) -> Members:
        return {
            "core": core,
            "core and forest": BoostedCore(core, as_ensemble(left, *shape)),
            "forest": as_ensemble(own, *shape),
            **others,
        }

    apart = [
        members(core, [left], [each], others)
        for core, left, each, others in zip(without, residual, plain, given[:-1], strict=True)
    ]
    return [*apart, members(full, residual, plain, given[-1])]


def _residual_of(core: SplineCore) -> Targets:
    def left(block: RowBlock) -> FloatArray:
        return (block.y - core.predict(block.numbers, block.dose))[:, None]

    return left


def _outcome(block: RowBlock) -> FloatArray:
    return block.y[:, None]


def _shares(units: Units, apart: list[Members]) -> FloatArray:
    """Convex weights of the members, by the squared error out of fold."""
    by_member = [tuple(each[name] for each in apart) for name in apart[0]]
    with broadcast(units.context, by_member) as sent:

        def errors(block: RowBlock) -> list[FloatArray]:
            gaps = [observed(models, block) - block.y for models in sent.value]
            return [np.stack(gaps, axis=1) * np.sqrt(block.row_weights)[:, None]]

        (found,) = units.triangles("weigh the members of the outcome model", errors)
    return convex_weights(found, np.zeros(len(found)))
