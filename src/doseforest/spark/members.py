"""Regressors of Spark ML as members of the outcome model: fitted without each fold and to all rows.

They see covariates as numbers and, last, the dose.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import RowBlock
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.spark.cluster_units import Units
from doseforest.spark.frame_input import without_pandas_warning
from doseforest.spark.jobs import described
from doseforest.spark.member_trees import REGRESSORS, read_member

SLICE = 16_384
XGBOOST = "SparkXGBRegressor"
PLAIN_OBJECTIVES = (
    *(None, "reg:squarederror", "reg:absoluteerror"),
    *("reg:pseudohubererror", "reg:quantileerror"),
)
SCHEMA = "fold int, x array<double>, label double, weight double"


def check_members(members: Any) -> tuple[Any, ...]:
    """Refuse what is no regressor whose trees can be read."""
    given = [] if members is None else members
    if not isinstance(given, list | tuple):
        raise TypeError(
            "The 'outcomeMembers' parameter must be a list of regressors. "
            f"Got {type(given).__name__} instead."
        )
    for each in given:
        if type(each).__name__ not in REGRESSORS:
            raise TypeError(
                f"The 'outcomeMembers' parameter must hold regressors of trees: "
                f"{', '.join(REGRESSORS)}. Got {type(each).__name__} instead."
            )
        if type(each).__name__ == XGBOOST:
            _check_xgboost(each)
    return tuple(given)


def _check_xgboost(member: Any) -> None:
    """Refuse what makes of the sum of its trees something else than a prediction."""
    for name, known in (("objective", PLAIN_OBJECTIVES), ("booster", (None, "gbtree"))):
        value = member.getOrDefault(name) if member.hasParam(name) else None
        if value not in known:
            listed = ", ".join(repr(one) for one in known if one is not None)
            raise ValueError(
                f"The 'outcomeMembers' parameter must hold a {XGBOOST} whose {name!r} is one of "
                f"{listed}. Got {value!r} instead."
            )
    missing = member.getOrDefault("missing") if member.hasParam("missing") else None
    if missing is not None and not np.isnan(missing):
        raise ValueError(
            f"The 'outcomeMembers' parameter must hold a {XGBOOST} whose 'missing' is NaN. "
            f"Got {missing!r} instead."
        )


def member_names(members: Sequence[Any]) -> list[str]:
    """Names of members: their classes, numbered where there are several of one."""
    names: list[str] = []
    for member in members:
        name = type(member).__name__
        n_before = sum(other.split(" ")[0] == name for other in names)
        names.append(f"{name} {n_before + 1}" if n_before else name)
    return names


def fit_given(units: Units, members: Sequence[Any]) -> list[dict[str, OutcomeModel]]:
    """Fit members without each fold, and last to all rows."""
    if not members:
        return [{} for _ in range(units.n_folds + 1)]
    fill = _below_all(units)
    frame = units.kept.keep(_frame(units, fill))
    result: list[dict[str, OutcomeModel]] = []
    for fold in (*range(units.n_folds), None):
        rows = frame if fold is None else frame.where(f"fold != {fold}")
        seen = "all rows" if fold is None else f"rows outside fold {fold}"
        fitted: dict[str, OutcomeModel] = {}
        for name, member in zip(member_names(members), members, strict=True):
            what = described(units.context, f"{name} of the outcome, {seen}")
            with what, without_pandas_warning():
                fitted[name] = read_member(_for_units(member, units).fit(rows), fill)
        result.append(fitted)
    units.kept.release(frame)
    return result


def _for_units(member: Any, units: Units) -> Any:
    """The regressor on our columns; weights where it takes them, our seed where it has none."""
    given = {"featuresCol": "features", "labelCol": "label", "predictionCol": "prediction"}
    if units.weighted and member.hasParam("weightCol"):
        given["weightCol"] = "weight"
    drawn = {
        name: units.seed % 2**31
        for name in ("seed", "random_state")
        if member.hasParam(name) and not member.isSet(name)
    }
    return member.copy({member.getParam(name): each for name, each in {**given, **drawn}.items()})


def _below_all(units: Units) -> FloatArray:
    """A number below all values of each covariate."""

    def ends(block: RowBlock) -> tuple[FloatArray, ...]:
        low = np.where(np.isnan(block.numbers), np.inf, block.numbers)
        high = np.where(np.isnan(block.numbers), -np.inf, block.numbers)
        return -low.min(axis=0, initial=np.inf), high.max(axis=0, initial=-np.inf)

    minus_low, high = units.largest("range of the covariates", ends)
    known = np.isfinite(high)
    low = np.where(known, -minus_low, 0.0)
    return low - np.where(known, high - low, 0.0) - 1.0


def _frame(units: Units, fill: FloatArray) -> Any:
    """The units as a data frame of vectors, labels, weights and folds."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession

    def slices(block: RowBlock) -> Iterator[tuple[bytearray]]:
        for first in range(0, len(block), SLICE):
            rows = slice(first, first + SLICE)
            numbers = block.numbers[rows]
            x = np.column_stack([np.where(np.isnan(numbers), fill, numbers), block.dose[rows]])
            columns = block.folds[rows], x, block.y[rows], block.row_weights[rows]
            yield (bytearray(pickle.dumps(columns, protocol=pickle.HIGHEST_PROTOCOL)),)

    session = SparkSession.builder.getOrCreate()
    packed = session.createDataFrame(units.blocks.flatMap(slices), "packed binary")
    with without_pandas_warning():
        rows = packed.mapInArrow(_unpacked, SCHEMA)
    return rows.withColumn("features", array_to_vector("x")).drop("x")


def _unpacked(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        for packed in batch.column("packed"):
            folds, x, y, weights = pickle.loads(packed.as_py())
            offsets = np.arange(len(x) + 1, dtype=np.int32) * x.shape[1]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(folds.astype(np.int32)),
                    pa.ListArray.from_arrays(pa.array(offsets), pa.array(x.ravel())),
                    pa.array(y),
                    pa.array(weights),
                ],
                ["fold", "x", "label", "weight"],
            )
