"""`doseforest registry`: policies that the service may serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doseforest.pricing.cli.service_options import DEFAULT_DATA, Data, Url, opened, policy_files

app = typer.Typer(
    help="Policies of the decision service: publish a file, activate a version, roll back.",
    no_args_is_help=True,
)
Version = Annotated[int, typer.Argument(min=1, help="As `publish` and `list` print it.")]


@app.command()
def publish(
    file: Annotated[Path, typer.Argument(help="What `policy.save(…)` wrote.")],
    note: Annotated[str, typer.Option(help="A few words about it, for the list.")] = "",
    reference: Annotated[
        Path | None,
        typer.Option(help="Training rows (CSV or Parquet); drift is measured against them."),
    ] = None,
    activate: Annotated[bool, typer.Option("--activate", help="Let it serve at once.")] = False,
    data: Data = DEFAULT_DATA,
    database: Url = None,
) -> None:
    """Check the file of a policy, keep it and print its version."""
    with opened(data, database) as own:
        from doseforest.pricing.service.dashboard.drift import profile_of_file
        from doseforest.pricing.service.registry import policy_catalog
        from doseforest.pricing.service.security.api_keys import COMMAND

        files = policy_files(data)
        described = policy_catalog.describe(files, files.add(file.read_bytes()))
        profile = None if reference is None else profile_of_file(reference)
        with own.writing.begin() as connection:
            version = policy_catalog.publish(
                connection, described, note=note[:200], by=COMMAND, profile=profile
            )
            if activate:
                policy_catalog.activate(connection, version, by=COMMAND)
        typer.echo(f"version {version}{' is active' if activate else ''}")


@app.command()
def activate(version: Version, data: Data = DEFAULT_DATA, database: Url = None) -> None:
    """Let a version serve; running services swap within their refresh time."""
    with opened(data, database) as own:
        from doseforest.pricing.service.registry import policy_catalog
        from doseforest.pricing.service.security.api_keys import COMMAND

        with own.writing.begin() as connection:
            policy_files(data).load(policy_catalog.find_policy(connection, version).sha256)
            policy_catalog.activate(connection, version, by=COMMAND)
        typer.echo(f"version {version} is active")


@app.command()
def rollback(data: Data = DEFAULT_DATA, database: Url = None) -> None:
    """Let the version serve that did before the active one."""
    with opened(data, database) as own:
        from doseforest.pricing.service.registry import policy_catalog
        from doseforest.pricing.service.security.api_keys import COMMAND

        with own.writing.begin() as connection:
            version = policy_catalog.previous_version(connection)
            policy_files(data).load(policy_catalog.find_policy(connection, version).sha256)
            policy_catalog.roll_back(connection, by=COMMAND)
        typer.echo(f"version {version} is active")


@app.command("list")
def list_all(data: Data = DEFAULT_DATA, database: Url = None) -> None:
    """All versions, the newest first; * marks the active one."""
    with opened(data, database) as own:
        from doseforest.pricing.service.registry import policy_catalog

        with own.reading.connect() as connection:
            result, served = (
                policy_catalog.list_policies(connection),
                policy_catalog.history(connection),
            )
        active = served[0].version if served else None
        for policy in result:
            mark = "*" if policy.version == active else " "
            typer.echo(
                f"{mark} {policy.version}  {policy.kind:<11}  {policy.sha256[:12]}  "
                f"{len(policy.doses)} doses  {policy.note}"
            )
