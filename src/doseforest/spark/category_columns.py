"""Categorical features of a data frame: which they are, their labels, and rows as codes.

Text is categorical, and so are numbers that a `StringIndexer` made or that 'categoricalCols' names.
Codes are those of `doseforest.data.categories`: the most frequent label is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.categories import LARGEST_CODE, checked_labels, recoded
from doseforest.data.feature_table import ArrayTable, Categories, Label
from doseforest.spark.jobs import described

MOST_LEVELS = 10_000  # of a column: sums over its levels and folds pass through the driver


@dataclass(frozen=True, slots=True)
class CategoryPlaces:
    """Places of the categorical features among all features."""

    texts: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.numbers)

    @staticmethod
    def of_labels(categories: Categories) -> CategoryPlaces:
        """Places of features whose labels are known.

        >>> CategoryPlaces.of_labels({1: ("b", "a"), 4: (0, 2)})
        CategoryPlaces(texts=(1,), numbers=(4,))
        """
        texts = [f for f, labels in categories.items() if any(isinstance(x, str) for x in labels)]
        numbers = [feature for feature in categories if feature not in texts]
        return CategoryPlaces(tuple(sorted(texts)), tuple(sorted(numbers)))


def category_places(
    frame: Any,
    features: str | tuple[str, ...],
    names: tuple[str, ...] | None,
    declared: Collection[str] = (),
) -> CategoryPlaces:
    """Categorical features by their types, their metadata, or because a user says so."""
    for name in declared:
        if name not in (names or ()):
            known_names = ", ".join(map(repr, names or ())) or "without names"
            raise ValueError(
                "The 'categoricalCols' parameter must name features. "
                f"Got {name!r} instead; the features are {known_names}."
            )
    known = {place for place, name in enumerate(names or ()) if name in declared}
    if isinstance(features, str):
        attributes = _attributes(frame, features).get("attrs", {})
        return CategoryPlaces(
            numbers=tuple(sorted(known | {each["idx"] for each in attributes.get("nominal", ())}))
        )
    texts = tuple(place for place, name in enumerate(features) if is_text(frame, name))
    nominal = {
        place
        for place, name in enumerate(features)
        if _attributes(frame, name).get("type") == "nominal"
    }
    return CategoryPlaces(texts, tuple(sorted((known | nominal) - set(texts))))


def is_text(frame: Any, name: str) -> bool:
    """Whether a column holds text."""
    kind: str = frame.schema[name].dataType.typeName()
    return kind in ("string", "char", "varchar")


def _attributes(frame: Any, name: str) -> dict[str, Any]:
    result: dict[str, Any] = frame.schema[name].metadata.get("ml_attr", {})
    return result


def learn_labels(
    frame: Any, places: CategoryPlaces, names: tuple[str, ...] | None
) -> dict[int, tuple[Label, ...]]:
    """Labels of the categorical features of a prepared frame, by their frequency."""
    from pyspark.sql import functions as F  # noqa: N812

    if not places:
        return {}
    context = frame.sparkSession.sparkContext
    counted = frame.where(F.col("w") > 0)
    result: dict[int, list[tuple[Any, int]]] = {
        place: [] for place in places.texts + places.numbers
    }
    numbers = [F.col("features")[place] for place in places.numbers]
    for each, values in (
        (places.texts, F.col("texts")),
        (places.numbers, F.array(*(F.when(~F.isnan(value), value) for value in numbers))),
    ):
        if each:
            with described(context, "count the levels of categories"):
                for number, value, count in _counts(counted, values, len(each)):
                    result[each[number]].append((value, count))
    return {
        place: _ordered(result[place], str(place) if names is None else repr(names[place]))
        for place in sorted(result)
    }


def _counts(frame: Any, values: Any, n_columns: int) -> Iterator[tuple[int, Any, int]]:
    """Place in the array, value and number of rows, of one level too many at most."""
    from pyspark.sql import functions as F  # noqa: N812

    each = frame.select(F.posexplode(values).alias("place", "value"))
    counts = each.where(F.col("value").isNotNull()).groupBy("place", "value").count()
    for row in counts.limit(n_columns * MOST_LEVELS + 1).collect():
        yield row["place"], row["value"], row["count"]


def _ordered(found: list[tuple[Any, int]], column: str) -> tuple[Label, ...]:
    """Labels by frequency, those of equal frequency by their order."""
    if len(found) > MOST_LEVELS:
        raise ValueError(
            f"The categorical column {column} must have at most {MOST_LEVELS:,} levels on Spark. "
            "Got more instead; join rare ones, or give what they have in common as features."
        )
    for value, _ in found:
        if not isinstance(value, str) and not (0 <= value <= LARGEST_CODE and value % 1 == 0):
            raise ValueError(
                f"The categorical column {column} must hold whole numbers from 0 to 2^53, or text. "
                f"Got {value} instead."
            )
    labels = checked_labels([value for value, _ in found], column)
    counts = [count for _, count in found]
    return tuple(
        label for _, label in sorted(zip((-count for count in counts), labels, strict=True))
    )


def coded_rows(
    values: FloatArray,
    texts: Any,
    text_places: tuple[int, ...],
    categories: Categories,
    names: tuple[str, ...] | None = None,
) -> FloatArray:
    """Features with codes in the place of categories; NaN where a label is null or unknown.

    Parameters
    ----------
    values : array of shape (n_rows, n_features)
        NaN in the columns of text.
    texts : Arrow array of lists
        The texts of each row.
    text_places : tuple of int
        Features that hold them, in this order.
    """
    if not categories:
        return values
    import pyarrow as pa
    import pyarrow.compute as pc

    numeric = {name: labels for name, labels in categories.items() if name not in text_places}
    table = ArrayTable(values, names, block_rows=max(len(values), 1))
    coded = np.empty(values.shape)
    for _, block in recoded(table, numeric).blocks():
        coded[:] = block
    flat, n_texts = texts.flatten(), len(text_places)
    for number, feature in enumerate(text_places):
        own = flat.take(pa.array(np.arange(number, len(values) * n_texts, n_texts)))
        labels = pa.array(categories[feature], pa.string())
        coded[:, feature] = pc.index_in(own.cast(pa.string()), value_set=labels).to_numpy(
            zero_copy_only=False
        )
    return coded
