"""What a workspace has to say, as cards of a page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.pricing.pipeline.manifest import Manifest
from doseforest.pricing.pipeline.model_names import TITLES
from doseforest.pricing.pipeline.planned_policies import read_plan, read_selection
from doseforest.pricing.pipeline.report_page.page import PageSection, card, html_table
from doseforest.pricing.pipeline.report_page.svg import heat_map, interval_chart, line_chart
from doseforest.pricing.pipeline.row_tables import read_table
from doseforest.pricing.pipeline.stages.optimise import DOSES
from doseforest.pricing.pipeline.steps import RESULT

if TYPE_CHECKING:
    from doseforest.pricing.pipeline.config import PipelineConfig

HOURS = 24
FIFTHS = (
    *("least responsive fifth", "second fifth", "middle fifth", "fourth fifth"),
    "most responsive fifth",
)


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that a finished workspace holds for its report."""

    config: PipelineConfig
    selection: dict[str, Any]
    plans: dict[str, dict[str, Any]]  # of the models that have one
    result: dict[str, Any] | None
    collected: dict[str, Any]

    @classmethod
    def read(cls, config: PipelineConfig) -> Told:
        """Read the artifacts of a finished pipeline."""
        plans = {name: read_plan(name, config) for name in config.train.models}
        file = config.workspace / RESULT
        has_result = config.test.kind != "none" and file.exists()
        return cls(
            config,
            read_selection(config),
            {name: plan for name, plan in plans.items() if plan},
            json.loads(file.read_text(encoding="utf-8")) if has_result else None,
            Manifest.read(config.workspace).steps["collect"].metrics,
        )

    @property
    def selected(self) -> str:
        """Name of the model that decides."""
        return str(self.selection["selected"])

    @property
    def unit(self) -> str:
        """What a row is."""
        return "rider" if self.config.collect.source == "marketplace" else "unit"


def section_of(config: PipelineConfig, title: str) -> PageSection:
    """All cards of a workspace."""
    told = Told.read(config)
    result = told.collected
    lead = (
        f"{result['training rows']:,} rows trained {len(config.train.models)} models, "
        f"{result['held-out rows']:,} others judged them; {TITLES[told.selected]} decides, planned "
        f"for {result['units to plan for']:,} units."
    )
    cards = [_qini_table(told), _qini_curves(told), _curves(told), _path(told), *_dose_maps(told)]
    if told.result is not None:
        cards += [_test_chart(told.result), _test_table(told.result)]
    return PageSection(title, lead, [each for each in cards if each])


