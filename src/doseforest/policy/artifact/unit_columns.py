"""Units as a policy sees them: features for its forest, and named columns for its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.data.categories import recoded
from doseforest.data.checks import as_array, as_labels, as_numbers
from doseforest.data.feature_table import (
    BLOCK_ROWS,
    ArrayTable,
    BlockSource,
    Categories,
    as_table,
    categories_of,
)
from doseforest.doses.dose_values import Doses
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest


@dataclass(frozen=True, slots=True)
class CheckedUnits:
    """Units that were checked: what models are asked about, and the columns that rules name."""

    n_units: int
    columns: Mapping[str, Array]  # (n_units,) each
    invalid: NDArray[np.bool_]  # (n_units,): features that say nothing
    features: ArrayTable | None = None  # float64, NaN where infinite; None: no forest of ours
    given: Any = None  # the table as it came, for a forest that is not ours

    def numbers(self, name: str) -> FloatArray:
        """A column of numbers, (n_units,); NaN where there is none."""
        column: FloatArray = as_numbers(self.columns[name], name).astype(np.float64)
        return column

    def amounts(self, given: float | str) -> FloatArray:
        """A number for all units, (1, 1), or a column of numbers, (n_units, 1)."""
        if isinstance(given, str):
            return self.numbers(given)[:, None]
        return np.full((1, 1), float(given))

    def curves(self, model: Any, doses: DoseArray | None = None) -> FloatArray:
        """What a model says of each unit, (n_units, n_doses), on its grid or at checked doses.

        A forest of ours does not look at the table again; its own codes stand for categories.
        """
        if self.features is None:
            asked = () if doses is None else (Doses.of(doses).plain,)
            return np.asarray(model.dose_response(self.given, *asked), np.float64)
        if self.n_units <= BLOCK_ROWS and self.features.categories == model.categories:
            curves: FloatArray = model.curves(self.features.values, doses)
            return curves
        coded = recoded(self.features, model.categories)
        return np.concatenate([model.curves(block, doses) for _, block in coded.blocks()])

    def blocks(self) -> Iterator[CheckedUnits]:
        """The same units, a block of rows at a time."""
        if self.n_units <= BLOCK_ROWS or self.features is None:
            yield self
            return
        for start in range(0, self.n_units, BLOCK_ROWS):
            rows = slice(start, min(start + BLOCK_ROWS, self.n_units))
            yield CheckedUnits(
                rows.stop - rows.start,
                {name: column[rows] for name, column in self.columns.items()},
                self.invalid[rows],
                replace(self.features, values=self.features.values[rows]),
            )


def read_units(X: Any, context: Any, needed: Sequence[str], forest: Any) -> CheckedUnits:
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
    if not isinstance(forest, EffectForest | DistilledForest):  # it checks its features itself
        n_units = count_units(X)
        names = getattr(forest, "feature_names", None)
        columns = {name: _column(name, X, context, names, n_units) for name in needed}
        return CheckedUnits(n_units, columns, np.zeros(n_units, bool), given=X)
    grown = forest.forest if isinstance(forest, DistilledForest) else forest
    names = grown.feature_names
    table = as_table(X, expected_names=names, with_categories=bool(grown.categories))
    if table.n_features != grown.n_features:
        raise ValueError(
            f"The 'X' parameter must have the {grown.n_features} features of the forest. "
            f"Got {table.n_features} instead."
        )
    columns = {name: _column(name, X, context, names, table.n_rows) for name in needed}
    rows = table.values if isinstance(table, ArrayTable) else _rows_of(table)
    return checked_units(rows, table.names, categories_of(table), columns)


def checked_units(
    rows: Array,  # (n_units, n_features)
    names: tuple[str, ...] | None,
    categories: Categories,
    columns: Mapping[str, Array],
) -> CheckedUnits:
    """Units of numbers and codes: rows that are infinite somewhere, or all missing, are invalid."""
    values = np.ascontiguousarray(rows, np.float64)
    infinite = np.isinf(values)
    invalid: NDArray[np.bool_] = np.logical_or(infinite.any(axis=1), np.isnan(values).all(axis=1))
    if infinite.any():
        values = np.where(infinite, np.nan, values)
    table = ArrayTable(values, names, categories=categories)
    return CheckedUnits(len(values), columns, invalid, table)


def count_units(X: Any) -> int:
    """Number of rows, for policies without a forest of ours: as to those, none is an error."""
    if len(X) == 0:
        raise ValueError("The 'X' parameter must have at least 1 row. Got 0 rows instead.")
    return len(X)


def _rows_of(table: BlockSource) -> FloatArray:
    return np.concatenate([block for _, block in table.blocks()])


def _column(
    name: str, X: Any, context: Any, features: tuple[str, ...] | None, n_units: int
) -> Array:
    """One named column, of the context, of a frame, or of an array whose features have names."""
    result = _named(context, name)
    if result is None:
        result = _named(X, name)
    if result is None and features is not None and name in features and np.ndim(X) == 2:
        result = as_array(X, "X")[:, features.index(name)]
    if result is None:
        raise ValueError(
            f"The 'X' or the 'context' parameter must have the column {name!r} that the policy "
            f"needs. Got {_listed(context, X)} instead."
        )
    column = as_labels(result, name)
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
