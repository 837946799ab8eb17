"""Loans: elasticities to a rate that was random within strata, beside those of the article."""

from __future__ import annotations

import numpy as np

from bench.real_data import loan_rows
from bench.real_data.data_folder import Frame
from bench.studies.markdown import markdown_table
from bench.studies.real.held_out import (
    held_out_text,
    judge_held_out,
    no_worse_than_one_curve,
)
from bench.studies.real.plain import PlainEstimate, indicators, line, with_error
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

NO_DISCOUNT = 1.0  # the baseline
WHY = (
    "Where we differ, with all clients: loan sizes come out steeper. A line through all rates "
    "gives the published figure; over the rates that every class was offered, which the forest is "
    "asked about, lines are steeper, too."
)


def measure(effort: RealEffort) -> list[Record]:
    offers = loan_rows.read_offers(effort.n_rows)
    same_rates = offers[offers["share"] >= loan_rows.SHARES[0]]
    records = []
    for outcome, published in loan_rows.PUBLISHED.items():
        rows = loan_rows.rows(offers, outcome)
        forest = effort.forest(rows, baseline=NO_DISCOUNT)
        found = forest.average_dose_response(loan_rows.SHARES).elasticity()
        record = published_record(
            outcome, found.value, found.standard_error, published, len(rows), seed=effort.seed
        )
        for name, part in (("all_rates", offers), ("same_rates", same_rates)):
            record[name] = list(line_within_strata(part, outcome))
        record["pooled"] = loan_rows.pooled_elasticity(offers, outcome)
        records.append(record)
        if outcome == "applied":
            records += classes(forest, offers)
    return records + judge_held_out(loan_rows.rows(offers), effort, baseline=NO_DISCOUNT)


def line_within_strata(offers: Frame, outcome: str) -> PlainEstimate:
    """Elasticity by least squares with a level for each stratum."""
    strata = indicators(loan_rows.strata(offers).labels.astype(str))
    slope, error = line(offers[outcome], np.log(offers["share"]), strata)
    level = offers[outcome].mean()
    return PlainEstimate(float(slope / level), float(error / level))


def classes(forest: GeneralizedCausalForest, offers: Frame) -> list[Record]:
    """Elasticities of the mean curve of each risk class, beside a line through its offers."""
    X, records = loan_rows.covariates(offers), []
    centred = np.log(loan_rows.SHARES) - np.log(loan_rows.SHARES).mean()
    for risk in loan_rows.NORMAL_RATE:
        own = (offers["risk"] == risk).to_numpy()
        curve = np.asarray(forest.dose_response(X[own], loan_rows.SHARES)).mean(axis=0)
        slope = float(np.log(curve) @ centred / (centred @ centred))
        part = offers[own]
        plain = line_within_strata(part[part["share"] >= loan_rows.SHARES[0]], "applied")
        record = {"measure": "groups", "row": f"{risk.lower()} risk", "n": int(own.sum())}
        records.append(record | {"ours": slope, "plain": plain.value, "plain_error": plain.error})
    return records


def parts(records: list[Record]) -> list[str]:
    own = pick(records, "published")
    first, last = loan_rows.SHARES[[0, -1]]
    lines = [
        [
            record["row"],
            *(with_error(*record[name]) for name in ("all_rates", "same_rates")),
            f"{record['pooled']:.2f}",
        ]
        for record in own
    ]
    header = ["lines within strata", "all rates", f"rates from {first:.0%} on", "strata ignored"]
    return [
        f"{own[0]['n']:,} former clients of a lender, offered loans at rates that were random "
        "within risk class and mailing (Karlan and Zinman 2008). The elasticity is the slope of "
        "the line through the logarithm of the average outcome over that of the rate, at "
        f"{len(loan_rows.SHARES)} shares of the client's normal rate from {first:.0%} to "
        f"{last:.0%}, which every class was offered.",
        published_table(records),
        markdown_table(header, lines),
        WHY,
        "Who responds, applications by risk class:",
        group_table(records, "units' curves", "line within strata (s.e.)"),
        held_out_text(records),
    ]


def verdicts(records: list[Record]) -> list[Verdict]:
    return [
        *(near_the_article(record) for record in pick(records, "published")),
        no_worse_than_one_curve("loans", records),
    ]


def near_the_article(record: Record) -> Verdict:
    claim = f"loans: elasticity of {record['row']} within a standard error of the published one"
    near = abs(record["ours"] - record["published"]) <= record["standard_error"]
    ours = with_error(record["ours"], record["standard_error"])
    return Verdict(near, claim, f"{ours} against {record['published']:.2f}")


SECTION = RealSection("Loans", (loan_rows.FILE,), measure, parts, verdicts)
