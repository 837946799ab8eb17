"""The demo: the whole loop in the marketplace, for one mobility option and for two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from doseforest.pricing.market import FEATURES
from doseforest.pricing.pipeline.config import PipelineConfig
from doseforest.pricing.pipeline.report_page.page import tile
from doseforest.pricing.pipeline.report_page.report_sections import Told
from doseforest.pricing.pipeline.report_page.write import write_report
from doseforest.pricing.pipeline.runner import Watcher, run_pipeline

PUBLISHED = {1: 0.151, 2: 0.252}  # finished orders, GCF over CF, in the paper's A/B tests
NAMES = {1: "One option", 2: "Two options"}
DUAL_DOSES = [[0.12, 0.0], [0.0, 0.12], [0.12, 0.12], [0.24, 0.24]]  # that scores are shown of
REPORT = "report.html"


@dataclass(frozen=True, slots=True)
class DemoSize:
    """How much work the demo does; small ones are for tests."""

    regime: str = "nonlinear"
    rows: int = 100_000
    holdout: float = 0.85  # rows that judge are cheap, those that train are not
    plan_units: int = 12_000
    days: int = 7
    cells: int | None = None
    parameters: dict[str, dict[str, Any]] | None = None  # of models, by name


def booster() -> str:
    """XGBoost where it is installed, else the boosting of scikit-learn."""
    return "boosting" if find_spec("xgboost") is None else "xgboost"


def demo_config(options: int, folder: Path, size: DemoSize | None = None) -> PipelineConfig:
    """The configuration of the demo for one option or two."""
    own = size or DemoSize()
    single = options == 1
    tables: dict[str, Any] = {
        "pipeline": {"workspace": f"{'single' if single else 'dual'}"},
        "collect": {
            "source": "marketplace",
            "regime": own.regime,
            "rows": own.rows,
            "options": options,
            "holdout": own.holdout,
        },
        "columns": {
            "outcome": "requested",
            "treatment": ["discount"] if single else ["discount", "shared_discount"],
            "features": list(FEATURES),
            "propensity": "propensity",
        },
        "train": {"models": [booster(), "linear", "forest"], **(own.parameters or {})},
        "select": {"tie": "forest"} | ({} if single else {"doses": DUAL_DOSES}),
        "optimise": {
            "price": "fare",
            "spent": "cost",
            "budget_like": 0.12 if single else [0.12, 0.12],
            "cell": "zone_hour",
            "supply": "zone_drivers",
            "plan_units": own.plan_units,
            "compare": ["linear", booster()],
        },
        "test": {"kind": "marketplace", "days": own.days, "days_before": own.days},
    }
    if own.cells is not None:
        tables["test"]["cells"] = own.cells
    return PipelineConfig.from_tables(tables, folder, "The demo")


def run_demo(
    folder: Path,
    *,
    size: DemoSize | None = None,
    watch: Callable[[int], Watcher] | None = None,
    done: Callable[[int, Told], None] | None = None,
) -> Path:
    """Run both pipelines and write the report; what is up to date does not run again.

    Parameters
    ----------
    folder : Path
        Of the two workspaces and the report.
    size : DemoSize, optional
    watch, done : callables, optional
        Told of the steps of each pipeline, and of each that is finished.
    """
    configs = {options: demo_config(options, folder, size) for options in NAMES}
    for options, config in configs.items():
        run_pipeline(config, watch=None if watch is None else watch(options))
        if done is not None:
            done(options, Told.read(config))
    tiles = [each for options, config in configs.items() for each in _tiles(options, config)]
    return write_report(
        folder / REPORT,
        {NAMES[options]: config for options, config in configs.items()},
        title="Which discount for which rider?",
        lead=(
            "A simulated ride-hailing experiment, end to end: random discounts, three models, a "
            "plan within budget and drivers, and an A/B test on finished orders. The published "
            "increments are those of the GCF paper in its own market, for orientation."
        ),
        tiles=tiles,
    )


def _tiles(options: int, config: PipelineConfig) -> list[str]:
    """Increments of a test, beside what was published."""
    result = Told.read(config).result or {}
    orders, extra = result["results"]["orders"], result["extra orders"]
    arms = f"{result['treatment']} against {result['control']} at the same budget"
    low, high = orders["relative interval"]
    first = tile(
        f"{orders['relative']:+.1%}",
        f"{NAMES[options]}: finished orders, {arms}; 95 % interval {low:+.1%} to {high:+.1%} "
        f"(published {PUBLISHED[options]:+.1%})",
    )
    low, high = extra["relative interval"]
    second = tile(
        f"{extra['relative']:+.0%}",
        f"{NAMES[options]}: orders that the discounts bring, 95 % interval {low:+.0%} to "
        f"{high:+.0%}",
    )
    return [first, second]
