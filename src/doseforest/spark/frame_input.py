"""From a data frame to blocks of rows: columns are checked before the first job, values in it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.data.exact_grid import grid_steps
from doseforest.data.table import Categories
from doseforest.data.training_rows import FEWEST_ROWS
from doseforest.dtypes import ChannelArray, FloatArray
from doseforest.spark.category_columns import category_places, coded_rows, learn_labels
from doseforest.spark.frame_columns import (
    Columns,
    column,
    feature_names,
    features_array,
    texts_array,
)
from doseforest.spark.jobs import described
from doseforest.spark.units import UnitBlock, add_up, fold_of

LARGEST_VALUE = 1e30  # of a treatment or label: squares of it stay finite


@dataclass(frozen=True, slots=True)
class FrameSummary:
    """What one pass over a frame tells."""

    n_rows: int  # of positive weight
    n_features: int
    names: tuple[str, ...] | None
    lowest_dose: float
    highest_dose: float
    binary: bool  # all outcomes are zeros and ones
    heaviest: float | None  # None: no weights, or all equal
    treatment: str = "dose"  # name of the column
    categories: Categories = field(default_factory=dict)  # labels of the categorical features
    text_places: tuple[int, ...] = ()  # features that are text


def prepared_frame(frame: Any, columns: Columns, n_partitions: int | None) -> Any:
    """The columns of a fit under fixed names: features, texts, dose, y, w, id."""
    from pyspark.sql import functions as F  # noqa: N812

    group_or_id = columns.group or columns.row_id
    if group_or_id is None:
        number = F.monotonically_increasing_id()
    elif frame.schema[group_or_id].dataType.simpleString() == "string":
        number = F.xxhash64(column(group_or_id))
    else:
        number = column(group_or_id).cast("long")
    weight = F.lit(1.0) if columns.weight is None else column(columns.weight).cast("double")
    selected = frame.select(
        features_array(frame, columns.features).alias("features"),
        texts_array(frame, columns.features).alias("texts"),
        column(columns.treatment).cast("double").alias("dose"),
        column(columns.label).cast("double").alias("y"),
        weight.alias("w"),
        number.alias("id"),
    )
    if columns.group is None and n_partitions is None:
        return selected
    # Rows of a group are summed together, so they must lie together.
    return selected.repartition(n_partitions or frame.rdd.getNumPartitions(), "id")


def summarise_frame(frame: Any, columns: Columns, names: tuple[str, ...] | None) -> FrameSummary:
    """Check the values of a prepared frame and tell what is known of them, in one job."""
    from pyspark.sql import functions as F  # noqa: N812

    weighted = columns.weight is not None
    counted = F.col("w") > 0

    def count(condition: Any) -> Any:
        return F.coalesce(F.sum(condition.cast("long")), F.lit(0))

    def bad(name: str) -> Any:
        value = F.col(name)
        return count(value.isNull() | F.isnan(value) | (F.abs(value) > LARGEST_VALUE))

    aggregates = {
        "n": F.count(F.lit(1)),
        "n_counted": count(counted),
        "no_dose": bad("dose"),
        "no_y": bad("y"),
        "no_weight": bad("w"),
        "negative": count(F.col("w") < 0),
        "no_features": count(F.col("features").isNull()),
        "no_id": count(F.col("id").isNull()),
        "infinite": count(F.exists("features", lambda own: F.abs(own) == F.lit(float("inf")))),
        "fewest": F.min(F.size("features")),
        "most": F.max(F.size("features")),
        "lowest": F.min(F.when(counted, F.col("dose"))),
        "highest": F.max(F.when(counted, F.col("dose"))),
        "other_y": count(counted & ~F.col("y").isin(0.0, 1.0)),
        "lightest": F.min(F.when(counted, F.col("w"))),
        "heaviest": F.max("w"),
    }
    with described(frame.sparkSession.sparkContext, "check the rows"):
        found = frame.agg(*(own.alias(name) for name, own in aggregates.items())).first()
    _refuse_values(found, columns)
    equal = found["lightest"] == found["heaviest"]
    n_features = int(found["most"])
    return FrameSummary(
        n_rows=int(found["n_counted"]),
        n_features=n_features,
        names=names if names is not None and len(names) == n_features else None,
        lowest_dose=float(found["lowest"]),
        highest_dose=float(found["highest"]),
        binary=found["other_y"] == 0,
        heaviest=float(found["heaviest"]) if weighted and not equal else None,
        treatment=columns.treatment,
    )


def _refuse_values(found: Any, columns: Columns) -> None:
    features = columns.features if isinstance(columns.features, str) else None
    for parameter, name, place, rule in (
        ("treatmentCol", columns.treatment, "no_dose", "finite numbers below 1e30, without null"),
        ("labelCol", columns.label, "no_y", "finite numbers below 1e30, without null"),
        ("weightCol", columns.weight, "no_weight", "finite numbers, without null"),
        ("weightCol", columns.weight, "negative", "weights of 0 or more"),
        ("groupCol", columns.group, "no_id", "the group of every row, without null"),
        ("rowIdCol", None if columns.group else columns.row_id, "no_id", "ids, without null"),
        ("featuresCol", features, "no_features", "the features of every row, without null"),
        ("featuresCol", features, "infinite", "finite features, or NaN where one is missing"),
    ):
        if name is not None and found[place]:
            raise ValueError(
                f"The {parameter!r} column {name!r} must hold {rule}. "
                f"Got {found[place]} other row(s) of {found['n']} instead."
            )
    if found["infinite"]:
        raise ValueError(
            "The 'featureCols' columns must hold finite numbers, or null or NaN where one is "
            f"missing. Got {found['infinite']} row(s) with an infinite one instead."
        )
    if found["n_counted"] < FEWEST_ROWS:
        raise ValueError(
            f"The data frame must have at least {FEWEST_ROWS} rows of positive weight. "
            f"Got {found['n_counted']} instead."
        )
    if found["fewest"] != found["most"]:
        raise ValueError(
            f"The 'featuresCol' column {features!r} must hold vectors of one size. "
            f"Got sizes from {found['fewest']} to {found['most']} instead."
        )
    if not found["most"]:
        raise ValueError(
            f"The 'featuresCol' column {features!r} must hold a feature. Got empty vectors instead."
        )
    if found["lowest"] == found["highest"]:
        raise ValueError(
            f"The 'treatmentCol' column {columns.treatment!r} must vary: a constant dose has no "
            f"effect to learn. Got {found['lowest']:g} in every row instead."
        )


def with_labels(frame: Any, prepared: Any, columns: Columns, summary: FrameSummary) -> FrameSummary:
    """The summary of a prepared frame with the labels of its categories, in another job."""
    places = category_places(
        frame, columns.features, feature_names(frame, columns.features), columns.categorical
    )
    labels = learn_labels(prepared, places, summary.names)
    return replace(summary, categories=labels, text_places=places.texts)


def unit_blocks(frame: Any, summary: FrameSummary, n_folds: int, seed: int) -> Any:
    """RDD of one `UnitBlock` for every partition of a prepared frame."""
    n_features, weighted = summary.n_features, summary.heaviest is not None
    labels = summary.text_places, summary.categories

    def pickled(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            block = _block(batch, n_features, labels, weighted, n_folds, seed)
            data = pickle.dumps(block, protocol=pickle.HIGHEST_PROTOCOL)
            yield pa.RecordBatch.from_pydict({"block": pa.array([data], pa.large_binary())})

    with without_pandas_warning():
        rows = frame.mapInArrow(pickled, "block binary").rdd
    blocks = rows.mapPartitions(
        lambda own: [UnitBlock.join((pickle.loads(row[0]) for row in own), n_features)]
    )
    if not weighted:
        return blocks
    scaled = _weight_scale(blocks, summary)
    return blocks.map(lambda block: _with_weights(block, scaled))


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Spark looks for pandas before it uses Arrow, and warns of versions that do not matter."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield


def _block(
    batch: Any,
    n_features: int,
    labels: tuple[tuple[int, ...], Categories],
    weighted: bool,
    n_folds: int,
    seed: int,
) -> UnitBlock:
    def numbers(name: str) -> FloatArray:
        return np.array(batch.column(name).to_numpy(zero_copy_only=False), np.float64)

    weights = numbers("w")
    kept = weights > 0
    flat = batch.column("features").flatten().to_numpy(zero_copy_only=False)
    X = np.array(flat, np.float64).reshape(len(weights), n_features)
    X = coded_rows(X, batch.column("texts"), *labels)
    ids = np.array(batch.column("id").to_numpy(zero_copy_only=False), np.int64)[kept]
    return UnitBlock(
        X=X[kept],
        dose=numbers("dose")[kept] + 0.0,  # no negative zero
        y=numbers("y")[kept],
        weights=weights[kept].astype(np.float64) if weighted else None,
        ids=ids,
        folds=fold_of(ids, n_folds, seed),
    )


def _weight_scale(blocks: Any, summary: FrameSummary) -> Callable[[FloatArray], ChannelArray]:
    """How weights are brought to mean 1; the twin of `normalised_weights`."""
    assert summary.heaviest is not None
    exponent = -int(np.frexp(summary.heaviest)[1])
    first = grid_steps(np.array([np.ldexp(summary.heaviest, exponent)]))

    def rounded(weights: FloatArray) -> FloatArray:
        on_grid = np.rint(np.ldexp(weights, exponent) / first) * first
        return on_grid.astype(np.float32).astype(np.float64)

    (total,) = add_up(blocks, "sum of the weights", lambda own: (rounded(own.own_weights).sum(),))
    factor = summary.n_rows / total
    second = grid_steps(rounded(np.array([summary.heaviest])) * factor)

    def scaled(weights: FloatArray) -> ChannelArray:
        own: ChannelArray = (np.rint(rounded(weights) * factor / second) * second).astype(
            np.float32
        )
        return own

    return scaled


def _with_weights(block: UnitBlock, scaled: Callable[[FloatArray], ChannelArray]) -> UnitBlock:
    return replace(block, weights=scaled(block.own_weights))  # a block without rows has none
