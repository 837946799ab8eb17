"""`doseforest demo`: the whole loop on a simulated market, in a few minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from doseforest.pricing.cli.error_lines import told
from doseforest.pricing.pipeline.demo_loop import NAMES, PUBLISHED, DemoSize, booster, run_demo
from doseforest.pricing.pipeline.model_names import TITLES
from doseforest.pricing.pipeline.report_page.report_sections import Told, qini_rows

WORDS = {
    "collect": "simulate an experiment with random discounts",
    "select": "judge the models on rows that they have not seen",
    "optimise": "plan discounts within budget and drivers",
    "publish": "write the policy to a file",
    "test": "A/B test on finished orders",
}


@told
def demo(
    out: Annotated[Path, typer.Option(help="Folder of artifacts and report.")] = Path("out/demo"),
    rows: Annotated[
        int, typer.Option(min=5000, help="Rows of each experiment; three in twenty train.")
    ] = DemoSize().rows,
    regime: Annotated[
        str, typer.Option(help="How riders answer: linear, mixed or nonlinear.")
    ] = DemoSize().regime,
) -> None:
    """Simulate an experiment, train, select, plan, test, and write a report.

    A second run shows the same without working again; remove the folder to start anew.

    Example: doseforest demo --out out/demo
    """
    console, start = Console(), time.perf_counter()
    console.print(
        Panel.fit(
            "[bold]Which discount for which rider?[/]\nA ride-hailing market, simulated; "
            f"models: {TITLES[booster()]}, CF (linear causal forest), GCF.",
            border_style="blue",
        )
    )
    if booster() != "xgboost":
        console.print("XGBoost is not installed: scikit-learn's boosting takes its place.")
    results: dict[int, Told] = {}

    def done(options: int, found: Told) -> None:
        results[options] = found
        _show_models(console, found)
        _show_plans(console, found)

    report = run_demo(
        out,
        size=DemoSize(rows=rows, regime=regime),
        watch=lambda options: _Watch(console, NAMES[options]),
        done=done,
    )
    _show_tests(console, results)
    console.print(
        f"\nReport: [bold]{report.resolve()}[/]  ({time.perf_counter() - start:.0f} s in all)",
        soft_wrap=True,
    )


class _Watch:
    """Steps as they come: a spinner while one works, a tick when it is done."""

    def __init__(self, console: Console, name: str) -> None:
        self.console, self.name = console, name
        self.status: Any = None
        self.begun = False

    def __call__(self, event: str, step: Any, about: Any) -> None:
        if not self.begun:
            self.console.rule(f"[bold]{self.name}")
            self.begun = True
        if self.status is not None:
            self.status.stop()
            self.status = None
        words = WORDS.get(step.stage) or f"train {TITLES[step.model]}"
        if event == "starts":
            self.status = self.console.status(words)
            self.status.start()
        elif event == "ends":
            self.console.print(f"[green]✓[/] {words} [dim]{about.seconds:.1f} s[/]")
        else:
            self.console.print(f"[green]✓[/] {words} [dim]up to date[/]")


def _show_models(console: Console, found: Told) -> None:
    header, rows = qini_rows(found.selection)
    table = _table("Qini scores on held-out riders, times 1000", ("", *header[1:]))
    for name, row in zip(found.selection["qini"]["scores"], rows, strict=True):
        table.add_row(*row, style="bold" if name == found.selected else "")
    console.print(table)
    console.print(f"{found.selection['reason']} [bold]{TITLES[found.selected]}[/] decides.")


def _show_plans(console: Console, found: Told) -> None:
    header = ("", "mean discount", "gain", "cost", "held-out cost", "full zones")
    table = _table("Plans of the same budget, as promised per view", header)
    for name, plan in found.plans.items():
        mean = " + ".join(f"{each:.1%}" for each in plan["mean dose"])
        held = plan["held-out"]
        spent = f"{held['cost']:.3f} ± {1.96 * held['cost error']:.3f}" if held else "-"
        table.add_row(
            TITLES[name],
            mean,
            f"{plan['predicted gain']:+.4f}",
            f"{plan['predicted cost']:.3f}",
            spent,
            str(plan["cells at their limit"]),
            style="bold" if name == found.selected else "",
        )
    console.print(table)


def _show_tests(console: Console, results: dict[int, Told]) -> None:
    console.rule("[bold]A/B tests on finished orders, at the same budget")
    table = _table("", ("", "finished orders", "truth", "extra orders", "truth", "paper"))
    for options, answer in results.items():
        result = answer.result or {}
        orders, extra = result["results"]["orders"], result["extra orders"]
        table.add_row(
            NAMES[options],
            _with_interval(orders, ".1%"),
            f"{result['truth']['orders']['relative']:+.1%}",
            _with_interval(extra, ".0%"),
            f"{extra['truth']:+.0%}",
            f"{PUBLISHED[options]:+.1%}",
        )
    console.print(table)
    arms = {f"{each.result['treatment']} over {each.result['control']}" for each in results.values()
            if each.result}  # fmt: skip
    console.print(
        f"[dim]Increments of {' and '.join(sorted(arms))}, with 95 % intervals. Extra orders: "
        "those that discounts bring, beyond what comes without. Truth: what the simulator knows. "
        "Paper: finished orders, GCF over CF, as published for its own market.[/]"
    )


def _table(title: str, header: tuple[str, ...]) -> Table:
    """A table that fits into 80 columns."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    return table


def _with_interval(found: dict[str, Any], form: str) -> str:
    low, high = found["relative interval"]
    return f"{found['relative']:+{form}} [{low:+{form}}, {high:+{form}}]"