def qini_rows(selection: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The Qini table: a column for each dose, scores times 1,000."""
    qini = selection["qini"]
    names = [dose_name(each, are_shares(qini["doses"])) for each in qini["doses"]]
    header = ["Qini score x 1000", *names, "mean", "95 %"]
    rows = []
    for name, scores in qini["scores"].items():
        mean = qini["means"][name]
        low, high = mean["interval"]
        rows.append(
            [
                TITLES[name],
                *(f"{1000 * each['value']:.1f}" for each in scores),
                f"{1000 * mean['value']:.1f}",
                f"{1000 * low:.1f} to {1000 * high:.1f}",
            ]
        )
    return header, rows


def are_shares(doses: Any) -> bool:
    """Whether doses look like shares, which people read as per cent."""
    return bool(np.max(doses) <= 1.0)


def dose_name(dose: Any, share: bool = True) -> str:
    """A dose as a text.

    >>> dose_name(0.12), dose_name([0.12, 0.0]), dose_name(5.0, share=False)
    ('12 %', '12+0 %', '5')
    """
    parts = dose if isinstance(dose, list) else [dose]
    if share:
        return "+".join(f"{100 * part:g}" for part in parts) + " %"
    return "+".join(f"{part:g}" for part in parts)


def plain_dose_name(dose: Any) -> str:
    """A dose as part of the name of a column.

    >>> plain_dose_name(0.12), plain_dose_name((0.12, 0.0))
    ('0.12', '0.12:0')
    """
    parts = dose if isinstance(dose, list | tuple) else [dose]
    return ":".join(f"{part:g}" for part in parts)


def _qini_table(told: Told) -> str:
    header, rows = qini_rows(told.selection)
    chosen = list(told.selection["qini"]["scores"]).index(told.selected)
    note = str(told.selection["reason"])
    title, table = f"Which model ranks {told.unit}s best?", html_table(header, rows, chosen)
    return card(title, table, note, wide=True)


def _qini_curves(told: Told) -> str:
    qini = told.selection["qini"]
    series = {TITLES[name]: (qini["shares"], each) for name, each in qini["curves"].items()}
    chart = line_chart(
        series,
        x_label=f"share of {told.unit}s who get the dose, best first",
        y_label=f"gain per {told.unit}",
        label="Qini curves of the models",
        percent=True,
        straight=True,
    )
    dose = dose_name(qini["curve dose"], are_shares(qini["doses"]))
    note = f"Held-out {told.unit}s at a dose of {dose}; grey: in any order."
    return card(f"Gain when the best {told.unit}s come first", chart, note)


def _curves(told: Told) -> str:
    plan = told.plans[told.selected]
    doses = np.asarray(plan["doses"])
    if doses.ndim == 2:
        return ""
    series = {
        name: (doses.tolist(), [value - each[0] for value in each])
        for name, each in zip(FIFTHS, plan["curves"], strict=True)
    }
    chart = line_chart(
        series,
        x_label=told.config.columns.treatment[0].replace("_", " "),
        y_label="extra response",
        label=f"Mean curves of fifths of the {told.unit}s",
        percent=are_shares(doses),
    )
    return card(
        f"{told.unit.title()}s differ", chart, f"What doses add, by {TITLES[told.selected]}."
    )


def _path(told: Told) -> str:
    series = {
        TITLES[name]: (plan["path"]["budgets"], plan["path"]["gains"])
        for name, plan in told.plans.items()
    }
    budget = told.plans[told.selected]["budget"]
    chart = line_chart(
        series,
        x_label=f"budget per {told.unit}",
        y_label=f"predicted gain per {told.unit}",
        label="Gain against budget",
        marks={"budget": budget},
    )
    note = "What each model promises; models that overstate effects promise most."
    return card("Gain against budget", chart, note)


def _dose_maps(told: Told) -> list[str]:
    """Planned doses by zone and hour, one map for each treatment; of marketplaces alone."""
    from doseforest.pricing.pipeline.market_source import ZONE_HOUR

    if told.config.collect.source != "marketplace":
        return []
    frame = read_table(told.config.workspace / DOSES)
    zones, hours = np.divmod(frame[ZONE_HOUR].to_numpy(), HOURS)
    n_zones = int(zones.max()) + 1
    cards = []
    for name in told.config.columns.treatment:
        planned = frame[f"planned_{name}"].to_numpy()
        sums, counts = np.zeros((2, n_zones, HOURS))
        np.add.at(sums, (zones, hours), planned)
        np.add.at(counts, (zones, hours), 1)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), math.nan)
        chart = heat_map(
            means.tolist(),
            rows=[f"zone {zone}" for zone in range(n_zones)],
            columns=[str(hour) for hour in range(HOURS)],
            label=f"Mean {name} by zone and hour",
            x_label="hour of the day",
            largest=float(np.max(told.plans[told.selected]["doses"])),
        )
        title = f"Planned {name.replace('_', ' ')} by zone and hour"
        cards.append(card(title, chart, f"Mean {planned.mean():.1%}; darker is more."))
    return cards


def _test_chart(result: dict[str, Any]) -> str:
    shown = {
        name: (each["relative interval"][0], each["relative"], each["relative interval"][1])
        for name, each in result["results"].items()
        if each["control"]
    }
    truths = {name: each["relative"] for name, each in result.get("truth", {}).items()}
    title = f"A/B test: {result['treatment']} against {result['control']}"
    note = "Relative increments with 95 % intervals"
    note += "; black: the simulator's truth." if truths else "."
    return card(title, interval_chart(shown, label=title, truths=truths), note)


def _test_table(result: dict[str, Any]) -> str:
    header = ["metric", result["control"], result["treatment"], "increment", "95 %", "p"]
    rows = []
    for name, each in result["results"].items():
        low, high = each["relative interval"]
        rows.append(
            [
                name,
                f"{each['control']:.4g}",
                f"{each['treatment']:.4g}",
                f"{each['relative']:+.2%}",
                f"{low:+.2%} to {high:+.2%}",
                f"{each['p_value']:.2g}",
            ]
        )
    note = str(result["sample ratio"])
    if "budget" in result:
        note = f"Both arms are paced to {result['budget']:.3f} per view. {note}."
    return card("The test in numbers", html_table(header, rows, 0), note, wide=True)
