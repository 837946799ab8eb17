"""Tables of rows: read from files, databases and the marketplace; written whole or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doseforest.pricing.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import CollectSection, PipelineConfig

SQLITE = "sqlite:///"


def pandas() -> Any:
    """Pandas with Parquet; ImportError names the extra where it is missing."""
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Tables need pandas and pyarrow. Install them with: pip install 'doseforest[data]'"
        ) from error
    return pandas


def read_table(path: str | Path) -> Any:
    """A frame from a Parquet or CSV file, by its ending."""
    file = Path(path)
    if not file.exists():
        raise PipelineError(f"There is no file {str(path)!r}.")
    kind = file.suffix.lower()
    if kind in (".parquet", ".pq"):
        return pandas().read_parquet(file)
    if kind in (".csv", ".gz"):
        return pandas().read_csv(file)
    raise PipelineError(
        f"The file must end in .parquet or .csv, so that it is known how to read it. "
        f"Got {str(path)!r} instead."
    )


def write_table(frame: Any, path: str | Path) -> None:
    """Write a frame to a Parquet or CSV file, by its ending; it is there whole or not at all."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.tmp")
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            frame.to_parquet(draft, index=False)
        elif file.suffix.lower() == ".csv":
            frame.to_csv(draft, index=False)
        else:
            raise PipelineError(
                f"The file must end in .parquet or .csv. Got {str(path)!r} instead."
            )
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def read_source(config: PipelineConfig) -> Any:
    """The rows of a configuration, whatever they come from."""
    return SOURCES[config.collect.source](config, config.collect)


def _file(config: PipelineConfig, own: CollectSection) -> Any:
    path = config.path(str(own.path))
    reader = pandas().read_parquet if own.source == "parquet" else pandas().read_csv
    try:
        frame = reader(path)
    except (OSError, ValueError) as error:
        raise PipelineError(f"[collect] {path} cannot be read as {own.source}: {error}") from error
    return frame if own.rows is None else frame.head(own.rows)


def _sql(config: PipelineConfig, own: CollectSection) -> Any:
    """A table of a database: SQLite by the standard library, others by SQLAlchemy."""
    url, table = str(own.url), str(own.table)
    quoted = '"' + table.replace('"', '""') + '"'
    query = f"SELECT * FROM {quoted}" + ("" if own.rows is None else f" LIMIT {own.rows}")
    if url.startswith(SQLITE):
        path = config.path(url.removeprefix(SQLITE))
        if not path.exists():
            raise PipelineError(f"[collect] url must name a database that exists. Got {url!r}.")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            try:
                return pandas().read_sql_query(query, connection)
            except Exception as error:  # pandas wraps what sqlite3 raises
                raise PipelineError(f"[collect] table {table!r} cannot be read: {error}") from error
    if find_spec("sqlalchemy") is None:
        raise PipelineError(
            f"[collect] url {url.split('://')[0]}://… needs SQLAlchemy and the database's driver. "
            "Install them with: pip install sqlalchemy; sqlite:/// works without."
        )
    return _by_sqlalchemy(url, table, own.rows)


def _by_sqlalchemy(url: str, table: str, rows: int | None) -> Any:
    from sqlalchemy import MetaData, Table, create_engine, select
    from sqlalchemy.exc import SQLAlchemyError

    engine = None
    try:
        engine = create_engine(url)
        with engine.connect() as connection:
            query = select(Table(table, MetaData(), autoload_with=connection)).limit(rows)
            return pandas().read_sql_query(query, connection)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise PipelineError(f"[collect] table {table!r} cannot be read: {reason}") from error
    finally:
        if engine is not None:
            engine.dispose()


def _marketplace(config: PipelineConfig, own: CollectSection) -> Any:
    from doseforest.pricing.pipeline.market_source import experiment_rows

    return experiment_rows(own, config.pipeline.seed)


SOURCES = {"parquet": _file, "csv": _file, "sql": _sql, "marketplace": _marketplace}
