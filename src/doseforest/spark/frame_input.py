"""From a data frame to blocks of rows: columns are checked before the first job, values in it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import ChannelArray, DoseArray, FloatArray, IntArray
from doseforest.data.exact_grid import grid_steps
from doseforest.data.feature_table import Categories
from doseforest.data.row_blocks import RowBlock
from doseforest.doses.boxes import DoseBox
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange
from doseforest.estimator.training_rows import FEWEST_ROWS
from doseforest.spark.category_columns import category_places, coded_rows, learn_labels
from doseforest.spark.cluster_units import add_up, fold_of, joined_blocks
from doseforest.spark.frame_columns import (
    FrameColumns,
    column,
    dose_records,
    doses_column,
    feature_names,
    features_array,
    texts_array,
)
from doseforest.spark.jobs import described

FEWEST_GROUPS = 3  # in a fold on average: rarely do all of them fall into one
LARGEST_VALUE = 1e30  # of a treatment or label: squares of it stay finite


@dataclass(frozen=True, slots=True)
class FrameSummary:
    """What one pass over a frame tells."""

    n_rows: int  # of positive weight
    n_features: int
    names: tuple[str, ...] | None
    support: DoseRange | DoseBox
    binary: bool  # all outcomes are zeros and ones
    heaviest: float | None  # None: no weights, or all equal
    treatment: tuple[str, ...] = ("dose",)  # names of the columns
    categories: Categories = field(default_factory=dict)  # labels of the categorical features
    text_places: tuple[int, ...] = ()  # features that are text


def prepared_frame(frame: Any, columns: FrameColumns, n_partitions: int | None) -> Any:
    """The columns of a fit under fixed names: features, texts, dose, y, w, id; key with groups."""
    from pyspark.sql import functions as F  # noqa: N812

    number = _number(frame, columns.group or columns.row_id)
    weight = F.lit(1.0) if columns.weight is None else column(columns.weight).cast("double")
    keys = []
    if columns.group is not None and columns.row_id is not None:
        keys = [F.coalesce(_number(frame, columns.row_id), F.lit(0)).alias("key")]
    selected = frame.select(
        features_array(frame, columns.features).alias("features"),
        texts_array(frame, columns.features).alias("texts"),
        doses_column(columns.treatment).alias("dose"),
        column(columns.label).cast("double").alias("y"),
        weight.alias("w"),
        number.alias("id"),
        *keys,
    )
    if columns.group is None:
        return selected if n_partitions is None else selected.repartition(n_partitions, "id")
    if not keys:
        selected = selected.withColumn("key", F.xxhash64("features", "texts", "dose", "y", "id"))
    return lying_together(selected, n_partitions)


def _number(frame: Any, name: str | None) -> Any:
    """Column expression: a whole number for the id or group of a row, null where that is null."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType

    if name is None:
        return F.monotonically_increasing_id()
    if isinstance(frame.schema[name].dataType, StringType):
        return F.when(column(name).isNotNull(), F.xxhash64(column(name).cast("string")))
    return column(name).cast("long")


def lying_together(prepared: Any, n_partitions: int | None) -> Any:
    """The rows with all of one id in one partition: some sums are over them first."""
    return prepared.repartition(n_partitions or prepared.rdd.getNumPartitions(), "id")


