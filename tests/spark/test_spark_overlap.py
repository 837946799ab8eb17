"""Overlap on Spark: the report that the local functions make of the same densities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_spark_estimator import SMALL, columns_of_rows, frame_of

from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.unit_support import OverlapWarning, supported
from doseforest.nuisance.treatment.treatment_support import dose_support
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights
from doseforest.report.overlap.covariate_balance import covariate_balance
from doseforest.report.overlap.overlap_measures import variance_ratios, weight_spread
from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS, N_FOLDS = 900, 3
NONE = np.zeros(0, np.int64)


def doses(kind, x, rng):
    """Of mean 5 + x and deviation 1, a quarter of them 0; or levels, high x get the last."""
    noise = rng.normal(size=len(x))
    if kind == "levels":
        return np.digitize(x + noise, [-0.7, 0.7]).astype(float)
    return np.where(rng.random(len(x)) < 0.25, 0.0, 5 + x + noise)


class Measured:
    """Units on two partitions, their density and their report."""

    def __init__(self, context, kind):
        from doseforest.data.row_blocks import RowBlock
        from doseforest.spark.cluster_density import PREDICTED, fit_dose_density
        from doseforest.spark.cluster_fit import _with_dose
        from doseforest.spark.cluster_means import MeanFitter
        from doseforest.spark.cluster_overlap import measure_overlap
        from doseforest.spark.cluster_units import Units, fold_of
        from doseforest.spark.engine import GrowthReport
        from doseforest.spark.feature_summaries import summarise_features
        from doseforest.spark.fold_forests import BinnedFeatures, ForestWork, bin_units
        from doseforest.spark.forests import ForestPlan
        from doseforest.spark.frame_input import FrameSummary
        from doseforest.spark.jobs import Kept
        from doseforest.spark.treatment_ratios import RATIO, add_ratios

        rng = np.random.default_rng(3)
        self.x = rng.integers(-1, 2, size=(N_ROWS, 2)).astype(float)
        self.x[rng.random(N_ROWS) < 0.1, 1] = np.nan
        self.dose = doses(kind, self.x[:, 0], rng)
        self.weights = rng.uniform(0.5, 1.5, N_ROWS).astype(np.float32)
        ids = np.arange(N_ROWS)
        folds = fold_of(ids, N_FOLDS, 0)
        y = np.zeros(N_ROWS)
        halves = [
            RowBlock(self.x[r], self.dose[r], y[r], self.weights[r], ids[r], folds[r])
            for r in (slice(0, 400), slice(400, None))
        ]
        self.weights = self.weights.astype(np.float64)
        with Kept() as kept:
            blocks = kept.keep(context.parallelize(halves, 2))
            units = Units(blocks, kept, N_ROWS, 2, N_FOLDS, 0, weighted=True)
            features = summarise_features(units, 16)
            sample = TrainingRows(
                self.x[:, :0], None, Doses(self.dose), y, self.weights, ids, NONE, NONE
            )
            covariates = BinnedFeatures(features.bins)
            bin_units(units, _with_dose(features.bins, sample, 16), covariates)
            work = ForestWork(ForestPlan(3, 50, 0, honesty="none"), GrowthReport())
            means = MeanFitter(units, features.terms, covariates)
            self.density = fit_dose_density(units, means, sample, work)
            summary = FrameSummary(N_ROWS, 2, ("a", "b"), DoseRange(0.0, 9.0), False, 1.5)
            self.grid = np.quantile(self.dose, [0.1, 0.5, 0.9])
            ends = float(self.dose.min()), float(self.dose.max())
            ratios = add_ratios(units, self.density, sample, ends)
            self.report = measure_overlap(units, self.density, ratios, sample, self.grid, summary)
            rows = units.blocks.map(lambda own: (own[PREDICTED], own[RATIO])).collect()
        self.told, self.ratio = (np.concatenate(own) for own in zip(*rows, strict=True))


@pytest.fixture(scope="module", params=["mass", "levels"])
def measured(request, spark):
    return Measured(spark.sparkContext, request.param)


def test_the_support_is_that_of_the_rows(measured):
    assert measured.density.support == dose_support(measured.dose, measured.weights)


def test_densities_integrate_to_one(measured):
    ground = measured.density.support
    points = np.linspace(ground.low, ground.high, 2001)
    shares = measured.density.density(measured.told, np.array(ground.masses)).sum(axis=1)
    if not ground.continuous:
        np.testing.assert_allclose(shares, 1.0)
        return
    beside = points[~ground.at_mass(points)]
    total = shares + np.trapezoid(measured.density.density(measured.told, beside), beside)
    np.testing.assert_allclose(total, 1.0, atol=2e-3)  # of the trapezoid rule


def test_densities_follow_the_covariates(measured):
    ground = measured.density.support
    if not ground.continuous:
        shares = measured.density.density(measured.told, np.array([2.0]))[:, 0]
        high, low = (shares[measured.x[:, 0] == own].mean() for own in (1.0, -1.0))
        # The normal distribution has 0.62 above -0.3, and 0.045 above 1.7; 300 rows each.
        assert abs(high - 0.62) < 0.12
        assert abs(low - 0.045) < 0.08
        return
    for x in (-1.0, 0.0, 1.0):
        told = measured.told[measured.x[:, 0] == x]
        peak = measured.density.density(told, np.array([5 + x])).mean()
        # 0.399 for a normal residual of deviation 1; smoothing and 200 rows leave a fifth.
        assert abs(peak / 0.75 - 0.399) < 0.09


def test_the_report_is_that_of_the_local_functions(measured):
    """Quantiles are of all rows: there are fewer than the sample takes."""
    report, own, ground = measured.report, measured.weights, measured.density.support
    weights = TreatmentWeights.capping("local", measured.ratio, weights=own)
    assert weights.uncapped is not None
    grid = np.union1d(measured.grid, ground.masses)
    np.testing.assert_array_equal(report.doses, grid)
    flags = supported(measured.density, measured.told, grid, ground)
    np.testing.assert_allclose(report.supported, np.average(flags, axis=0, weights=own))
    kernel = "epanechnikov" if ground.continuous else "exact"
    width = rule_of_thumb(measured.dose, kernel, own)
    for found, factor in ((report.kernel_sample, own), (report.weighted_sample, own * weights.r)):
        expected = effective_sample(measured.dose, grid, width, kernel, factor)
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # weights are float32 in blocks
    for found, r in ((report.before_cap, weights.uncapped), (report.after_cap, weights.r)):
        expected = weight_spread(r, own)
        np.testing.assert_allclose(found.quantiles, expected.quantiles)
        np.testing.assert_allclose(
            [found.largest, found.effective_sample], [expected.largest, expected.effective_sample]
        )
    ratios = variance_ratios(measured.density, measured.told, measured.dose, ground, own)
    np.testing.assert_allclose(np.sort(report.variance_ratios), np.sort(ratios), rtol=1e-6)
    assert report.weak_share == pytest.approx(np.average(ratios < 0.1, weights=own))
    balance = covariate_balance(
        measured.x, measured.dose, weights.r, ground, weights=own, labels=["a", "b"]
    )
    assert report.balance.covariates == balance.covariates == ("a", "b", "b missing")
    assert report.balance.targets == balance.targets
    np.testing.assert_allclose(report.balance.before, balance.before, atol=1e-9)
    np.testing.assert_allclose(report.balance.after, balance.after, atol=1e-9)


def test_weights_balance_the_covariates(measured):
    worst = measured.report.balance.worst()
    # The dose follows the first covariate: 0.3 or more, a quarter have none of it. Weights of
    # 900 rows leave some, in the tails.
    assert worst[0, 0] > 0.25
    assert worst[0, 1] < 0.5 * worst[0, 0]


@pytest.mark.parametrize("kind", ["plain", "stored"])
def test_a_report_is_printed_and_stored(measured, kind):
    from doseforest.spark.stored_overlap import plain_report, read_report

    report = measured.report
    if kind == "stored":
        report = read_report(plain_report(report))
    assert str(report) == str(measured.report)
    assert report.to_dict() == measured.report.to_dict()
    assert "Overlap of 900 rows" in str(report)


def test_a_fit_warns_of_doses_that_hardly_anyone_could_have_had(spark, tmp_path):
    from doseforest.spark import SparkCausalForest, SparkCausalForestModel

    columns = columns_of_rows()
    noise = np.random.default_rng(5).normal(size=len(columns["a"]))
    columns["discount"] = 5 + noise
    columns["discount"][:3] = 0.0
    given = {**SMALL, "overlap": True, "outcomeModel": "core", "correction": "none"}
    forest = SparkCausalForest(**{**given, "doses": [0.5, 5.0], "baseline": 5.0})
    with pytest.warns(OverlapWarning, match=r"could have had the dose\(s\) 0\.5"):
        model = forest.fit(frame_of(spark, columns))
    assert model.overlapReport().messages
    average = model.averageCurve()
    truth = columns["slope"].mean() * 5 + 3 * columns["b"].mean()
    # A deviation of 4 among units and of 1 within, over the root of 600 rows.
    assert 0.1 < average.standard_errors[1] < 0.4
    assert abs(average.values[1] - truth) < 4 * average.standard_errors[1]
    model.write().save(f"file://{tmp_path}/model")
    again = SparkCausalForestModel.load(f"file://{tmp_path}/model")
    assert str(again.overlapReport()) == str(model.overlapReport())
    np.testing.assert_array_equal(again.averageCurve().covariance, average.covariance)


def test_a_model_without_a_report_says_so(spark):
    from doseforest.spark import SparkCausalForestModel

    with pytest.raises(ValueError, match="must be fitted on Spark with overlap=True"):
        SparkCausalForestModel().overlapReport()
    with pytest.raises(ValueError, match=r"overlap=True, .* for intervals of averages"):
        SparkCausalForestModel().averageCurve()


@pytest.mark.parametrize("kind", ["continuous", "with a mass", "levels"])
def test_progress_ends_where_the_work_does(spark, monkeypatch, kind):
    from doseforest.spark import SparkCausalForest, estimator

    told = []

    class Bar:
        def __init__(self, total, *about):
            told.append(total)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def advance(self, amount):
            told.append(-amount)

    monkeypatch.setattr(estimator, "ProgressBar", Bar)
    columns = columns_of_rows(300)
    own = columns["discount"]
    if kind != "continuous":
        own = np.where(own < 4, 0.0, own if kind == "with a mass" else 8.0)
    given = {"overlap": True, "outcomeModel": "core", "correction": "none", "nuisanceTrees": 3}
    given |= {"doses": [0.0, 8.0], "baseline": 0.0}
    frame = frame_of(spark, columns | {"discount": np.where(own == own.min(), 0.0, own)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverlapWarning)
        SparkCausalForest(**{**SMALL, **given}).fit(frame)
    assert sum(told) == 0
