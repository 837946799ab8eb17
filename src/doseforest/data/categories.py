"""Categorical features: labels become codes, the most frequent label 0, the next 1, and so on.

A table with categories says what the codes in its blocks stand for: code k of a feature is the k-th
of its labels. Labels of a training table are learned, those of queries are translated; a label that
training has not seen has no code and counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.feature_places import feature_places
from doseforest.data.feature_table import (
    BlockSource,
    Categories,
    Label,
    categories_of,
    column_label,
)

LARGEST_CODE = 2**53  # whole numbers up to here are exact in float64


@dataclass(frozen=True, slots=True)
class CodedTable:
    """A block source whose categorical columns hold the codes of given labels, NaN for others."""

    source: BlockSource
    categories: Categories
    translations: dict[int, Translation]  # of each categorical feature

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.source.n_rows

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.source.n_features

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features, or None."""
        return self.source.names

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield the rows with codes in the place of categories."""
        for first, block in self.source.blocks():
            coded = block.copy()
            for feature, translation in self.translations.items():
                coded[:, feature] = translation.codes(block[:, feature], first)
            yield first, coded


@dataclass(frozen=True, slots=True)
class Translation:
    """From what a column holds to codes."""

    column: str  # as errors name it
    values: FloatArray  # (n_values,) what a column may hold, ascending
    targets: FloatArray  # (n_values,) the code of each, NaN where it has none
    rule: str  # "any", "whole" numbers that are not negative, or "none": text is expected

    def codes(self, values: FloatArray, first_row: int) -> FloatArray:
        """Translate some rows; a value that is none of the column's has no code."""
        if self.rule == "whole":
            check_whole(values, first_row, self.column)
        if self.rule == "none" and not np.isnan(values).all():
            raise TypeError(
                "The 'X' parameter must have text where the training table had. "
                f"Got numbers in column {self.column} instead."
            )
        if not len(self.values):
            return np.full(len(values), np.nan)
        places = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[places] == values, self.targets[places], np.nan)


def learn_categories(source: BlockSource, declared: Sequence[Any] | None = None) -> BlockSource:
    """Code the categories of a training table, the declared columns of whole numbers among them.

    Codes go by frequency, labels of equal frequency by their order, whatever the order of rows.

    Examples
    --------
    >>> from doseforest.data.feature_table import as_table
    >>> table = learn_categories(as_table([[7.0], [3.0], [7.0], [None]]), [0])
    >>> table.categories
    {0: (7, 3)}
    >>> [block.ravel() for _, block in table.blocks()]
    [array([ 0.,  1.,  0., nan])]
    """
    given = categories_of(source)
    places = feature_places(declared, "categorical_features", source.names, source.n_features)
    features = sorted({*given, *([] if places is None else places.tolist())})
    if not features:
        return source
    counts = _count_values(source, features, numeric=[f for f in features if f not in given])
    categories, translations = {}, {}
    for feature, (values, frequency) in counts.items():
        column = column_label(source.names, feature)
        own = given.get(feature)
        raw = values.tolist() if own is None else [own[int(value)] for value in values]
        labels = checked_labels(raw, column)
        order = [i for _, _, i in sorted(zip(-frequency, labels, range(len(labels)), strict=True))]
        categories[feature] = tuple(labels[i] for i in order)
        targets = np.empty(len(order))
        targets[order] = np.arange(len(order))
        rule = "whole" if own is None else "any"
        translations[feature] = Translation(column, values, targets, rule)
    return CodedTable(source, categories, translations)


def recoded(source: BlockSource, categories: Categories) -> BlockSource:
    """Queries with the codes of a training table's labels.

    Examples
    --------
    >>> from doseforest.data.feature_table import as_table
    >>> table = recoded(as_table([[3.0], [8.0]]), {0: (7, 3)})
    >>> [block.ravel() for _, block in table.blocks()]
    [array([ 1., nan])]
    """
    given = categories_of(source)
    if given == categories:
        return source
    for feature in given:
        if feature not in categories:
            raise TypeError(
                "The 'X' parameter must have numbers where the training table had. "
                f"Got labels in column {column_label(source.names, feature)} instead."
            )
    translations = {
        feature: _translation(labels, given.get(feature), column_label(source.names, feature))
        for feature, labels in categories.items()
    }
    return CodedTable(source, categories, translations)


def checked_labels(labels: Sequence[Any], column: str) -> tuple[Label, ...]:
    """Labels as plain text or plain numbers, whole ones as int."""
    plain = tuple(_plain(label, column) for label in labels)
    if len({isinstance(label, str) for label in plain}) > 1:
        raise TypeError(
            "The 'X' parameter must have categories that are all text or all numbers. "
            f"Got both in column {column} instead."
        )
    return plain


def check_whole(values: FloatArray, first_row: int, column: str) -> None:
    """Refuse codes that are negative or not whole."""
    bad = ~(np.isnan(values) | ((values >= 0) & (values <= LARGEST_CODE) & (values % 1 == 0)))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            "The 'X' parameter must have whole numbers from 0 to 2^53 (NaN: missing) in columns of "
            f"'categorical_features'. Got {values[row]} in row {first_row + row}, column {column} "
            "instead."
        )


def _plain(label: Any, column: str) -> Label:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, Integral) and abs(int(label)) <= LARGEST_CODE:
        return int(label)
    if isinstance(label, Real) and not isinstance(label, Integral) and math.isfinite(label):
        number = float(label)
        return int(number) if number.is_integer() else number
    raise TypeError(
        "The 'X' parameter must have text or numbers, whole ones up to 2^53, as categories. "
        f"Got {label!r} of type {type(label).__name__} in column {column} instead."
    )


def _translation(labels: tuple[Label, ...], own: tuple[Label, ...] | None, col: str) -> Translation:
    """From a column of numbers, or of codes of its own labels, to the codes of `labels`."""
    is_text = any(isinstance(label, str) for label in labels)
    if own is None and is_text:
        return Translation(col, np.empty(0), np.empty(0), "none")
    if own is None:
        numbers = np.array(labels, dtype=np.float64)
        order = np.argsort(numbers)
        whole = all(isinstance(label, int) and label >= 0 for label in labels)
        rule = "whole" if whole else "any"
        return Translation(col, numbers[order], order.astype(np.float64), rule)
    plain = checked_labels(own, col)
    if labels and plain and isinstance(plain[0], str) != is_text:
        raise TypeError(
            f"The 'X' parameter must have {'text' if is_text else 'numbers'} as categories where "
            f"the training table had. Got {plain[0]!r} in column {col} instead."
        )
    codes = {label: float(code) for code, label in enumerate(labels)}
    targets = np.array([codes.get(label, np.nan) for label in plain], dtype=np.float64)
    return Translation(col, np.arange(len(plain), dtype=np.float64), targets, "any")


def _count_values(
    source: BlockSource, features: list[int], *, numeric: list[int]
) -> dict[int, tuple[FloatArray, IntArray]]:
    """Distinct values of some features, ascending, and how often each occurs."""
    counts = {feature: (np.empty(0), np.empty(0, np.int64)) for feature in features}
    for first, block in source.blocks():
        for feature in features:
            column = block[:, feature]
            if feature in numeric:
                check_whole(column, first, column_label(source.names, feature))
            new, n_new = np.unique(column[~np.isnan(column)], return_counts=True)
            known, n_known = counts[feature]
            values, inverse = np.unique(np.concatenate([known, new]), return_inverse=True)
            total = np.zeros(len(values), np.int64)
            np.add.at(total, inverse, np.concatenate([n_known, n_new]))
            counts[feature] = values, total
    return counts