def summarise_frame(
    frame: Any, columns: FrameColumns, names: tuple[str, ...] | None
) -> FrameSummary:
    """Check the values of a prepared frame and tell what is known of them, in one job."""
    from pyspark.sql import functions as F  # noqa: N812

    weighted = columns.weight is not None
    counted = F.col("w") > 0

    def count(condition: Any) -> Any:
        return F.coalesce(F.sum(condition.cast("long")), F.lit(0))

    def bad(value: Any, among: Any) -> Any:
        return count(among & (value.isNull() | F.isnan(value) | (F.abs(value) > LARGEST_VALUE)))

    places = range(len(columns.treatment))
    doses = [F.col("dose")[place] for place in places] if len(places) > 1 else [F.col("dose")]
    aggregates = {
        "n": F.count(F.lit(1)),
        "n_counted": count(counted),
        **{f"no_dose_{place}": bad(doses[place], counted) for place in places},
        "no_y": bad(F.col("y"), counted),
        "no_weight": bad(F.col("w"), F.lit(True)),
        "negative": count(F.col("w") < 0),
        "no_features": count(F.col("features").isNull()),
        "no_id": count(counted & F.col("id").isNull()),
        "infinite": count(
            counted & F.exists("features", lambda value: F.abs(value) == F.lit(float("inf")))
        ),
        "fewest": F.min(F.size("features")),
        "most": F.max(F.size("features")),
        **{f"lowest_{place}": F.min(F.when(counted, doses[place])) for place in places},
        **{f"highest_{place}": F.max(F.when(counted, doses[place])) for place in places},
        "other_y": count(counted & ~F.col("y").isin(0.0, 1.0)),
        "lightest": F.min(F.when(counted, F.col("w"))),
        "heaviest": F.max("w"),
    }
    with described(frame.sparkSession.sparkContext, "check the rows"):
        result = frame.agg(
            *(aggregate.alias(name) for name, aggregate in aggregates.items())
        ).first()
    _refuse_values(result, columns)
    if result["infinite"]:
        _refuse_infinite(frame.where(counted), columns)
    equal = result["lightest"] == result["heaviest"]
    ranges = tuple(
        DoseRange(float(result[f"lowest_{place}"]), float(result[f"highest_{place}"]))
        for place in places
    )
    n_features = int(result["most"])
    return FrameSummary(
        n_rows=int(result["n_counted"]),
        n_features=n_features,
        names=names if names is not None and len(names) == n_features else None,
        support=ranges[0] if len(ranges) == 1 else DoseBox(ranges),
        binary=result["other_y"] == 0,
        heaviest=float(result["heaviest"]) if weighted and not equal else None,
        treatment=columns.treatment,
    )


def count_ids(frame: Any) -> int:
    """Different ids, or groups, of the rows that count."""
    with described(frame.sparkSession.sparkContext, "count the ids"):
        return int(frame.where("w > 0").select("id").distinct().count())


def check_groups(n_ids: int, columns: FrameColumns, n_folds: int) -> None:
    """Refuse groups, or ids that rows share, too few for the folds."""
    parameter, name = "groupCol", columns.group
    if name is None:
        parameter, name = "rowIdCol", columns.row_id
    least = FEWEST_GROUPS * n_folds
    if n_ids < least:
        raise ValueError(
            f"The {parameter!r} column {name!r} must have at least {least} different values for "
            f"{n_folds} folds, which share them out by hash. Got {n_ids} instead."
        )


