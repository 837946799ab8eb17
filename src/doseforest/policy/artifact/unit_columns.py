"""Units as a policy sees them: features for its forest, and named columns for its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, FloatArray
from doseforest.data.checks import as_array, as_labels, as_numbers
from doseforest.data.feature_table import BLOCK_ROWS, ArrayTable, BlockSource, as_table


@dataclass(frozen=True, slots=True)
class Units:
    """Some units: what the forest is asked about, and the columns that rules name."""

    features: Any  # a table of the forest's features; the user's own where the forest is not ours
    n_units: int
    columns: Mapping[str, Array]  # (n_units,) each
    invalid: NDArray[np.bool_]  # (n_units,): features that say nothing

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers, (n_units,); NaN where there is none."""
        column: FloatArray = as_numbers(self.columns[name], name).astype(np.float64)
        return column

    def amounts(self, given: float | str) -> FloatArray:
        """A number for all units, (1, 1), or a column of numbers, (n_units, 1)."""
        if isinstance(given, str):
            return self.numbers(given)[:, None]
        return np.full((1, 1), float(given))

    def blocks(self) -> Iterator[Units]:
        """The same units, a block of rows at a time."""
        if self.n_units <= BLOCK_ROWS or not isinstance(self.features, ArrayTable):
            yield self
            return
        for start in range(0, self.n_units, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n_units))
            table = self.features
            yield Units(
                ArrayTable(table.values[rows], table.names, categories=table.categories),
                rows.stop - rows.start,
                {name: column[rows] for name, column in self.columns.items()},
                self.invalid[rows],
            )


def read_units(X: Any, context: Any, needed: Sequence[str], forest: Any) -> Units:
    """Check units: the features of a forest, and the columns that a policy needs.

    Parameters
    ----------
    X : table of shape (n_units, n_features)
        A frame may have columns beside the features.
    context : mapping or frame of columns, optional
        Columns beside X, of n_units entries each, or one for all units. They go before those of X.
    needed : names of the columns that rules name
    forest : what has `dose_response`
    """
    known = getattr(forest, "forest", forest)  # a distilled forest's own forest
    names = getattr(known, "feature_names", None)
    n_features = getattr(known, "n_features", None)
    features: Any
    if n_features is None:  # not ours: it checks its features itself
        features, n_units = X, count_units(X)
        invalid = np.zeros(n_units, bool)
    else:
        categories = bool(getattr(known, "categories", {}))
        features = as_table(X, expected_names=names, with_categories=categories)
        if features.n_features != n_features:
            raise ValueError(
                f"The 'X' parameter must have the {n_features} features of the forest. "
                f"Got {features.n_features} instead."
            )
        n_units = features.n_rows
        features, invalid = _without_infinities(features)
    columns = {name: _column(name, X, context, names, n_units) for name in needed}
    return Units(features, n_units, columns, invalid)


def count_units(X: Any) -> int:
    """Number of rows, for policies without a forest of ours: as to those, none is an error."""
    if len(X) == 0:
        raise ValueError("The 'X' parameter must have at least 1 row. Got 0 rows instead.")
    return len(X)


def _without_infinities(table: BlockSource) -> tuple[BlockSource, NDArray[np.bool_]]:
    """A table that a forest takes, and the rows that it can say nothing sensible about."""
    if not isinstance(table, ArrayTable):
        return table, np.zeros(table.n_rows, bool)
    values = np.asarray(table.values, np.float64)
    infinite = np.isinf(values)
    invalid = np.logical_or(infinite.any(axis=1), np.isnan(values).all(axis=1))
    if infinite.any():
        values = np.where(infinite, np.nan, values)
    return ArrayTable(values, table.names, categories=table.categories), invalid


def _column(
    name: str, X: Any, context: Any, features: tuple[str, ...] | None, n_units: int
) -> Array:
    """One named column, of the context, of a frame, or of an array whose features have names."""
    found = _named(context, name)
    if found is None:
        found = _named(X, name)
    if found is None and features is not None and name in features and np.ndim(X) == 2:
        found = as_array(X, "X")[:, features.index(name)]
    if found is None:
        raise ValueError(
            f"The 'X' or the 'context' parameter must have the column {name!r} that the policy "
            f"needs. Got {_listed(context, X)} instead."
        )
    column = as_labels(found, name)
    if column.shape not in ((), (1,), (n_units,)):
        raise ValueError(
            f"The column {name!r} must have one entry per unit ({n_units}), or one for all. "
            f"Got shape {column.shape} instead."
        )
    return np.broadcast_to(column.reshape(-1), n_units)


def _named(table: Any, name: str) -> Any:
    """A column of a frame or mapping, None where it has none of that name."""
    if table is None or isinstance(table, np.ndarray | list | tuple | BlockSource):
        return None
    if isinstance(table, Mapping):
        return table.get(name)
    frame = _frame(table)
    return frame[name].to_numpy() if name in frame.columns else None


def _frame(table: Any) -> Any:
    """A frame of any package, by one interface: others say `columns` of names or of the data."""
    import narwhals as nw

    try:
        return nw.from_native(table, eager_only=True)
    except TypeError as error:
        raise TypeError(
            "The 'context' parameter must be a mapping from names to columns, or a frame. "
            f"Got {type(table).__name__} instead."
        ) from error


def _listed(*tables: Any) -> str:
    names = [
        str(name)
        for table in tables
        if table is not None and not isinstance(table, np.ndarray | list | tuple | BlockSource)
        for name in (table if isinstance(table, Mapping) else _frame(table).columns)
    ]
    return (
        f"the columns {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
        if names
        else "no names"
    )
