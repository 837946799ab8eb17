"""`doseforest db`: the database of the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doseforest.base.atomic_files import replacing
from doseforest.pricing.cli.service_options import DEFAULT_DATA, Data, Url, opened, policy_files

app = typer.Typer(
    help="The service's database: bring it up to date, back it up, restore it, forget old rows, "
    "export what was decided.",
    no_args_is_help=True,
)


def _print_counts(counts: dict[str, int]) -> None:
    for name, count in counts.items():
        typer.echo(f"{name:<12} {count:>12,}")


@app.command()
def upgrade(data: Data = DEFAULT_DATA, database: Url = None) -> None:
    """Bring the tables to this release. Back up first; what is stored stays."""
    with opened(data, database, check=False) as own:
        from doseforest.pricing.service.storage.schema import newest_revision
        from doseforest.pricing.service.storage.schema import upgrade as upgrade_tables

        upgrade_tables(own)
        typer.echo(f"The tables are of revision {newest_revision()}.")


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as backup.zip.")],
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Write every row and every policy to one file, while the service goes on."""
    with opened(data, database) as own:
        from doseforest.pricing.service.backup import back_up

        _print_counts(back_up(own, policy_files(data), file))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote, here or elsewhere.")],
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Fill an empty database from a backup; of SQLite into PostgreSQL too, and back."""
    with opened(data, database, check=False) as own:
        from doseforest.pricing.service.backup import restore as restore_rows

        _print_counts(restore_rows(own, policy_files(data), file))


@app.command()
def prune(
    days: Annotated[float, typer.Option(help="Decisions older than this go, with outcomes.")],
    answer_days: Annotated[
        float, typer.Option(help="Answers kept for idempotency keys go after this.")
    ] = 2.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Forget what is old. Run it from a timer, once a day."""
    with opened(data, database) as own:
        from doseforest.pricing.service.storage.retention import prune as prune_rows

        _print_counts(prune_rows(own, days, answer_days, dry=dry_run))


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="A .csv or .parquet file to write.")],
    metric: Annotated[str, typer.Option(help="The outcome that is wanted.")] = "outcome",
    experiment: Annotated[int | None, typer.Option(help="Decisions of one experiment.")] = None,
    fallbacks: Annotated[
        bool, typer.Option("--fallbacks", help="Also with doses that could not have been others.")
    ] = False,
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Write decisions with outcomes and propensities as a training table."""
    with opened(data, database) as own:
        from doseforest.pricing.service.online_experiments.training_table import (
            FORMATS,
            Wanted,
            write_table,
        )

        kind = file.suffix.lstrip(".")
        if kind not in FORMATS:
            raise ValueError(f"The file must end in .csv or .parquet. Got {file.name!r} instead.")
        wanted = Wanted(metric, experiment, with_fallbacks=fallbacks)
        with (
            replacing(file) as draft,
            own.reading.connect() as connection,
            draft.open("wb") as target,
        ):
            write_table(connection, wanted, kind, target)
        typer.echo(f"Wrote {file}.")