def _refuse_values(found: Any, columns: FrameColumns) -> None:
    features = columns.features if isinstance(columns.features, str) else None
    named = columns.treatment_parameter
    for parameter, name, place, rule in (
        *(
            (named, name, f"no_dose_{number}", "finite numbers below 1e30, without null")
            for number, name in enumerate(columns.treatment)
        ),
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
    for number, name in enumerate(columns.treatment):
        lowest = found[f"lowest_{number}"]
        if lowest == found[f"highest_{number}"]:
            raise ValueError(
                f"The {named!r} column {name!r} must vary: a constant dose has no effect to "
                f"learn. Got {lowest:g} in every row instead."
            )


def _refuse_infinite(frame: Any, columns: FrameColumns) -> None:
    """Name the first feature with an infinite value, which some row has."""
    from pyspark.sql import functions as F  # noqa: N812

    with described(frame.sparkSession.sparkContext, "look for infinite features"):
        counts = frame.agg(
            *(
                F.sum((F.abs(F.col("features")[place]) == F.lit(float("inf"))).cast("long"))
                for place in range(len(columns.features))
            )
        ).first()
    name, count = next((name, n) for name, n in zip(columns.features, counts, strict=True) if n)
    raise ValueError(
        f"The 'featureCols' column {name!r} must hold finite numbers, or null or NaN where one is "
        f"missing. Got {count} infinite one(s) instead."
    )


def with_labels(
    frame: Any, prepared: Any, columns: FrameColumns, summary: FrameSummary
) -> FrameSummary:
    """The summary of a prepared frame with the labels of its categories, in another job."""
    places = category_places(
        frame, columns.features, feature_names(frame, columns.features), columns.categorical
    )
    labels = learn_labels(prepared, places, summary.names)
    return replace(summary, categories=labels, text_places=places.texts)


def unit_blocks(frame: Any, summary: FrameSummary, n_folds: int, seed: int) -> Any:
    """RDD of one `RowBlock` for every partition of a prepared frame."""
    n_features, weighted = summary.n_features, summary.heaviest is not None
    n_components = len(summary.treatment)
    labels = summary.text_places, summary.categories

    def pickled(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            block = _block(batch, n_features, n_components, labels, weighted, n_folds, seed)
            data = pickle.dumps(block, protocol=pickle.HIGHEST_PROTOCOL)
            yield pa.RecordBatch.from_pydict({"block": pa.array([data], pa.large_binary())})

    with without_pandas_warning():
        rows = frame.mapInArrow(pickled, "block binary").rdd

    def joined(own: Iterator[Any]) -> list[RowBlock]:
        return [joined_blocks((pickle.loads(row[0]) for row in own), n_features, n_components)]

    blocks = rows.mapPartitions(joined)
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
    n_components: int,
    labels: tuple[tuple[int, ...], Categories],
    weighted: bool,
    n_folds: int,
    seed: int,
) -> RowBlock:
    import pyarrow as pa

    def numbers(name: str) -> FloatArray:
        return np.array(batch.column(name).to_numpy(zero_copy_only=False), np.float64)

    weights = numbers("w")
    kept = weights > 0
    flat = batch.column("features").flatten().to_numpy(zero_copy_only=False)
    X = np.array(flat, np.float64).reshape(len(weights), n_features)
    X = coded_rows(X, batch.column("texts"), *labels)

    def whole(name: str) -> IntArray:  # of rows that count, of which none is null
        chosen = batch.column(name).filter(pa.array(kept))
        return np.array(chosen.to_numpy(zero_copy_only=False), np.int64)

    ids = whole("id")
    return RowBlock(
        X=X[kept],
        dose=_without_negative_zeros(dose_records(batch.column("dose"), n_components)[kept]),
        y=numbers("y")[kept],
        weights=weights[kept].astype(np.float64) if weighted else None,
        ids=ids,
        folds=fold_of(ids, n_folds, seed),
        keys=whole("key") if "key" in batch.schema.names else None,
    )


def _without_negative_zeros(dose: DoseArray) -> DoseArray:
    return Doses.of_table(Doses.of(dose).table + 0.0).values


def _weight_scale(blocks: Any, summary: FrameSummary) -> Callable[[FloatArray], ChannelArray]:
    """How weights are brought to mean 1; the twin of `normalised_weights`."""
    assert summary.heaviest is not None
    exponent = -int(np.frexp(summary.heaviest)[1])
    first = grid_steps(np.array([np.ldexp(summary.heaviest, exponent)]))

    def rounded(weights: FloatArray) -> FloatArray:
        on_grid = np.rint(np.ldexp(weights, exponent) / first) * first
        return on_grid.astype(np.float32).astype(np.float64)

    (total,) = add_up(blocks, "sum of the weights", lambda each: (rounded(each.row_weights).sum(),))
    factor = summary.n_rows / total
    second = grid_steps(rounded(np.array([summary.heaviest])) * factor)

    def scaled(weights: FloatArray) -> ChannelArray:
        rounded_weights: ChannelArray = (
            np.rint(rounded(weights) * factor / second) * second
        ).astype(np.float32)
        return rounded_weights

    return scaled


def _with_weights(block: RowBlock, scaled: Callable[[FloatArray], ChannelArray]) -> RowBlock:
    return replace(block, weights=scaled(block.row_weights))  # a block without rows has none
