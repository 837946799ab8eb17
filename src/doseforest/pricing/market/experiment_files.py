"""Experiments in Parquet files, larger than memory where needed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doseforest.base.atomic_files import replacing
from doseforest.base.progress import ProgressBar
from doseforest.pricing.market.discount_assignment import EXPERIMENT
from doseforest.pricing.market.discount_experiment import (
    Experiment,
    checked_rows,
    experiment_pieces,
)
from doseforest.pricing.market.market_draws import checked_seed
from doseforest.pricing.market.marketplace import Marketplace

PAPER_ROWS = 10_698_884  # of the experiment that the GCF paper reports
CHUNK_ROWS = 1_000_000


def write_experiment(
    path: Any,
    n_rows: int = PAPER_ROWS,
    *,
    market: Marketplace | None = None,
    seed: int = 0,
    assignment: str = EXPERIMENT,
    log_share: float = 1.0,
    chunk_rows: int = CHUNK_ROWS,
    progress: bool | None = None,
) -> Path:
    """Write an experiment to a Parquet file, a chunk of rows at a time.

    The rows are those of `draw_experiment`, whatever the size of the chunks. The file is there
    whole or not at all. Needs the extra `data`.

    Parameters
    ----------
    path : str or Path
        The file.
    n_rows : int, default=10_698_884
        Number of rows; by default as many as in the experiment of the GCF paper.
    market : Marketplace, optional
        By default the mixed regime with one option.
    seed : int, default=0
        As in `draw_experiment`.
    assignment : str, default="levels"
        As in `draw_experiment`.
    log_share : float, default=1.0
        As in `draw_experiment`.
    chunk_rows : int, default=1_000_000
        Rows of a row group; memory grows with it.
    progress : bool, optional
        Show a bar; by default on terminals.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rides.parquet"
    >>> write_experiment(path, n_rows=500, progress=False).name
    'rides.parquet'
    """
    arrow, parquet = _pyarrow()
    own_market, rows = market or Marketplace(), checked_rows(n_rows)
    chunk = checked_rows(chunk_rows, "chunk_rows")
    pieces = experiment_pieces(own_market, rows, checked_seed(seed), assignment, log_share)
    tables = _tables(pieces, chunk, arrow)
    first = next(tables)  # there is at least one row
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as draft,
        parquet.ParquetWriter(draft, first.schema) as writer,
        ProgressBar(rows, "writing", "row", progress) as bar,
    ):
        for table in itertools.chain([first], tables):
            writer.write_table(table, row_group_size=chunk)
            bar.advance(len(table))
    return Path(path)


def _tables(pieces: Iterator[Experiment], chunk: int, arrow: Any) -> Iterator[Any]:
    """Arrow tables of exactly so many rows, the last one of what is left."""
    waiting: list[Any] = []
    n_waiting = 0
    for piece in pieces:
        waiting.append(arrow.table(piece.columns()))
        n_waiting += len(piece)
        while n_waiting >= chunk:
            table = arrow.concat_tables(waiting)
            yield table.slice(0, chunk).combine_chunks()
            waiting, n_waiting = [table.slice(chunk)], n_waiting - chunk
    if n_waiting:
        yield arrow.concat_tables(waiting).combine_chunks()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow. Install it with: pip install 'doseforest[data]'"
        ) from error
    return pyarrow, parquet
