"""The `doseforest` command; each group of subcommands has a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

import doseforest
from doseforest.pricing.cli.late_commands import LateCommand, late_group

# Help as in their own files, but for what follows the first sentence.
COMMANDS = [
    LateCommand(name, help, f"doseforest.pricing.cli.{place}")
    for name, place, help in (
        (
            "demo",
            "demo_command:demo",
            "Simulate an experiment, train, select, plan, test, and write a report.",
        ),
        ("simulate", "simulate:simulate", "Write rows of a simulated experiment."),
        ("fit", "model_commands:fit", "Fit a forest to the rows of a table and save it."),
        ("predict", "model_commands:predict", "Predict the response of each unit at each dose."),
        (
            "evaluate",
            "judging_commands:evaluate",
            "Judge a saved forest: R-risk, Qini scores by dose, calibration.",
        ),
        (
            "select",
            "judging_commands:select",
            "Say which model is best, or that the data cannot tell.",
        ),
        (
            "optimise",
            "optimise_command:optimise",
            "Choose the dose of every unit, of largest total value within the budget.",
        ),
        (
            "pipeline",
            "pipeline_commands:app",
            "From rows to a tested policy: collect, train, select, optimise, publish, test.",
        ),
        (
            "bench",
            "clone_studies:app",
            "Benchmarks against known truths, published numbers and other packages.",
        ),
        ("serve", "serve:serve", "Decide on doses over HTTP and keep every decision."),
        ("keys", "key_commands:app", "Keys of the decision service."),
        ("registry", "registry_commands:app", "Policies of the decision service."),
        ("db", "db:app", "The service's database."),
    )
]
app = typer.Typer(
    cls=late_group(COMMANDS),
    help="Dose-response curves of single units: from a table to models, policies, their tests and "
    "a service that decides.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
