"""`doseforest keys`: who may ask the service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from doseforest.pricing.cli.service_options import DEFAULT_DATA, Data, Url, opened

app = typer.Typer(
    help="Keys of the decision service: decide (decisions, curves), report (outcomes, results, "
    "dashboard), admin (policies, experiments, and all of it).",
    no_args_is_help=True,
)


@app.command()
def create(
    role: Annotated[str, typer.Option(help="decide, report or admin.")],
    name: Annotated[str, typer.Option(help="Whose it is, for the list.")],
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Make a key and print it. Only its hash is kept: it cannot be printed again."""
    with opened(data, database) as own:
        from doseforest.pricing.service.security.api_keys import create_key

        with own.writing.begin() as connection:
            key = create_key(connection, role, name)
        typer.echo(key)


@app.command("list")
def list_all(data: Data = DEFAULT_DATA, database: Url = None) -> None:
    """All keys, without their secrets."""
    with opened(data, database) as own:
        from doseforest.pricing.service.security.api_keys import list_keys

        with own.reading.connect() as connection:
            result = list_keys(connection)
        for key in result:
            state = "revoked" if key.revoked_at else "valid"
            made = datetime.fromtimestamp(key.created_at / 1000, UTC).date()
            typer.echo(f"{key.id}  {key.role:<6}  {state:<7}  {made}  {key.name}")


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The first column of the list.")],
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Make a key worthless, in running services too, within their refresh time."""
    with opened(data, database) as own:
        from doseforest.pricing.service.security.api_keys import revoke_key

        with own.writing.begin() as connection:
            revoke_key(connection, key_id)
        typer.echo(f"Revoked {key_id}.")
