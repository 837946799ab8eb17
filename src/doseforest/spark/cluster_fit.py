"""The stages of a fit on a cluster, from prepared rows to a forest that answers anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.data.binning import FeatureBins, feature_edges, sampled_ids
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.bases.dose_basis import basis_levels
from doseforest.doses.bases.spline_products import fit_splines
from doseforest.doses.boxes import DoseBox
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import FEW_LEVELS, DoseRange
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.effect_forest import (
    CorrectedOutcome,
    Correction,
    EffectForest,
    NoCorrection,
)
from doseforest.estimator.effect_importance import correction_importance
from doseforest.estimator.fit_plan import fit_basis
from doseforest.estimator.grid_and_baseline import choose_forest_baseline, choose_grid
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.encoding.category_encoding import CategoryEncoder
from doseforest.nuisance.outcome.encoded_models import EncodedModel
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.report.overlap.overlap_report import OverlapReport
from doseforest.spark.category_sums import encode_units, split_features
from doseforest.spark.cluster_averages import average_curve, average_interval, plain_average
from doseforest.spark.cluster_density import fit_dose_density
from doseforest.spark.cluster_means import MeanFitter
from doseforest.spark.cluster_outcome import fit_outcomes
from doseforest.spark.cluster_overlap import measure_overlap, warn_of_overlap
from doseforest.spark.cluster_units import Units
from doseforest.spark.engine import GrowthLimits, GrowthReport
from doseforest.spark.feature_summaries import all_levels, summarise_features
from doseforest.spark.fold_forests import BinnedFeatures, ForestWork, bin_units
from doseforest.spark.forests import ForestPlan
from doseforest.spark.frame_input import FrameSummary
from doseforest.spark.jobs import described
from doseforest.spark.members import fit_given
from doseforest.spark.sieve import SieveFit
from doseforest.spark.spline_sums import fit_cores
from doseforest.spark.stored_overlap import plain_report
from doseforest.spark.treatment_ratios import add_ratios

LEAF_SIZES = (5, 15, 50, 150)
MOST_LEAVES = 4000  # of a tree by default: beyond, rows sharpen leaves rather than add some
NUISANCE_LEAF = 10
NUISANCE_FRACTION = 0.5


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How a forest is fitted; the names are those of the estimator's parameters."""

    n_trees: int = 400
    nuisance_trees: int = 100
    leaf_sizes: tuple[int, ...] | None = None
    n_rounds: int = 2
    n_folds: int = 4
    outcome_model: str = "stack"
    outcome_members: tuple[Any, ...] = ()  # regressors of Spark ML
    correction: str = "orthogonal"
    basis: str = "auto"
    sample_fraction: float = 0.7
    honesty_fraction: float = 0.5
    max_bins: int = 64
    overlap: bool = True
    doses: tuple[Any, ...] | None = None  # numbers, or lists of components
    baseline: Any = None
    mode: str = "hybrid"
    limits: GrowthLimits = field(default_factory=GrowthLimits)
    seed: int = 0

    def sizes(self, n_rows: int) -> tuple[int, ...]:
        """Leaf sizes: as asked for, else larger ones for many rows.

        >>> FitSettings().sizes(10_000), FitSettings().sizes(10_000_000)
        ((5, 15, 50, 150), (875, 2625, 8750, 26250))
        """
        if self.leaf_sizes is not None:
            return self.leaf_sizes
        growing = n_rows * self.sample_fraction * self.honesty_fraction
        factor = max(1.0, growing / (MOST_LEAVES * LEAF_SIZES[0]))
        return tuple(round(size * factor) for size in LEAF_SIZES)


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a fit found and did."""

    n_rows: int
    outcome_weights: dict[str, float]
    leaf_sizes: tuple[int, ...]
    rounds: tuple[dict[str, Any], ...]  # shares, strength and risk of each, out of bag
    growth: dict[str, GrowthReport]  # which parts ran as rounds and which as tasks
    doses: DoseArray  # (n_doses,)
    average_curve: FloatArray  # (n_doses,) mean over the rows, out of bag
    importance: FloatArray  # (n_features,) share of each feature in the gains of the correction
    overlap: OverlapReport | None  # where it was asked for
    average: AverageDoseResponse | None  # with standard errors, where the overlap is known

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "n_rows": self.n_rows,
            "outcome_weights": self.outcome_weights,
            "leaf_sizes": list(self.leaf_sizes),
            "rounds": [dict(round_) for round_ in self.rounds],
            "growth": {stage: asdict(each) for stage, each in self.growth.items()},
            "doses": Doses.of(self.doses).plain.tolist(),
            "average_curve": self.average_curve.tolist(),
            "importance": self.importance.tolist(),
            "overlap": None if self.overlap is None else plain_report(self.overlap),
            "average": None if self.average is None else plain_average(self.average),
        }


def fit_units(
    units: Units,
    summary: FrameSummary,
    settings: FitSettings,
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[EffectForest, FitReport]:
    """Fit the outcome model and its correction."""
    sample = _dose_sample(units, summary.support)
    baseline = choose_forest_baseline(sample, settings.baseline, "epanechnikov")
    grid = choose_grid(sample, settings.doses, baseline).values
    counts = {feature: len(labels) for feature, labels in summary.categories.items()}
    encoder = encode_units(units, counts, len(summary.treatment))
    features = summarise_features(units, settings.max_bins)
    with_dose = _with_dose(features.bins, sample, settings.max_bins)
    covariates = split_features(features.bins, encoder, counts)
    bin_units(units, with_dose, covariates)
    on_progress(1)

    limits = {"mode": settings.mode, "limits": settings.limits}
    nuisances = ForestWork(
        ForestPlan(
            settings.nuisance_trees,
            _nuisance_leaf(units.n_rows),
            settings.seed,
            sample_fraction=NUISANCE_FRACTION,
            honesty="none",
            **limits,  # type: ignore[arg-type]
        ),
        GrowthReport(),
        on_progress,
    )
    weight, total = units.add_up("mean outcome", _outcome_sums)
    means = MeanFitter(units, features.terms, covariates)
    overlap = ratios = None
    if settings.overlap and isinstance(summary.support, DoseRange):
        density = fit_dose_density(units, means, sample, nuisances)
        ends = summary.support.low, summary.support.high
        ratios = add_ratios(units, density, sample, ends)
        overlap = measure_overlap(units, density, ratios, sample, grid, summary)
        warn_of_overlap(overlap, grid)
    cores: tuple[SplineCore, ...] = ()
    if settings.outcome_model != "members":
        fitted = fit_splines(sample.dose, sample.weights)
        cores = fit_cores(units, features, fitted, float(total / weight))
    on_progress(1)
    given = fit_given(units, settings.outcome_members)
    outcomes = fit_outcomes(
        units, cores, BinnedFeatures(with_dose), settings.outcome_model, nuisances, given
    )

    correction: Correction = NoCorrection()
    growth = {"nuisances": nuisances.report}
    rounds: tuple[dict[str, Any], ...] = ()
    sizes = settings.sizes(units.n_rows)
    basis = fit_basis(settings.basis, sample)
    if settings.correction == "orthogonal":
        fit = SieveFit(
            units=units,
            outcomes=outcomes,
            basis=basis,
            projection=fit_projection(basis, sample.dose, sample.weights),
            splits=covariates,
            mean_fitter=means,
            plan=ForestPlan(
                max(1, round(settings.n_trees / len(sizes))),
                sizes[0],
                settings.seed,
                sample_fraction=settings.sample_fraction,
                honesty_fraction=settings.honesty_fraction,
                **limits,  # type: ignore[arg-type]
            ),
            leaf_sizes=sizes,
            n_rounds=settings.n_rounds,
            nuisances=nuisances,
            on_progress=on_progress,
        )
        correction = fit.fit()
        rounds = tuple(round_.report() for round_ in correction.rounds)
        growth["correction"] = fit.report
    forest = EffectForest(
        (CorrectedOutcome(_for_new_units(outcomes.full, encoder), correction),),
        n_features=units.n_features,
        feature_names=summary.names,
        effect_columns=np.arange(units.n_features),
        doses=grid,
        baseline=baseline.element,
        support=summary.support,
        bounded=summary.binary,
        n_jobs=1,
        categories=summary.categories,
        component_levels=basis_levels(basis, sample.dose.n_components),
    )
    interval = None
    if ratios is not None:
        interval = average_interval(units, outcomes, correction, ratios, grid)
    average = average_curve(units, outcomes, correction, grid)
    on_progress(1)
    return forest, FitReport(
        n_rows=units.n_rows,
        outcome_weights=outcomes.weights,
        leaf_sizes=sizes,
        rounds=rounds,
        growth=growth,
        doses=grid,
        average_curve=average,
        importance=correction_importance(forest).values,
        overlap=overlap,
        average=interval,
    )


def n_steps(settings: FitSettings) -> int:
    """Steps that a fit tells of its progress."""
    steps = 3 + (2 * settings.n_folds if settings.outcome_model == "stack" else 0)
    if settings.overlap:
        steps += 3 * settings.n_folds  # location, scale and shares of masses
    if settings.correction == "orthogonal":
        n_sizes = len(settings.leaf_sizes or LEAF_SIZES)
        steps += settings.n_folds + settings.n_rounds * (settings.n_folds + n_sizes)
    return steps


def _for_new_units(outcome: OutcomeModel, encoder: CategoryEncoder | None) -> OutcomeModel:
    return outcome if encoder is None else EncodedModel(encoder, outcome)


def _outcome_sums(block: RowBlock) -> tuple[Any, ...]:
    return block.row_weights.sum(), block.row_weights @ block.y


def _nuisance_leaf(n_rows: int) -> int:
    return max(NUISANCE_LEAF, round(n_rows * NUISANCE_FRACTION / MOST_LEAVES))


def _dose_sample(units: Units, support: DoseRange | DoseBox) -> TrainingRows:
    """Doses of the rows in the sample, as rows without covariates.

    The lowest and the highest dose, of each component, are among them, and every level where these
    are few, however rare: functions of the dose are made for the doses of the sample.
    """
    n_rows, seed, weighted = units.n_rows, units.seed, units.weighted

    def sampled(block: RowBlock) -> tuple[DoseArray, FloatArray, DoseArray, DoseArray | None]:
        kept = sampled_ids(block.sample_keys, n_rows, seed)
        rows = slice(None) if kept is None else kept
        levels = np.unique(block.dose)
        few = levels if len(levels) <= FEW_LEVELS else None
        return block.dose[rows], block.row_weights[rows], _ends(levels, support), few

    with described(units.context, "a sample of the doses"):
        result = units.blocks.map(sampled).collect()
    dose, weights, ends = (np.concatenate([each[place] for each in result]) for place in range(3))
    levels = all_levels([each for *_, each in result], FEW_LEVELS)
    missed = np.setdiff1d(ends if levels is None else levels, dose)
    dose, weights = np.append(dose, missed), np.append(weights, np.ones(len(missed)))
    # Sums over them must not depend on partitions.
    order = np.lexsort((weights, *Doses.of(dose).table.T[::-1]))
    nothing = np.zeros(0, np.int64)
    return TrainingRows(
        X=np.zeros((len(dose), 0)),
        names=None,
        dose=Doses(dose[order]),
        y=np.zeros(len(dose)),
        weights=weights[order] if weighted else None,
        ids=np.arange(len(dose)),
        effect_columns=nothing,
        treatment_columns=nothing,
    )


def _ends(doses: DoseArray, support: DoseRange | DoseBox) -> DoseArray:
    """Of some distinct doses the first with the lowest and the highest value of a component."""
    ranges = support.ranges if isinstance(support, DoseBox) else (support,)
    result = [doses[:0]]
    for range_, values in zip(ranges, Doses.of(doses).columns, strict=True):
        result += [doses[values == end][:1] for end in (range_.low, range_.high)]
    return np.unique(np.concatenate(result))


def _with_dose(bins: FeatureBins, sample: TrainingRows, max_bins: int) -> FeatureBins:
    """Bins of the covariates, then of the dose or of each of its components."""
    row_weights = None if sample.weights is None else sample.weights.astype(np.float32)
    for values in sample.dose.columns:
        edges = feature_edges(values, row_weights, max_bins)
        starts = np.append(bins.edge_starts, bins.edge_starts[-1] + len(edges))
        bins = replace(bins, edges=np.concatenate([bins.edges, edges]), edge_starts=starts)
    return bins
