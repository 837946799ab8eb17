"""The columns of a data frame that a fit or a model reads, checked before the first job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray
from doseforest.data.feature_table import Categories
from doseforest.doses.dose_values import Doses
from doseforest.spark.category_columns import CategoryPlaces, category_places, is_text


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """Names of the columns that a fit reads; None where there is none."""

    features: str | tuple[str, ...]  # a column of vectors or arrays, or columns of one feature
    treatment: tuple[str, ...]  # one column, or one for each component of the dose
    label: str
    weight: str | None = None
    group: str | None = None
    row_id: str | None = None
    categorical: tuple[str, ...] = ()  # features whose numbers are codes of categories

    @property
    def treatment_parameter(self) -> str:
        """The parameter that names the treatment."""
        return treatment_parameter(self.treatment)


def treatment_parameter(treatment: tuple[str, ...]) -> str:
    """The parameter that names columns of the dose.

    >>> treatment_parameter(("discount",))
    'treatmentCol'
    """
    return "treatmentCol" if len(treatment) == 1 else "treatmentCols"


def check_columns(frame: Any, columns: FrameColumns) -> None:
    """Check that the columns are there and of the right type; runs no job."""
    _check_session(frame)
    check_features(frame, columns.features)
    names = feature_names(frame, columns.features)
    category_places(frame, columns.features, names, columns.categorical)
    for parameter, name in (
        *((columns.treatment_parameter, name) for name in columns.treatment),
        ("labelCol", columns.label),
        ("weightCol", columns.weight),
    ):
        if name is not None:
            check_numeric(frame, parameter, name)
    for parameter, name in (("groupCol", columns.group), ("rowIdCol", columns.row_id)):
        if name is not None:
            _check_id(frame, parameter, name)


def _check_session(frame: Any) -> None:
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise TypeError(
            "The data frame must belong to a classic Spark session: growth keeps rows in RDDs, "
            "which Spark Connect lacks. Got a data frame of Spark Connect instead."
        )


def column_type(frame: Any, parameter: str, name: str) -> Any:
    """Type of a column that must be there."""
    if name not in frame.columns:
        raise ValueError(
            f"The {parameter!r} parameter must name a column of the data frame. Got {name!r} "
            f"instead; its columns are {', '.join(map(repr, frame.columns))}."
        )
    return frame.schema[name].dataType


def check_numeric(frame: Any, parameter: str, name: str) -> None:
    """Refuse a column that is not of numbers or booleans."""
    from pyspark.sql.types import BooleanType, NumericType

    kind = column_type(frame, parameter, name)
    if not isinstance(kind, NumericType | BooleanType):
        raise TypeError(
            f"The {parameter!r} column {name!r} must hold numbers. "
            f"Got {kind.simpleString()} instead."
        )


def check_features(
    frame: Any, features: str | tuple[str, ...], categories: Categories | None = None
) -> None:
    """Refuse features that are not there, or are neither numbers nor text.

    With `categories`, those that a model was trained with: text must be where it was.
    """
    if isinstance(features, str):
        kind = column_type(frame, "featuresCol", features)
        if not (is_vector(kind) or _is_array_of_numbers(kind)):
            raise TypeError(
                f"The 'featuresCol' column {features!r} must hold vectors or arrays of numbers. "
                f"Got {kind.simpleString()} instead; name columns by 'featureCols'."
            )
        if categories is not None and CategoryPlaces.of_labels(categories).texts:
            raise TypeError(
                "The 'featureCols' parameter must name the columns: some were text in training. "
                f"Got the vectors of 'featuresCol' {features!r} instead."
            )
        return
    if not features:
        raise ValueError("The 'featureCols' parameter must name a column. Got [] instead.")
    texts = None if categories is None else CategoryPlaces.of_labels(categories).texts
    for place, name in enumerate(features):
        kind = column_type(frame, "featureCols", name)
        if not is_text(frame, name):
            check_numeric(frame, "featureCols", name)
        unlabelled = categories is not None and categories.get(place) == ()  # all null in training
        if texts is not None and not unlabelled and is_text(frame, name) != (place in texts):
            raise TypeError(
                f"The 'featureCols' column {name!r} must hold "
                f"{'text' if place in texts else 'numbers'}, as in training. "
                f"Got {kind.simpleString()} instead."
            )


def _check_id(frame: Any, parameter: str, name: str) -> None:
    from pyspark.sql.types import IntegralType, StringType

    kind = column_type(frame, parameter, name)
    if not isinstance(kind, IntegralType | StringType):
        raise TypeError(
            f"The {parameter!r} column {name!r} must hold whole numbers or text. "
            f"Got {kind.simpleString()} instead."
        )


def is_vector(kind: Any) -> bool:
    """Whether a column of this type holds vectors of Spark ML."""
    return type(kind).__name__ == "VectorUDT"


def _is_array_of_numbers(kind: Any) -> bool:
    from pyspark.sql.types import ArrayType, NumericType

    return isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType)


def features_array(frame: Any, features: str | tuple[str, ...]) -> Any:
    """Column expression: the features of a row as one array of doubles, null where one is text."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    if not isinstance(features, str):
        nothing = F.lit(None).cast("double")
        return F.array(
            *(
                nothing if is_text(frame, feature) else column(feature).cast("double")
                for feature in features
            )
        )
    if is_vector(frame.schema[features].dataType):
        return vector_to_array(column(features))
    return column(features).cast("array<double>")


def text_places(frame: Any, features: str | tuple[str, ...]) -> tuple[int, ...]:
    """Places of the features that are text, in the order of `texts_array`."""
    named = () if isinstance(features, str) else features
    return tuple(place for place, name in enumerate(named) if is_text(frame, name))


def texts_array(frame: Any, features: str | tuple[str, ...]) -> Any:
    """Column expression: the features of a row that are text as one array."""
    from pyspark.sql import functions as F  # noqa: N812

    named = () if isinstance(features, str) else features
    columns_of_text = [column(name).cast("string") for name in named if is_text(frame, name)]
    return F.array(*columns_of_text).cast("array<string>")


def doses_column(treatment: tuple[str, ...]) -> Any:
    """Column expression: the dose of a row, a number or an array of its components."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = [column(name).cast("double") for name in treatment]
    return parts[0] if len(parts) == 1 else F.array(*parts)


def dose_records(doses: Any, n_components: int) -> DoseArray:
    """Doses of an Arrow array that `doses_column` has made; NaN where one is null."""
    if n_components == 1:
        return np.array(doses.to_numpy(zero_copy_only=False), np.float64)
    flat = np.array(doses.flatten().to_numpy(zero_copy_only=False), np.float64)
    return Doses.of_table(flat.reshape(-1, n_components)).values


def column(name: str) -> Any:
    """Column expression of a name, which may have dots."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(f"`{name}`")


def feature_names(frame: Any, features: str | tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of the features: of their columns, or as the metadata of a vector has them."""
    if not isinstance(features, str):
        return features
    attributes = frame.schema[features].metadata.get("ml_attr", {}).get("attrs", {})
    result = {each["idx"]: each.get("name") for kind in attributes.values() for each in kind}
    names = tuple(result.get(place) for place in range(len(result)))
    known = bool(names) and all(isinstance(name, str) for name in names)
    return names if known and len(set(names)) == len(names) else None  # type: ignore[return-value]
