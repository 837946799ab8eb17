"""Mailings: turnout by arm beside the article, and whom the strongest mailing moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from bench.real_data import mailing_rows
from bench.real_data.data_folder import Frame
from bench.studies.real.held_out import held_out_text, judge, no_worse_than_one_curve
from bench.studies.real.plain import PlainEstimate, line
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
from doseforest.base.dtypes import FloatArray

TRAINING_HOUSEHOLDS, JUDGING_HOUSEHOLDS = 10_000, 20_000  # of the default forest
STRONGEST, NO_MAIL = 4.0, 0.0
MOST_DIFFERENCE = 0.002  # covariates take off less than .001 of chance imbalance; rounding .0005
N_FIFTHS = 5
WHY = (
    "Where we differ: the article has plain means of the arms. Ours are adjusted for chance "
    "differences of the covariates."
)
WHY_UNITS = (
    "Where units' curves differ from means: they spread wider than means do from the least to the "
    "largest fifth, and stay closer to the average where few voters tell a group apart, as among "
    "those who always voted or never did. A default forest of so few rows takes some noise for "
    "differences here, and its curves are no better than one curve for all."
)


def measure(effort: RealEffort) -> list[Record]:
    limit = None if effort.n_rows is None else max(effort.n_rows // 2, 1)  # two to a household
    voters = mailing_rows.read_voters(limit, effort.seed)
    n_training = min(TRAINING_HOUSEHOLDS, voters["hh_id"].nunique() // 3)
    chosen = mailing_rows.some_households(
        voters, n_training + JUDGING_HOUSEHOLDS, seed=effort.seed + 1
    )
    training, others = (
        voters["hh_id"].isin(own) for own in (chosen[:n_training], chosen[n_training:])
    )
    seen, unseen = mailing_rows.rows(voters[training]), mailing_rows.rows(voters[others])
    forest = effort.forest(seen)
    return [
        *averages(voters, effort),
        *groups(forest, voters[others], voters[~training]),
        *judge(forest, seen, unseen, effort),
        {"measure": "sizes", "row": "default forest", "n": len(seen)},
    ]


def averages(voters: Frame, effort: RealEffort) -> list[Record]:
    """Turnout by mailing of all voters, with a line for the outcome model and known chances."""
    rows = mailing_rows.rows(voters)
    forest = effort.forest(rows, correction="none", outcome_model=LinearRegression())
    average = forest.average_dose_response()
    return [
        published_record(
            name, value, error, published, int((rows.treatment == arm).sum()), seed=effort.seed
        )
        for arm, (name, value, error, published) in enumerate(
            zip(
                mailing_rows.MAILINGS,
                average.values,
                average.standard_errors,
                mailing_rows.PUBLISHED,
                strict=True,
            )
        )
    ]


def groups(forest: GeneralizedCausalForest, judged: Frame, unseen: Frame) -> list[Record]:
    """Effects of the strongest mailing by past turnout and by what the forest foretells.

    Forest's effects and differences of means are both of households it has not seen; past turnout
    needs no forest, so its differences are of all of them.
    """
    effects = np.asarray(forest.effect(judged[mailing_rows.COVARIATES], STRONGEST, NO_MAIL))
    before, before_all = mailing_rows.past_votes(judged), mailing_rows.past_votes(unseen)
    records = []
    for votes in np.unique(before):
        name = f"voted in {votes} of {len(mailing_rows.VOTED_BEFORE)} elections before"
        plain = difference(unseen, before_all == votes)
        records.append(_group(name, effects[before == votes], plain))
    rank = np.argsort(np.argsort(effects, kind="stable"), kind="stable")  # ties go by place
    fifth = rank * N_FIFTHS // len(effects)
    for place in (0, N_FIFTHS - 1):
        name = (
            "fifth with the smallest effects foretold" if place == 0 else "fifth with the largest"
        )
        records.append(_group(name, effects[fifth == place], difference(judged, fifth == place)))
    return records


def _group(name: str, effects: FloatArray, plain: PlainEstimate | None) -> Record:
    value, error = plain or (None, None)
    own = {"ours": float(effects.mean()), "plain": value, "plain_error": error}
    return {"measure": "groups", "row": name, "n": len(effects)} | own


def difference(voters: Frame, kept: NDArray[np.bool_]) -> PlainEstimate | None:
    """Turnout with the strongest mailing less that without mail, households as clusters."""
    own = voters[kept & voters["arm"].isin([STRONGEST, NO_MAIL]).to_numpy()]
    if own["arm"].nunique() < 2:  # among few voters
        return None
    return line(own["voted"], own["arm"] == STRONGEST, clusters=own["hh_id"])


def parts(records: list[Record]) -> list[str]:
    n = sum(own["n"] for own in pick(records, "published"))
    trained = pick(records, "sizes")[0]["n"]
    return [
        f"{n:,} voters, households drawn at random for one of five mailings (Gerber, Green and "
        "Larimer 2008). Turnout of all voters: a line for the outcome model, known chances, "
        "households as clusters.",
        published_table(records, decimals=4),
        WHY,
        f"Whom the strongest mailing moves: a default forest of {trained:,} voters, asked about "
        "the rows of households that it has not seen. By elections before, the differences of "
        f"means beside it are of all {n - trained:,} voters that it has not seen; by fifths, of "
        "the rows asked. They are largest among those who voted in three or four of five:",
        group_table(records, "units' curves", "difference of means (s.e.)", decimals=3),
        WHY_UNITS,
        held_out_text(records),
    ]


def verdicts(records: list[Record]) -> list[Verdict]:
    return [
        *(near_the_article(own) for own in pick(records, "published")),
        no_worse_than_one_curve("mailings", records),
    ]


def near_the_article(record: Record) -> Verdict:
    claim = f"mailings: turnout with '{record['row']}' within {MOST_DIFFERENCE} of the published"
    measured = f"{record['ours']:.4f} against {record['published']:.3f}"
    return Verdict(abs(record["ours"] - record["published"]) <= MOST_DIFFERENCE, claim, measured)


SECTION = RealSection("Mailings", (mailing_rows.FILE,), measure, parts, verdicts)
