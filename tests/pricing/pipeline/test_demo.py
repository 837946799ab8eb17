"""The demo, on a few rows: the marketplace through the whole pipeline, and its report."""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from doseforest.policy import load_policy
from doseforest.pricing.cli import demo_command as command
from doseforest.pricing.cli.main import app
from doseforest.pricing.pipeline.config import CollectSection
from doseforest.pricing.pipeline.demo_loop import NAMES, DemoSize, demo_config, run_demo
from doseforest.pricing.pipeline.market_source import (
    market_of,
    planned_units,
    spread_cells,
    zone_hours,
)
from doseforest.pricing.pipeline.report_page.report_sections import Told
from doseforest.pricing.pipeline.report_page.svg import line_chart, nice_ticks
from doseforest.pricing.pipeline.steps import POLICY

FEW_TREES = {
    "forest": {"n_trees": 8, "correction": "none", "n_folds": 2},
    "linear": {"n_trees": 8},
    "boosting": {"n_trees": 10},
}
SMALL = DemoSize(rows=1200, holdout=0.6, plan_units=300, days=1, cells=60, parameters=FEW_TREES)
CITY = CollectSection(source="marketplace", rows=1000)
pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows at each pair of discounts


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    patch = pytest.MonkeyPatch()
    patch.setattr("doseforest.pricing.pipeline.demo_loop.booster", lambda: "boosting")
    run_demo(folder, size=SMALL)
    yield folder
    patch.undo()


def test_both_pipelines_end_with_a_test_at_the_same_budget(finished):
    for options in NAMES:
        found = Told.read(demo_config(options, finished, SMALL))
        result = found.result
        assert result["control"] == "CF (linear)" or found.selected == "linear"
        for own in result["paced"].values():
            # Of so few rows some models want less than the budget, none may have more.
            assert own["spend"] <= result["budget"] * (1 + 1e-9)
            assert own["spend"] > 0.5 * result["budget"]
        names = load_policy(found.config.workspace / POLICY).components
        assert names == (None if options == 1 else ("discount", "shared_discount"))
        low, high = result["results"]["orders"]["interval"]
        assert low < result["truth"]["orders"]["absolute"] < high


def test_the_report_stands_alone_and_shows_everything(finished):
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=\"(?!data:)", page)  # nothing from elsewhere
    assert "<script" not in page
    for text in ("published +15.1%", "published +25.2%", "Planned shared discount", "Riders differ",
                 "Gain against budget", "A/B test:"):  # fmt: skip
        assert text in page
    assert "nan" not in page.lower().replace("finance", "")


def test_the_command_shows_what_is_done_without_doing_it_again(finished, monkeypatch):
    monkeypatch.setattr(command, "DemoSize", lambda **given: SMALL)
    monkeypatch.setattr("doseforest.pricing.pipeline.demo_loop.booster", lambda: "boosting")
    monkeypatch.setattr(command, "booster", lambda: "boosting")
    wide = {"COLUMNS": "160"}  # increments of so few rows have long intervals
    result = CliRunner().invoke(app, ["demo", "--out", str(finished)], env=wide)
    assert result.exit_code == 0, result.output
    assert result.stdout.count("up to date") == 16
    assert "scikit-learn's boosting takes its place" in " ".join(result.stdout.split())
    assert "+15.1%" in result.stdout


def test_a_regime_that_is_not_there_is_told_of():
    result = CliRunner().invoke(app, ["demo", "--regime", "odd"])
    assert result.exit_code == 2
    assert "[collect] regime must be one of" in result.stderr


def test_zones_and_hours_are_told_by_features():
    market = market_of(CITY)
    traffic = market.draw_traffic(days=1, cells=spread_cells(market, 300), seed=2)
    city = market.city
    np.testing.assert_array_equal(
        zone_hours(traffic.X), city.origin[traffic.cells] * 24 + city.hour[traffic.cells]
    )


def test_planned_units_have_the_drivers_of_their_zone_and_hour():
    frame = planned_units(CITY, 3000, seed=0)
    assert 0.8 * 3000 < len(frame) < 1.2 * 3000
    by_cell = frame.groupby("zone_hour")["zone_drivers"].nunique()
    assert (by_cell == 1).all()
    assert frame["hour"].nunique() == 24


def test_ticks_enclose_what_is_drawn():
    for low, high in ((0, 1), (-0.013, 0.07), (3.0, 3.0), (0, 1234)):
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low <= high <= ticks[-1]
        assert 2 <= len(ticks) <= 8


def test_names_in_charts_are_escaped():
    chart = line_chart({"<a>": ([0, 1], [0, 1])}, x_label="x & y", y_label="z", label='"q"')
    assert "<a>" not in chart
    assert "x &amp; y" in chart
    assert "&quot;q&quot;" in chart
