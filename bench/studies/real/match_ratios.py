"""Match ratios: how many gave by ratio beside the article, in red and in blue states."""

from __future__ import annotations

import numpy as np

from bench.real_data import match_ratio_rows
from bench.real_data.data_folder import Frame
from bench.studies.real.held_out import (
    held_out_text,
    judge_held_out,
    no_worse_than_one_curve,
)
from bench.studies.real.plain import line
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_section import (
    RealSection,
    group_table,
    pick,
    published_record,
    published_table,
)
from bench.studies.report import Verdict
from bench.studies.tasks import Record
from doseforest import GeneralizedCausalForest

MOST_DIFFERENCE = 0.0006  # half a standard error
RATIOS = np.arange(1.0, len(match_ratio_rows.PUBLISHED))  # 1 : 1, 2 : 1, 3 : 1
STATES = {"blue states": 0, "red states": 1}
WHY = (
    "Where we differ: the article has plain means of the arms. Ours are adjusted for chance "
    "differences of the covariates. With one gift in fifty letters, differences between units are "
    "hard to tell from noise, and a default forest is careful with them."
)


def measure(effort: RealEffort) -> list[Record]:
    letters = match_ratio_rows.read_letters(effort.n_rows)
    rows = match_ratio_rows.rows(letters)
    forest = effort.forest(rows)
    average = forest.average_dose_response()
    counts = np.bincount(rows.treatment.astype(int))
    records = [
        published_record(
            "no match" if not ratio else f"{ratio} : 1",
            average.values[ratio],
            average.standard_errors[ratio],
            published,
            int(counts[ratio]),
            seed=effort.seed,
        )
        for ratio, published in enumerate(match_ratio_rows.PUBLISHED)
    ]
    records += states(forest, letters)
    return records + judge_held_out(rows, effort)


def states(forest: GeneralizedCausalForest, letters: Frame) -> list[Record]:
    """Any match against none, by who won the state."""
    records = []
    for name, red in STATES.items():
        own = letters[letters["red0"] == red]
        curves = np.asarray(
            forest.dose_response(own[match_ratio_rows.COVARIATES], np.append(0.0, RATIOS))
        )
        plain = line(own[match_ratio_rows.OUTCOME], own[match_ratio_rows.DOSE] > 0)
        effects = curves[:, 1:].mean(axis=1) - curves[:, 0]
        means = {"ours": float(effects.mean()), "plain": plain.value, "plain_error": plain.error}
        records.append({"measure": "groups", "row": name, "n": len(own)} | means)
    return records


def parts(records: list[Record]) -> list[str]:
    n = sum(own["n"] for own in pick(records, "published"))
    return [
        f"{n:,} letters to earlier donors, ratios of a matching grant at random (Karlan and List "
        "2007): share who gave, with the chances of the ratios known.",
        published_table(records, decimals=4),
        WHY,
        "Who responds to any match, by state (the article finds red states more responsive):",
        group_table(records, "units' curves", "difference of means (s.e.)", decimals=4),
        held_out_text(records),
    ]


def verdicts(records: list[Record]) -> list[Verdict]:
    return [
        *(near_the_article(own) for own in pick(records, "published")),
        no_worse_than_one_curve("match-ratios", records),
    ]


def near_the_article(record: Record) -> Verdict:
    claim = f"match-ratios: response to '{record['row']}' within {MOST_DIFFERENCE} of the published"
    measured = f"{record['ours']:.4f} against {record['published']:.4f}"
    return Verdict(abs(record["ours"] - record["published"]) <= MOST_DIFFERENCE, claim, measured)


SECTION = RealSection("Match ratios", (match_ratio_rows.FILE,), measure, parts, verdicts)
