"""What the parts say together: increments in finished orders, and shares of what is possible."""

from __future__ import annotations

import numpy as np

from bench.studies.markdown import markdown_table
from bench.studies.market.market_part import (
    BOOSTED,
    CF,
    EXACT,
    FLAT,
    GCF,
    LIKE,
    NOTHING,
    ORACLE,
    OUTCOME,
    MarketEffort,
    booster_name,
)
from bench.studies.report import Report, Verdict
from bench.studies.tasks import Record
from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.evaluation import simulation_mean

MODELS = (GCF, OUTCOME, BOOSTED, CF, FLAT, EXACT)
RIVALS = (CF, BOOSTED)
AIMED_SHARE = 0.8
LINEAR = ("linear", "linear-dual")  # where the linear model is right


def report(records: list[Record], effort: MarketEffort) -> Report:
    """Tables and verdicts of all parts."""
    parts = list(dict.fromkeys(record["design"] for record in records))
    n_seeds = {part: len(_by_seed(records, part, NOTHING)) for part in parts}
    counted = [part for part in parts if n_seeds[part] > 1]
    tables = [_note(effort, n_seeds)]
    if counted:
        tables += [
            "## Share of the oracle's gain over no discount",
            _share_table(records, counted),
            "## Increment of GCF in finished orders",
            _increment_table(records, counted),
        ]
    verdicts = [own for part in counted for own in _verdicts(records, part)]
    return Report("Policies in the marketplace", tables, verdicts, records)


def shares(records: list[Record], part: str, row: str) -> FloatArray:
    """Gain of a policy over no discount as a share of the oracle's, by seed."""
    nothing, best, own = (_by_seed(records, part, name) for name in (NOTHING, ORACLE, row))
    return (own - nothing) / (best - nothing)


def increments(records: list[Record], part: str, rival: str, *, extra: bool) -> FloatArray:
    """Orders of GCF over those of a rival, by seed; `extra` are those that discounts bring."""
    ours, theirs = (_by_seed(records, part, name) for name in (GCF, rival))
    nothing = _by_seed(records, part, NOTHING)
    return (ours - theirs) / (theirs - nothing if extra else theirs)


def _by_seed(records: list[Record], part: str, row: str) -> FloatArray:
    """Finished orders per view, (n_seeds,) in the order of the seeds."""
    own = [own for own in records if own["design"] == part and own["row"] == row]
    return np.array([record["orders"] for record in sorted(own, key=lambda one: one["seed"])])


def _share_table(records: list[Record], parts: list[str]) -> str:
    lines = [
        [part, *(_text(simulation_mean(shares(records, part, row)), 1) for row in MODELS)]
        for part in parts
    ]
    return markdown_table(["regime", *MODELS], lines)


def _increment_table(records: list[Record], parts: list[str]) -> str:
    lines = [
        [
            part,
            f"over {rival}",
            _text(simulation_mean(increments(records, part, rival, extra=False)), 2),
            _text(simulation_mean(increments(records, part, rival, extra=True)), 1),
        ]
        for part in parts
        for rival in RIVALS
    ]
    header = ["regime", "", "finished orders", "orders that discounts bring"]
    return markdown_table(header, lines)


def _verdicts(records: list[Record], part: str) -> list[Verdict]:
    found = []
    if part not in LINEAR:
        share = simulation_mean(shares(records, part, GCF))
        claim = f"{part}: GCF reaches {AIMED_SHARE:.0%} of the oracle's gain"
        found.append(Verdict(share.value >= AIMED_SHARE, claim, _text(share, 1)))
    for rival in RIVALS:
        gap = simulation_mean(increments(records, part, rival, extra=True))
        low, high = gap.interval()
        if part in LINEAR:
            claim = f"{part}: GCF does not lose to {rival} beyond noise"
            found.append(Verdict(high >= 0, claim, _text(gap, 1)))
        else:
            claim = f"{part}: GCF's discounts bring more orders than those of {rival}, beyond noise"
            found.append(Verdict(low > 0, claim, _text(gap, 1)))
    return found


def _text(mean: Estimate, digits: int) -> str:
    low, high = mean.interval()
    return f"{mean.value:.{digits}%} [{low:.{digits}%}, {high:.{digits}%}]"


def _note(effort: MarketEffort, n_seeds: dict[str, int]) -> str:
    counts = ", ".join(f"{part} {count}" for part, count in n_seeds.items())
    return (
        f"Models learn requests from {effort.n_train:,} views of an experiment with random "
        f"discounts d0 … d5 (two options: pairs of them). Boosting is {booster_name()}; CF is a "
        "causal forest linear in the discount with levels by boosting; GCF is "
        "`GeneralizedCausalForest` by default, with the chances of the discounts known. Every "
        "policy gives a view the discount of largest requests - price x cost; its price makes it "
        f"cost exactly what {LIKE:.0%} for everybody cost, in a week of other views whose orders "
        "are expected exactly, drivers included. `exact curves` decides so by the simulator's own "
        "probabilities and costs; the oracle also knows how requests crowd out each other. Means "
        "over seeds with 95 % intervals of Student, paired by seed. "
        f"Seeds by regime: {counts}."
    )
