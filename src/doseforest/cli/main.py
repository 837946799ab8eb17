"""The `doseforest` command; each group of subcommands has a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

import doseforest
from doseforest.cli import bench, db, keys, pipeline, registry
from doseforest.cli.decisions import optimise
from doseforest.cli.demo import demo
from doseforest.cli.judging import evaluate, select
from doseforest.cli.models import fit, predict
from doseforest.cli.serve import serve
from doseforest.cli.simulate import simulate

app = typer.Typer(
    help="Dose-response curves of single units: from a table to models, policies, their tests and "
    "a service that decides.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (demo, simulate, fit, predict, evaluate, select, optimise):
    app.command()(_command)
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(bench.app, name="bench")
app.command()(serve)
app.add_typer(keys.app, name="keys")
app.add_typer(registry.app, name="registry")
app.add_typer(db.app, name="db")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"doseforest {doseforest.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it and end."),
    ] = False,
) -> None:
    """Dose-response curves of single units."""
