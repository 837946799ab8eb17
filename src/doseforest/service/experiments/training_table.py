"""Logged decisions as a table to learn from: features, dose, outcome, and all propensities.

The loop closes here: the columns ``propensity_of_…`` are what the forest's known-propensity mode
takes, `GeneralizedCausalForest(density=…)`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from sqlalchemy import Connection, Select, and_, or_, select

from doseforest.service.storage.tables import decisions, outcomes

ROWS_AT_A_TIME = 2000
OWN = ("decision_id", "at", "policy_version", "arm", "cell", "unit", "dose", "propensity")
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


@dataclass(frozen=True, slots=True)
class Columns:
    """What the table has."""

    features: tuple[str, ...]
    doses: tuple[float, ...]

    @property
    def names(self) -> list[str]:
        """Names in order."""
        propensities = [f"{PROPENSITY}{dose:g}" for dose in self.doses]
        return [*OWN, "outcome", *propensities, *(f"{FEATURE}{own}" for own in self.features)]


def find_columns(connection: Connection, wanted: Wanted) -> Columns:
    """Features and doses of all wanted decisions, in one pass over them."""
    features: dict[str, None] = {}
    doses: set[float] = set()
    for row in _rows(connection, wanted):
        features.update(dict.fromkeys(json.loads(row.features)))
        doses.update(dose for dose, _ in json.loads(row.propensities))
    return Columns(tuple(features), tuple(sorted(doses)))


def training_rows(
    connection: Connection, wanted: Wanted, columns: Columns
) -> Iterator[list[list[Any]]]:
    """Rows in blocks; an outcome that nobody reported is None."""
    block: list[list[Any]] = []
    for row in _rows(connection, wanted):
        features, chances = json.loads(row.features), dict(json.loads(row.propensities))
        block.append(
            [
                *(row.id, row.at, row.version, row.arm, row.cell, row.unit),
                *(row.dose, row.propensity, row.outcome),
                *(chances.get(dose, 0.0) for dose in columns.doses),
                *(features.get(name) for name in columns.features),
            ]
        )
        if len(block) == ROWS_AT_A_TIME:
            yield block
            block = []
    if block:
        yield block


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
        text.update(name for name, own in json.loads(row.features).items() if isinstance(own, str))
    kinds = {"at": pa.int64(), "policy_version": pa.int32()}
    kinds |= dict.fromkeys(("decision_id", "arm", "cell", "unit"), pa.string())
    kinds |= {f"{FEATURE}{name}": pa.string() for name in text}
    return [pa.field(name, kinds.get(name, pa.float64())) for name in columns.names]


def _as_type(pa: Any, values: tuple[Any, ...], kind: Any) -> list[Any]:
    if pa.types.is_string(kind):
        return [None if own is None else str(own) for own in values]
    return [own if own is None or kind != pa.float64() else float(own) for own in values]
