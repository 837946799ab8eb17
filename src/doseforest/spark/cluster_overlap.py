"""The overlap report of a cluster: sums over all rows, quantiles of a sample of them.

Measures are those of `doseforest.report.overlap`, but for quantiles: these are of sorted rows, of
which a cluster has too many for one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.seeds import Purpose, derive
from doseforest.data.row_blocks import RowBlock, Sums
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.unit_support import (
    supported,
    warn_of_rare_levels,
    warn_of_unsupported,
    within,
)
from doseforest.nuisance.treatment.mixed import MixedDensity
from doseforest.nuisance.treatment.treatment_support import DoseSupport, quadrature_grid
from doseforest.report.overlap.covariate_balance import BalanceColumns, DoseTargets, column_sums
from doseforest.report.overlap.overlap_measures import (
    WeightSpread,
    given_variances,
    variance_nodes,
    weighted_quantiles,
)
from doseforest.report.overlap.overlap_report import WEAK_BELOW, OverlapReport
from doseforest.spark.cluster_density import PREDICTED
from doseforest.spark.cluster_units import Units, fold_of
from doseforest.spark.frame_input import FrameSummary
from doseforest.spark.jobs import described
from doseforest.spark.treatment_ratios import RATIO, TreatmentRatios, in_slices

NAME = "location_scale"  # the weights are those of this density
SHOWN_ROWS = 10_000  # about so many rows are in the quantiles and pictures


CURE = "Give 'doses' that leave them out, and look at overlapReport() of the model."


@dataclass(frozen=True, slots=True)
class _Question:
    """What the rows are asked."""

    density: MixedDensity
    ratios: TreatmentRatios
    doses: FloatArray  # (n_doses,)
    nodes: FloatArray  # (n_nodes,) doses that stand for all
    lengths: FloatArray  # (n_nodes,)
    mean: float  # of the doses
    variance: float
    columns: BalanceColumns

    @property
    def ground(self) -> DoseSupport:
        return self.density.support

    @property
    def targets(self) -> DoseTargets:
        return DoseTargets(self.ground, self.mean)


def measure_overlap(
    units: Units,
    density: MixedDensity,
    ratios: TreatmentRatios,
    sample: TrainingRows,
    grid: FloatArray,
    summary: FrameSummary,
) -> OverlapReport:
    """Report on the overlap of units: `PREDICTED` is for a density, `RATIO` for weights."""
    question = _question(units, density, ratios, sample, grid, summary)

    def sums(block: RowBlock) -> Sums:
        return in_slices(block, lambda rows: _sums(rows, question))

    total = units.add_up("overlap of the rows", sums)
    highest = units.largest("largest weights", lambda block: (block[RATIO].max(initial=0.0),))[0]
    return _report(units, question, total, float(highest), _shown(units, question), summary)


def warn_of_overlap(report: OverlapReport, grid: FloatArray) -> None:
    """Warn as the local estimator does: of doses that few could have had, and of rare levels."""
    shares = report.supported[np.isin(report.doses, grid)]
    warn_of_unsupported(Doses(grid), shares, stacklevel=4, cure=CURE)
    if not report.continuous:
        at_level = np.isin(report.doses, report.masses)
        warn_of_rare_levels(Doses(report.doses[at_level]), report.kernel_sample[at_level])


def _question(
    units: Units,
    density: MixedDensity,
    ratios: TreatmentRatios,
    sample: TrainingRows,
    grid: FloatArray,
    summary: FrameSummary,
) -> _Question:
    ground, dose = density.support, sample.dose.values
    middle = float(dose.mean())
    nodes, lengths = variance_nodes(quadrature_grid(dose, ground, sample.weights), ground)

    def sums(block: RowBlock) -> Sums:
        row_weights, about = block.row_weights, block.dose - middle
        return (
            row_weights.sum(),
            row_weights @ about,
            row_weights @ about**2,
            *column_sums(block.X, row_weights),
        )

    weight, *means = units.add_up("moments of the dose and of the covariates", sums)
    about, square = (float(mean / weight) for mean in means[:2])
    labels = [feature_label(summary.names, place) for place in range(units.n_features)]
    return _Question(
        density=density,
        ratios=ratios,
        doses=np.union1d(grid, ground.masses),
        nodes=nodes,
        lengths=lengths,
        mean=middle + about,
        variance=square - about**2,
        columns=BalanceColumns.of_sums(tuple(means[2:]), labels),
    )


def _sums(block: RowBlock, asked: _Question) -> Sums:
    """What a report adds up over all rows."""
    row_weights, r = block.row_weights, asked.ratios.weights(block)
    predicted, targets = block[PREDICTED], asked.targets.of(block.dose)
    kernel = _kernel(block.dose, asked)
    plain, weighted = kernel * row_weights[:, None], kernel * (row_weights * r)[:, None]
    ratios = given_variances(asked.density, predicted, asked.nodes, asked.lengths, asked.mean)
    weak = ratios < WEAK_BELOW * asked.variance
    at_mass = block.dose[:, None] == np.array(asked.ground.masses)
    raw, product = row_weights * block[RATIO], row_weights * r
    return (
        row_weights.sum(),
        row_weights @ supported(asked.density, predicted, asked.doses, asked.ground),
        np.stack([plain.sum(axis=0), weighted.sum(axis=0)]),
        np.stack([(plain**2).sum(axis=0), (weighted**2).sum(axis=0)]),
        row_weights @ weak,
        np.array([raw.sum(), product.sum()]),
        np.array([(raw**2).sum(), (product**2).sum()]),
        int((block[RATIO] > asked.ratios.cap).sum()),
        product @ at_mass,
        product**2 @ at_mass,
        *asked.columns.sums(block.X, targets, row_weights),
        *asked.columns.sums(block.X, targets, product),
    )


def _kernel(dose: FloatArray, asked: _Question) -> FloatArray:
    width = asked.ratios.bandwidth
    return KERNELS[asked.ratios.kernel].value((dose[:, None] - asked.doses) / width)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Rows that quantiles and pictures are made of."""

    dose: FloatArray  # (n,)
    weights: FloatArray | None  # (n,)
    r: FloatArray  # (n,)
    before: FloatArray  # (n,) r before the cap
    ratios: FloatArray  # (n,) variance given the covariates over that of all
    observed: FloatArray  # (n,) density at the row's own dose
    on_doses: FloatArray  # (n, n_doses)


