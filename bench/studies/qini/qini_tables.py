"""Tables, sentences and verdicts of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.designs import DISCOUNT_DESIGNS
from bench.studies.markdown import markdown_table
from bench.studies.qini.qini_experiment import PICTURE_PLACE
from bench.studies.qini.qini_models import GCF, TABLE_2, QiniEffort
from bench.studies.qini.qini_trials import TRIALS
from bench.studies.real.plain import NORMAL_95
from bench.studies.real.real_section import pick
from bench.studies.report import Report, Verdict
from bench.studies.tasks import Record
from doseforest.datasets.discount_levels import LEVELS

SCALE = 1000.0
LEAST_HELD = 0.88  # of intervals of 95 %; those of a regime share their test rows
NOTE = (
    "Qini score of a discount against none: area between the curve of gain per unit and the "
    "straight line of random order, units by descending predicted effect "
    "([docs/judging.md](../../docs/judging.md)). All numbers are per thousand units; 95 % "
    "intervals by influence functions, differences paired on the same test rows."
)


def report(done: Mapping[str, Mapping[str, Any]], effort: QiniEffort) -> Report:
    """What was measured, with verdicts."""
    regimes = {name: own["records"] for name, own in done.items() if name in DISCOUNT_DESIGNS}
    real = {name: own["records"] for name, own in done.items() if name in TRIALS}
    parts = [f"{NOTE} {effort.text()}"]
    if regimes:
        parts += _regime_parts(regimes, effort)
    if real:
        parts += _trial_parts(real)
    seconds = ", ".join(f"{name} {own['seconds']:.0f} s" for name, own in done.items())
    parts.append(f"Measured in: {seconds}.")
    records = [record for own in done.values() for record in own["records"]]
    pictures = {}
    if regimes:
        pictures["qini.png"] = partial(draw_curves, regimes)
    return Report("Qini scores", parts, verdicts(regimes), records, pictures)


def _regime_parts(regimes: Mapping[str, Sequence[Record]], effort: QiniEffort) -> list[str]:
    described = "\n".join(f"- *{name}*: {DISCOUNT_DESIGNS[name].description}" for name in regimes)
    parts = [
        "## Table 2, on experiments with a known truth",
        f"Ride requests with six discounts at random, 0 to 25 %, order or no order; fits on "
        f"{effort.n_train:,} requests, judged on {effort.n_test:,} others. The regimes were "
        "committed before any model was run on them:",
        described,
    ]
    for name, records in regimes.items():
        parts += [f"### {name}", score_table(records), difference_table(records)]
    parts += [
        f"![Qini curves at a discount of {LEVELS[PICTURE_PLACE]:.0%}](qini.png)",
        "### Does a better Qini score mean a better policy?",
        "Policy: discounts by each model's predicted orders and the fare forgone, at every budget "
        "up to 25 % for all. Its true value is the mean number of orders gained over budgets, "
        "by the exact chances; exact Qini scores are by the exact effects. Ranks in brackets.",
        ranking_table(regimes),
        "Share of the pairs of models that test rows put in the order of true policy value, by "
        "how many rows there are:",
        agreement_table(regimes),
    ]
    return parts


def score_table(records: Sequence[Record]) -> str:
    """Scores with intervals, a row for each model of Table 2 and a column for each dose."""
    lines = []
    ranking = {own["row"]: own for own in pick(records, "ranking")}
    for model in TABLE_2:
        own = [record for record in pick(records, "score") if record["row"] == model]
        mean = {
            "value": ranking[model]["mean"],
            "standard_error": ranking[model]["mean_error"],
        }
        lines.append([model, *(with_interval(cell) for cell in (*own, mean))])
    return markdown_table(["Qini score", *level_names(), "mean"], lines)


def difference_table(records: Sequence[Record]) -> str:
    """Ours less the others, paired."""
    lines = []
    for model in TABLE_2:
        own = [record for record in pick(records, "difference") if record["row"] == model]
        if own:
            lines.append([f"{GCF} less {model}", *map(with_interval, own)])
    return markdown_table(["paired", *level_names(), "mean"], lines)


def level_names() -> list[str]:
    """Names of the columns.

    >>> level_names()[:2]
    ['d1 (5 %)', 'd2 (10 %)']
    """
    return [f"d{k} ({100 * dose:.0f} %)" for k, dose in enumerate(LEVELS) if k]


def with_interval(record: Mapping[str, Any]) -> str:
    """A number per thousand with its 95 % interval.

    >>> with_interval({"value": 0.012, "standard_error": 0.001})
    '12.00 [10.04, 13.96]'
    """
    value, reach = record["value"], NORMAL_95 * record["standard_error"]
    low, high = SCALE * (value - reach), SCALE * (value + reach)
    return f"{SCALE * value:.2f} [{low:.2f}, {high:.2f}]"


def ranking_table(regimes: Mapping[str, Sequence[Record]]) -> str:
    """Scores beside exact scores and the true value, with ranks."""
    lines = []
    columns = ("mean", "exact_mean", "budgeted", "exact_budgeted", "policy_value")
    for name, records in regimes.items():
        own = pick(records, "ranking")
        ranks = {column: _ranks([record[column] for record in own]) for column in columns}
        for place, record in enumerate(own):
            cells = [f"{SCALE * record[key]:.2f} ({ranks[key][place]})" for key in columns]
            lines.append([name, record["row"], *cells])
    header = [
        "",
        "model",
        "mean Qini",
        "exact Qini",
        "budgeted Qini",
        "exact budgeted Qini",
        "true value of its discounts",
    ]
    return markdown_table(header, lines)


def _ranks(values: Sequence[float]) -> list[int]:
    order = np.argsort(-np.asarray(values), kind="stable")
    return [int(rank) + 1 for rank in np.argsort(order)]


def agreement_table(regimes: Mapping[str, Sequence[Record]]) -> str:
    """Pairs in the right order by number of test rows."""
    lines = [
        [
            name,
            f"{record['n']:,}",
            f"{record['parts']}",
            f"{record['qini']:.0%}",
            f"{record['budgeted']:.0%}",
        ]
        for name, records in regimes.items()
        for record in pick(records, "agreement")
    ]
    return markdown_table(["", "test rows", "draws", "mean Qini", "budgeted Qini"], lines)


def _trial_parts(real: Mapping[str, Sequence[Record]]) -> list[str]:
    parts = ["## Real experiments"]
    for name, records in real.items():
        scores = pick(records, "score")
        about = scores[0]
        parts += [
            f"### {TRIALS[name].title}",
            f"{TRIALS[name].about[0].upper()}{TRIALS[name].about[1:]}. Fits on "
            f"{about['n_train']:,} rows, judged on {about['n']:,} others.",
            trial_table(records),
            beyond_chance(records),
        ]
    return parts


def trial_table(records: Sequence[Record]) -> str:
    """Scores with intervals, paired differences, and the average effects that they are of."""
    scores = pick(records, "score")
    doses = list(dict.fromkeys(record["dose"] for record in scores))
    names = [dose if dose == "mean" else f"{dose:g}" for dose in doses]
    lines = [
        [model, *(with_interval(own) for own in scores if own["row"] == model)] for model in TABLE_2
    ]
    for model in TABLE_2:
        gaps = [own for own in scores if own["row"] == model and "ours_less" in own]
        cells = [
            with_interval({"value": own["ours_less"], "standard_error": own["ours_less_error"]})
            for own in gaps
        ]
        if cells:
            lines.append([f"{GCF} less {model}", *cells])
    effects = [with_interval(own) for own in pick(records, "effect")]
    lines.append(["average effect", *effects, ""])
    return markdown_table(["Qini score", *names], lines)


def beyond_chance(records: Sequence[Record]) -> str:
    """Who is beyond chance, on average over the doses; or that nobody is."""
    means = [own for own in pick(records, "score") if own["dose"] == "mean"]
    ahead = [own["row"] for own in means if own["value"] > NORMAL_95 * own["standard_error"]]
    behind = [own["row"] for own in means if own["value"] < -NORMAL_95 * own["standard_error"]]
    text = f"Beyond chance: {', '.join(ahead)}." if ahead else "Nobody beats random order."
    return text + (f" Worse than random order: {', '.join(behind)}." if behind else "")


def verdicts(regimes: Mapping[str, Sequence[Record]]) -> list[Verdict]:
    """What must hold of the measure; then how our forest fares, won or lost."""
    found = [own for records in regimes.values() for own in pick(records, "score")]
    claim = f"at least {LEAST_HELD:.0%} of the intervals of scores hold the exact score"
    if not found:
        return [Verdict(None, claim)]
    held = [abs(own["value"] - own["exact"]) <= NORMAL_95 * own["standard_error"] for own in found]
    lines = [Verdict(float(np.mean(held)) >= LEAST_HELD, claim, f"{sum(held)} of {len(held)}")]
    for name, records in regimes.items():
        lines.append(_same_best(name, records))
        lines += [_ahead(name, records, model) for model in TABLE_2 if model != GCF]
    return lines


def _same_best(name: str, records: Sequence[Record]) -> Verdict:
    ranking = pick(records, "ranking")
    best = {key: max(ranking, key=lambda own: own[key])["row"] for key in ("mean", "policy_value")}
    claim = f"{name}: the model of best Qini score also has the best doses"
    return Verdict(
        best["mean"] == best["policy_value"],
        claim,
        f"{best['mean']} by score, {best['policy_value']} by true value",
    )


def _ahead(name: str, records: Sequence[Record], model: str) -> Verdict:
    gap = next(
        own for own in pick(records, "difference") if own["row"] == model and own["dose"] == "mean"
    )
    claim = f"{name}: {GCF} ahead of {model} in mean score beyond the paired interval"
    low = gap["value"] - NORMAL_95 * gap["standard_error"]
    return Verdict(low > 0, claim, with_interval(gap))


def draw_curves(regimes: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Curves at one discount, a picture for each regime."""
    from doseforest.report.pictures import INK, KINDS, legend_above, pyplot
    from doseforest.report.qini_plots import side_by_side

    axes = side_by_side(len(regimes), size=(4.2, 3.4))
    for ax, (name, records) in zip(axes, regimes.items(), strict=True):
        ax.spines[["top", "right"]].set_visible(False)
        for model, colour in zip(TABLE_2, KINDS, strict=False):
            own = next(
                record
                for record in pick(records, "score")
                if record["row"] == model and "gain" in record
            )
            gain, low, high = (SCALE * np.array(own[key]) for key in ("gain", "low", "high"))
            shares = np.linspace(0.0, 1.0, len(gain))
            ax.fill_between(shares, low, high, color=colour, alpha=0.15, linewidth=0)
            ax.plot(shares, gain, color=colour, linewidth=1.6, label=model)
        ax.plot([0, 1], [0, gain[-1]], "--", color=INK, linewidth=1, label="random")
        ax.set(xlabel="share of requests", ylabel="orders gained per 1,000", title="")
        ax.text(0.97, 0.05, name, transform=ax.transAxes, ha="right")
        legend_above(ax)
    figure = axes[0].figure
    figure.savefig(path, dpi=110)
    pyplot().close(figure)
