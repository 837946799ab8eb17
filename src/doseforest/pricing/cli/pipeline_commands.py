"""`doseforest pipeline`: from rows to a tested policy, stage by stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from doseforest.base.atomic_files import write_text
from doseforest.base.plain_json import json_text
from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.pipeline.config import read_config
from doseforest.pricing.pipeline.manifest import Manifest
from doseforest.pricing.pipeline.runner import (
    CURRENT,
    RUNS,
    PlannedStep,
    plan_pipeline,
    run_pipeline,
)
from doseforest.pricing.pipeline.template import template

app = typer.Typer(
    help=(
        "From rows to a tested policy: collect, train, select, optimise, publish, test.\n\n"
        "Start with `doseforest pipeline init config.toml`, look at `doseforest pipeline run "
        "config.toml --dry-run`, then run it. Only what a change touches runs again."
    ),
    no_args_is_help=True,
)
COLOURS = {CURRENT: "green", RUNS: "yellow"}

Config = Annotated[Path, typer.Argument(help="The configuration, a TOML file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


@app.command()
@told
def run(
    config: Config,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which stages would run, and why.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run all stages again.")] = False,
    json: Json = False,
) -> None:
    """Run the stages that are not up to date.

    Example: doseforest pipeline run config.toml --dry-run
    """
    own = read_config(config)
    if dry_run:
        _show_plan(plan_pipeline(own), json)
        return
    console = Console(stderr=True)

    def watch(event: str, step: Any, told: Any) -> None:
        if event == "starts":
            console.print(f"[yellow]>[/] {step.name} [dim]({told})[/]")
        elif event == "ends":
            console.print(f"[green]✓[/] {step.name} [dim]{told.seconds:.1f} s[/]")
        else:
            console.print(f"[green]✓[/] {step.name} [dim]up to date[/]")

    finished = run_pipeline(own, fresh=fresh, watch=watch)
    result = {one.step.name: {"ran": one.ran, **one.record.metrics} for one in finished}
    if json:
        typer.echo(json_text({"workspace": str(own.workspace), "steps": result}))
        return
    for name, metrics in result.items():
        told_of = {key: value for key, value in metrics.items() if key not in ("ran", "features")}
        typer.echo(
            f"{name}: " + ", ".join(f"{key} {_brief(each)}" for key, each in told_of.items())
        )
    typer.echo(f"Artifacts, manifest and log are in {own.workspace}.")


@app.command()
@told
def status(config: Config, json: Json = False) -> None:
    """Show what is done, when, and what would run.

    Example: doseforest pipeline status config.toml
    """
    own = read_config(config)
    _show_plan(plan_pipeline(own), json, Manifest.read(own.workspace))


@app.command()
@told
def report(
    config: Config,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="By default report.html in the workspace.")
    ] = None,
) -> None:
    """Write a page about a finished pipeline; it needs no network.

    Example: doseforest pipeline report config.toml -o report.html
    """
    from doseforest.pricing.pipeline.report_page.write import write_report

    own = read_config(config)
    waiting = [one.step.name for one in plan_pipeline(own) if one.state != CURRENT]
    if waiting:
        raise ValueError(f"Not all is up to date: {', '.join(waiting)}. Run the pipeline first.")
    path = write_report(out or own.workspace / "report.html", {config.stem: own})
    typer.echo(f"Wrote {path}.")


@app.command()
@told
def init(
    config: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("config.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented configuration to start from.

    Example: doseforest pipeline init config.toml
    """
    if config.exists() and not force:
        raise ValueError(f"{config} is there already. Replace it with --force.")
    write_text(config, template(config.name))
    typer.echo(f"Wrote {config}. Next: doseforest pipeline run {config} --dry-run")


def _show_plan(
    planned: tuple[PlannedStep, ...], json: bool, manifest: Manifest | None = None
) -> None:
    done = {} if manifest is None else manifest.steps
    rows = [
        {
            "step": each.step.name,
            "state": each.state,
            "reason": each.reason,
            "finished": done[each.step.name].finished if each.step.name in done else None,
            "seconds": done[each.step.name].seconds if each.step.name in done else None,
        }
        for each in planned
    ]
    if json:
        typer.echo(json_text(rows))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("step", "state", "why") + (() if manifest is None else ("finished", "seconds")):
        table.add_column(name)
    for row in rows:
        colour = COLOURS.get(str(row["state"]), "cyan")
        cells = [str(row["step"]), f"[{colour}]{row['state']}[/]", str(row["reason"])]
        if manifest is not None:
            cells += [str(row["finished"] or ""), str(row["seconds"] or "")]
        table.add_row(*cells)
    Console().print(table)


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_brief, value)) + "]"
    return str(value)