def _shown(units: Units, asked: _Question) -> _Shown:
    share, seed = min(1.0, SHOWN_ROWS / units.n_rows), derive(units.seed, Purpose.SHOWN_ROWS)

    def rows(block: RowBlock) -> tuple[Any, ...]:
        chosen = block.take(fold_of(block.sample_keys, 2**31, seed) < share * 2**31)
        predicted = chosen[PREDICTED]
        inside = within(asked.ground, asked.doses)
        variances = given_variances(
            asked.density, predicted, asked.nodes, asked.lengths, asked.mean
        )
        return (
            chosen.sample_keys,
            chosen.dose,
            chosen.row_weights,
            asked.ratios.weights(chosen),
            chosen[RATIO] / asked.ratios.raw_mean,
            variances / asked.variance,
            asked.density.density(predicted, chosen.dose[:, None])[:, 0],
            asked.density.density(predicted, inside),
        )

    with described(units.context, "rows for quantiles of the overlap"):
        result = units.blocks.map(rows).collect()
    keys, dose, weights, *others = (np.concatenate(each) for each in zip(*result, strict=True))
    order = np.lexsort((dose, keys))
    kept = [other[order] for other in others]
    return _Shown(dose[order], weights[order] if units.weighted else None, *kept)


def _report(
    units: Units,
    asked: _Question,
    total: Sums,
    highest: float,
    shown: _Shown,
    summary: FrameSummary,
) -> OverlapReport:
    weight, supported_sum, kernels, squares, weak, sums, sums_of_squares, n_capped = total[:8]
    at_level, level_squares, *balance = total[8:]
    sample = np.divide(kernels**2, squares, out=np.zeros(kernels.shape), where=squares > 0)
    raw, capped = sums**2 / sums_of_squares
    beside = ~asked.ground.at_mass(shown.dose) | (not asked.ground.continuous)
    beside = beside if beside.any() else np.ones(len(beside), bool)
    return OverlapReport(
        n_rows=units.n_rows,
        doses=asked.doses,
        components=summary.treatment,
        arms=False,
        masses=asked.ground.masses,
        continuous=asked.ground.continuous,
        supported=supported_sum / weight,
        kernel_sample=sample[0],
        weighted_sample=sample[1],
        density_quantiles=weighted_quantiles(shown.on_doses, shown.weights),
        observed_quantiles=weighted_quantiles(
            shown.observed[beside], None if shown.weights is None else shown.weights[beside]
        ),
        weights_name=NAME,
        before_cap=WeightSpread(
            weighted_quantiles(shown.before, shown.weights),
            highest / asked.ratios.raw_mean,
            float(raw),
        ),
        after_cap=WeightSpread(
            weighted_quantiles(shown.r, shown.weights),
            min(highest, asked.ratios.cap) / asked.ratios.capped_mean,
            float(capped),
        ),
        n_capped=int(n_capped),
        balance=asked.columns.balance(
            asked.targets.names, not asked.ground.continuous, tuple(balance[:7]), tuple(balance[7:])
        ),
        weak_below=WEAK_BELOW,
        weak_share=float(weak / weight),
        observed_doses=shown.dose,
        treatment_weights=shown.r,
        variance_ratios=shown.ratios,
        sample_weights=shown.weights,
        level_samples=at_level**2 / np.maximum(level_squares, np.finfo(float).tiny),
    )
