"""Logged decisions as a table to learn from: features, dose, outcome, and all propensities.

The loop closes here: the columns ``propensity_of_…`` are what the forest's known-propensity mode
takes, `GeneralizedCausalForest(density=…)`. Doses of several components have a column for each,
``dose_…``, and propensities of each combination, such as ``propensity_of_express=0,premium=5``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import IO, Any

from sqlalchemy import Connection, Select, and_, or_, select

from doseforest.pricing.service.served_doses import Dose, dose_name
from doseforest.pricing.service.storage.service_tables import decisions, outcomes

ROWS_AT_A_TIME = 2000
OWN = ("decision_id", "at", "policy_version", "arm", "cell", "unit")
DOSE = "dose"
PROPENSITY = "propensity_of_"
FEATURE = "feature_"
SURE = 1 - 1e-9  # sums of shares are not exact


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which decisions, and which outcome."""

    metric: str = "outcome"
    experiment_id: int | None = None
    since: int = 0  # milliseconds
    until: int = 2**62
    with_fallbacks: bool = False  # those too that could have had no other dose


DoseKey = float | frozenset[tuple[str, float]]  # a dose, whatever the order of its components


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table has."""

    features: tuple[str, ...]
    components: tuple[str, ...]  # of doses that have several
    doses: tuple[DoseKey, ...]

    @property
    def plain(self) -> bool:
        """Whether there is a column of doses of one component."""
        several = [isinstance(dose, frozenset) for dose in self.doses]
        return not several or not all(several)

    @property
    def names(self) -> list[str]:
        """Names in order."""
        return [
            *OWN,
            *([DOSE] if self.plain else []),
            *(f"{DOSE}_{component}" for component in self.components),
            "propensity",
            "outcome",
            *(f"{PROPENSITY}{dose_name(_named(dose, self.components))}" for dose in self.doses),
            *(f"{FEATURE}{feature}" for feature in self.features),
        ]


def find_columns(connection: Connection, wanted: Wanted) -> Columns:
    """Features and doses of all wanted decisions, in one pass over them."""
    features: dict[str, None] = {}
    components: dict[str, None] = {}
    doses: set[DoseKey] = set()
    for row in _rows(connection, wanted):
        features.update(dict.fromkeys(json.loads(row.features)))
        components.update(dict.fromkeys(_vector(row)))
        doses.update(_chances(row))
    names = tuple(components)
    order = sorted(doses, key=lambda dose: _place(_named(dose, names), names))
    return Columns(tuple(features), names, tuple(order))


def training_rows(
    connection: Connection, wanted: Wanted, columns: Columns
) -> Iterator[list[list[Any]]]:
    """Rows in blocks; an outcome that nobody reported is None."""
    block: list[list[Any]] = []
    for row in _rows(connection, wanted):
        features, chances, vector = json.loads(row.features), _chances(row), _vector(row)
        block.append(
            [
                *(row.id, row.at, row.version, row.arm, row.cell, row.unit),
                *([row.dose] if columns.plain else []),
                *(vector.get(name) for name in columns.components),
                *(row.propensity, row.outcome),
                *(chances.get(dose, 0.0) for dose in columns.doses),
                *(features.get(name) for name in columns.features),
            ]
        )
        if len(block) == ROWS_AT_A_TIME:
            yield block
            block = []
    if block:
        yield block


def _vector(row: Any) -> dict[str, float]:
    """Components of a decision's dose by name; none where it is a number."""
    result: dict[str, float] = {} if row.doses is None else json.loads(row.doses)
    return result


def _chances(row: Any) -> dict[DoseKey, float]:
    """Probability of each dose that a decision could have had."""
    pairs = json.loads(row.propensities)
    if row.doses is None:
        return dict(pairs)
    names = tuple(_vector(row))
    return {frozenset(zip(names, dose, strict=True)): chance for dose, chance in pairs}


def _named(dose: DoseKey, components: tuple[str, ...]) -> Dose:
    """A dose with its components in the order of the table."""
    if isinstance(dose, frozenset):
        return dict(sorted(dose, key=lambda each: components.index(each[0])))
    return dose


def _place(dose: Dose, components: tuple[str, ...]) -> tuple[float, ...]:
    """What doses are sorted by: numbers first, then by one component after the other."""
    if not isinstance(dose, dict):
        return (0.0, dose)
    return (1.0, *(dose.get(name, -inf) for name in components))


def write_table(connection: Connection, wanted: Wanted, format: str, target: IO[bytes]) -> None:
    """The table as one of `FORMATS`, a block of rows at a time."""
    FORMATS[format](connection, wanted, target)


def write_csv(connection: Connection, wanted: Wanted, target: IO[bytes]) -> None:
    """The table as CSV."""
    columns = find_columns(connection, wanted)
    target.write(_csv([columns.names]))
    for rows in training_rows(connection, wanted, columns):
        target.write(_csv(rows))


def write_parquet(connection: Connection, wanted: Wanted, target: IO[bytes]) -> None:
    """The table as Parquet; needs pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = find_columns(connection, wanted)
    schema = pa.schema(_types(pa, connection, wanted, columns))
    with pq.ParquetWriter(target, schema) as writer:
        for rows in training_rows(connection, wanted, columns):
            arrays = [
                pa.array(_as_type(pa, values, field.type), field.type)
                for field, values in zip(schema, zip(*rows, strict=True), strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


FORMATS: dict[str, Callable[[Connection, Wanted, IO[bytes]], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
}


def _rows(connection: Connection, wanted: Wanted) -> Iterator[Any]:
    return iter(connection.execution_options(yield_per=ROWS_AT_A_TIME).execute(_query(wanted)))


def _query(wanted: Wanted) -> Select[Any]:
    own = and_(outcomes.c.decision_id == decisions.c.id, outcomes.c.metric == wanted.metric)
    query = (
        select(decisions, outcomes.c.value.label("outcome"))
        .select_from(decisions.outerjoin(outcomes, own))
        .where(decisions.c.at >= wanted.since, decisions.c.at < wanted.until)
        .order_by(decisions.c.id)
    )
    if wanted.experiment_id is not None:
        query = query.where(decisions.c.experiment_id == wanted.experiment_id)
    if not wanted.with_fallbacks:
        # In an experiment it hangs on the arm, hence on the draw, who falls back: without such rows
        # the propensities of the others would be wrong. Those without any draw teach nothing.
        query = query.where(or_(decisions.c.fallback.is_(False), decisions.c.propensity < SURE))
    return query


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _types(pa: Any, connection: Connection, wanted: Wanted, columns: Columns) -> list[Any]:
    """A feature is text where it ever was, else a number."""
    text: set[str] = set()
    for row in _rows(connection, wanted):
        text.update(
            name for name, load in json.loads(row.features).items() if isinstance(load, str)
        )
    kinds = {"at": pa.int64(), "policy_version": pa.int32()}
    kinds |= dict.fromkeys(("decision_id", "arm", "cell", "unit"), pa.string())
    kinds |= {f"{FEATURE}{name}": pa.string() for name in text}
    return [pa.field(name, kinds.get(name, pa.float64())) for name in columns.names]


def _as_type(pa: Any, values: tuple[Any, ...], kind: Any) -> list[Any]:
    if pa.types.is_string(kind):
        return [None if each is None else str(each) for each in values]
    return [each if each is None or kind != pa.float64() else float(each) for each in values]
