"""The stages of a Spark fit give what their local twins give on the same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from doseforest import CurveForest
from doseforest.data.binning import fit_bins
from doseforest.data.exact_grid import normalised_weights
from doseforest.data.feature_table import as_table
from doseforest.data.row_blocks import OneBlock, RowBlock
from doseforest.doses.grids import DoseRange
from doseforest.nuisance.outcome.covariate_terms import fit_covariate_terms
from doseforest.nuisance.outcome.spline_core import choose_terms
from doseforest.nuisance.outcome.spline_design import SplineDesign
from forests import assert_same_bits
from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS, N_FOLDS = 800, 3


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(N_ROWS, 3))
    x[:, 1] = rng.integers(0, 4, N_ROWS)
    x[rng.random(N_ROWS) < 0.1, 2] = np.nan
    dose = np.clip(5 + x[:, 0] + 2 * rng.normal(size=N_ROWS), 0, 10)
    y = dose * (1 + (x[:, 1] > 1)) + 2 * x[:, 0] + rng.normal(size=N_ROWS)
    weights = rng.uniform(0.5, 3, N_ROWS)
    return {"x": x, "dose": dose, "y": y, "weights": weights}


@pytest.fixture(scope="module")
def units(spark, table):
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.frame_columns import FrameColumns
    from doseforest.spark.frame_input import prepared_frame, summarise_frame, unit_blocks
    from doseforest.spark.jobs import Kept

    columns = {f"x{k}": own for k, own in enumerate(table["x"].T)}
    columns |= {"t": table["dose"], "y": table["y"], "w": table["weights"]}
    frame = spark.createDataFrame(pa.table(columns | {"id": np.arange(N_ROWS)}))
    named = FrameColumns(("x0", "x1", "x2"), ("t",), "y", weight="w", row_id="id")
    prepared = prepared_frame(frame, named, 3)
    summary = summarise_frame(prepared, named, named.features)
    assert (summary.n_rows, summary.n_features, summary.binary) == (N_ROWS, 3, False)
    with Kept() as kept:
        blocks = kept.keep(unit_blocks(prepared, summary, N_FOLDS, 0))
        yield Units(blocks, kept, N_ROWS, 3, N_FOLDS, 0, weighted=True)


@pytest.fixture(scope="module")
def features(units):
    from doseforest.spark.feature_summaries import summarise_features

    return summarise_features(units, 16)


def test_weights_are_the_local_ones(units, table):
    blocks = units.blocks.map(lambda block: (block.ids, block.weights)).collect()
    assert len(blocks) == 3
    ids = np.concatenate([own for own, _ in blocks])
    weights = np.concatenate([own for _, own in blocks])[np.argsort(ids)]
    np.testing.assert_array_equal(weights, normalised_weights(table["weights"]))


def test_bins_and_spline_terms_are_the_local_ones(features, table):
    expected = fit_bins(
        as_table(table["x"]), max_bins=16, weights=normalised_weights(table["weights"])
    )
    np.testing.assert_array_equal(features.bins.edges, expected.edges)
    np.testing.assert_array_equal(features.bins.edge_starts, expected.edge_starts)
    terms = fit_covariate_terms(table["x"])
    fences = ("power_low", "power_high")
    for name in ("median", "mean", "scale", *fences, "hinge_knot", "step_knot"):  # sums differ
        np.testing.assert_allclose(getattr(features.terms, name), getattr(terms, name), atol=1e-12)
    for name in ("gappy", "power_feature", "power_degree", "hinge_feature", "step_feature"):
        np.testing.assert_array_equal(getattr(features.terms, name), getattr(terms, name))


def test_a_forest_of_the_units_is_a_curve_forest(units, features, table):
    from doseforest.spark.forests import ForestPlan, ForestRows, distributed_forest

    bins = features.bins

    def rows(block):
        values = np.column_stack([block.y, block.dose * block.y])
        binned = bins.transform(as_table(block.X))
        return ForestRows(binned, block.ids, block.weights, values, values[:, :1])

    plan = ForestPlan(n_trees=4, min_node_size=10, seed=7)
    grown, _ = distributed_forest(units.blocks.map(rows), bins, plan)
    local = CurveForest(4, min_node_size=10, max_bins=16, random_state=7).fit(
        table["x"],
        np.column_stack([table["y"], table["dose"] * table["y"]]),
        leaf_channels=table["y"],
        sample_weight=table["weights"],
    )
    assert_same_bits(local.forest_, grown)


def test_cores_of_many_blocks_are_those_of_one(units, features, table):
    from doseforest.doses.bases.splines import Spline
    from doseforest.spark.cluster_units import fold_of
    from doseforest.spark.spline_sums import MOST_TERMS, fit_cores

    x, dose, y = table["x"], table["dose"], table["y"]
    weights = normalised_weights(table["weights"]).astype(np.float64)
    level = float(np.average(y, weights=weights))
    basis = Spline().fit(dose, weights)
    ids = np.arange(N_ROWS)
    rows = RowBlock(x, dose, y, weights, ids, fold_of(ids, N_FOLDS, 0))
    choices = choose_terms(
        OneBlock(rows, N_FOLDS),
        SplineDesign(x, dose, fit_covariate_terms(x), basis),
        features.knots,
        level,
        without_folds=True,
        most=MOST_TERMS,
    )
    cores = fit_cores(units, features, basis, level)
    assert len(cores) == len(choices) == N_FOLDS + 1
    for core, choice in zip(cores, choices, strict=True):
        local = choice.core(level)
        np.testing.assert_allclose(core.predict(x, dose), local.predict(x, dose), atol=1e-6)


def test_folds_of_rows_are_their_ids_alone(units):
    from doseforest.spark.cluster_units import fold_of

    for ids, folds in units.blocks.map(lambda block: (block.ids, block.folds)).collect():
        np.testing.assert_array_equal(folds, fold_of(ids, N_FOLDS, 0))
        assert set(np.unique(folds)) == set(range(N_FOLDS))


def pretended(spark, blocks, n_rows):
    """Units that say that they are more than they are, so that samples are small."""
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.jobs import Kept

    found = spark.sparkContext.parallelize(blocks, len(blocks))
    return Units(found, Kept(), n_rows, 1, N_FOLDS, seed=0, weighted=False)


def block_of(dose, ids, keys=None):

    n = len(dose)
    return RowBlock(np.zeros((n, 1)), dose, np.zeros(n), None, ids, ids % N_FOLDS, {}, keys)


def test_a_level_that_the_sample_misses_is_among_the_doses(spark):
    from doseforest.spark.cluster_fit import _dose_sample

    ids = np.arange(40)
    blocks = [block_of(ids % 3 / 2, ids), block_of(np.full(40, 7.0), ids + 40)]
    units = pretended(spark, blocks, n_rows=10**12)  # a sample of nobody
    np.testing.assert_array_equal(
        _dose_sample(units, DoseRange(0.0, 7.0)).dose, [0.0, 0.5, 1.0, 7.0]
    )
    many = pretended(spark, [block_of(ids / 4, ids)], n_rows=10**12)
    np.testing.assert_array_equal(_dose_sample(many, DoseRange(0.0, 9.75)).dose, [0.0, 9.75])


def test_samples_are_of_rows_not_of_their_groups(spark):
    from doseforest.spark.cluster_fit import _dose_sample

    rows = np.arange(4000)
    block = block_of(rows / 4000, np.zeros(4000, np.int64), keys=rows)
    drawn = _dose_sample(pretended(spark, [block], n_rows=400_000), DoseRange(0.0, 1.0)).dose
    # Half of 4,000 rows with a standard deviation of 32; groups would give all of them or none.
    assert 1800 < len(drawn) < 2200


def test_rows_that_share_an_id_lie_together(spark, monkeypatch):
    from test_spark_estimator import SMALL, columns_of_rows

    from doseforest.spark import SparkCausalForest, estimator

    columns = columns_of_rows(120)
    columns["user"] = columns["user"] % 40  # three rows each, far from one another
    frame = spark.createDataFrame(pa.table(columns)).repartition(4)
    seen = {}

    def stop(frame, summary, n_folds, seed):
        seen["ids"] = frame.select("id").rdd.glom().map(lambda own: [r[0] for r in own]).collect()
        raise KeyboardInterrupt

    monkeypatch.setattr(estimator, "unit_blocks", stop)
    with pytest.raises(KeyboardInterrupt):
        SparkCausalForest(**SMALL).fit(frame)
    places = [set(own) for own in seen["ids"]]
    assert sum(map(len, places)) == 40
