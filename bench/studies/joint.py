"""Doses of several components, point masses and arms: joint fits beside fits that ignore it."""

from __future__ import annotations

from bench.designs import JOINT_DESIGNS
from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import Scores, digits, interval_text, with_error
from bench.studies.study_methods import APART, OURS
from bench.studies.tasks import Record, Task

SIZE, SIMULATIONS = 1000, 6
ROWS = ("doseforest", "random_forest", "boosting", "zero")
TWO = ("two_discounts", "two_discounts_apart")  # the first with an interaction
WITHIN = 1.1
NOTE = (
    f"Root mean square error of effects, mean over simulations of {SIZE:,} units, standard error "
    f"in brackets. {APART}: a forest for each of the two discounts with the other one among the "
    "controls, their effects added up. Random forest and boosting regress the outcome on "
    "covariates and all components."
)


def tasks(request: Request) -> list[Task]:
    """Seeds first, so that a run that is cut short has something of every design."""
    chosen = request.designs or JOINT_DESIGNS
    return [
        Task(method, design, SIZE, seed)
        for seed in request.seeds(SIMULATIONS)
        for design in chosen
        for method in request.methods or (*ROWS, *(["apart"] if design in TWO else []))
    ]


def report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    designs = [own for own in JOINT_DESIGNS if any(r["design"] == own for r in records)]
    rows = list(dict.fromkeys(record["row"] for record in records))
    lines = [
        [row, *(with_error(scores.mean(design, SIZE, row)) for design in designs)] for row in rows
    ]
    described = "\n".join(f"- *{own}*: {JOINT_DESIGNS[own].description}" for own in designs)
    parts = [NOTE, described, markdown_table(["", *designs], lines)]
    return Report("Joint doses", parts, bars(scores, rows), records)


def bars(scores: Scores, rows: list[str]) -> list[Verdict]:
    """The joint fit against the two apart, with and without an interaction."""
    interacting, additive = TWO
    ahead = f"on {interacting} ahead of {APART} beyond the 95 % interval of the paired difference"
    close = f"on {additive} within 10 % of the best row"
    gap = scores.paired(interacting, SIZE, APART, OURS)
    ours = scores.mean(additive, SIZE, OURS)
    others = [own for row in rows if row != OURS and (own := scores.mean(additive, SIZE, row))]
    if gap is None or ours is None or not others:
        return [Verdict(None, ahead), Verdict(None, close)]
    best = min(own.value for own in others)
    measured = f"{digits(gap.value)} {interval_text(gap)}"
    return [
        Verdict(gap.interval()[0] > 0, ahead, measured),
        Verdict(
            ours.value <= WITHIN * best, close, f"{digits(ours.value)}, best other {digits(best)}"
        ),
    ]
