"""IHDP with a dose, and three sets more: held-out units' curves beside published errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from bench.designs import HELD_OUT_DESIGNS
from bench.real_data.held_out_curves import (
    CADR_FILE,
    CADR_RESULTS,
    CADR_SETS,
    IHDP_FILE,
    IHDP_RESULTS,
    published_cadr,
    published_ihdp,
)
from bench.studies.markdown import markdown_table
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import MISSING, Scores, digits, interval_text, paired_by_seed, with_error
from bench.studies.study_methods import OURS, ROWS, SINGLE_METHODS
from bench.studies.tasks import Record, Task
from bench.studies.world_errors import (
    TABLE,
    absent_sentence,
    available,
    error_cell,
    seconds_cell,
)
from doseforest.evaluation import simulation_mean

IHDP_DESIGNS = ("ihdp",)
CADR_DESIGNS = tuple(f"cadr_{name}" for name in CADR_SETS)
IHDP_FILES = (IHDP_FILE, IHDP_RESULTS)
CADR_FILES = (CADR_FILE, CADR_RESULTS)
CHOICE = tuple(name for name in SINGLE_METHODS if name != "adrf")  # no exact average of all units
GIKS = "giks"  # the best of the published methods on IHDP
MOST_ERRORS = {"ihdp": 0.85, "cadr_ihdp1": 0.75, "cadr_synth1": 0.30, "cadr_ihdp3": 5.7}
DEFAULTS = "All methods have their defaults on every split, whatever the data."
IHDP_NOTE = (
    "Root mean integrated squared error of the curves of 276 held-out infants at 64 doses, 471 to "
    "learn from: means over splits, standard error in brackets, and the difference to GIKS split "
    "by split, above 0 where GIKS is better. Published rows are the authors', on the same splits."
)
CADR_NOTE = (
    "Root of the mean integrated squared error (MISE) of held-out units' curves by Romberg's rule "
    "over 65 doses, and policy error, the mean squared outcome lost at the dose with the highest "
    "estimate: means over draws, standard error in brackets. Published rows are means over the "
    "authors' draws with their standard deviation; the MISE of IHDP-3 is not among them."
)


def tasks(request: Request, *, designs: Sequence[str], measure: str) -> list[Task]:
    """Splits first, so that a run that is cut short has something of every set."""
    chosen = [HELD_OUT_DESIGNS[name] for name in request.designs or designs]
    return [
        Task(method, design.name, design.n_rows, split, measure)
        for split in splits(request, max(design.n_draws for design in chosen))
        for design in chosen
        for method in request.methods or available(TABLE)
    ]


def splits(request: Request, n_splits: int) -> range:
    """Numbers of the splits that are asked for, by default all.

    Examples
    --------
    >>> splits(Request(), 50), splits(Request(seed=40, simulations=20), 50)
    (range(0, 50), range(40, 50))
    """
    first = request.seed or 0
    if first >= n_splits:
        raise ValueError(
            f"The 'seed' parameter must be the number of a split, from 0 to {n_splits - 1}. "
            f"Got {first} instead."
        )
    return range(first, min(first + (request.simulations or n_splits), n_splits))


ihdp_tasks = partial(tasks, designs=IHDP_DESIGNS, measure="published_ihdp")
cadr_tasks = partial(tasks, designs=CADR_DESIGNS, measure="published_cadr")


def ihdp_report(records: list[Record], request: Request) -> Report:
    scores, published = Scores(records), published_ihdp()
    parts = [
        f"{IHDP_NOTE} {DEFAULTS}{absent_sentence(request)}",
        ihdp_table(scores, published),
    ]
    return Report("IHDP with a dose", parts, verdicts(scores, IHDP_DESIGNS), records)


def ihdp_table(scores: Scores, published: Mapping[str, Mapping[int, float]]) -> str:
    """Our rows, then the published ones, each over its splits."""
    (design,) = IHDP_DESIGNS
    n = HELD_OUT_DESIGNS[design].n_rows
    lines = [
        [
            row,
            *(str(len(errors)), error_cell(scores, design, n, row, "rms")),
            less_giks(errors, published[GIKS]),
            seconds_cell(scores, row),
        ]
        for row in measured(scores)
        if (errors := scores.by_seed(design, n, row))
    ]
    seeds = {record["seed"] for record in scores.records}
    same = {
        method: {split: error for split, error in errors.items() if split in seeds}
        for method, errors in published.items()
    }
    for method in sorted(same, key=lambda name: sum(same[name].values())):
        errors = list(same[method].values())
        if errors:
            name = f"{method.upper() if method == GIKS else method}, published"
            gap = MISSING if method == GIKS else less_giks(same[method], published[GIKS])
            lines.append([name, str(len(errors)), mean_text(errors), gap, MISSING])
    header = ["", "splits", "error", "less GIKS", "s per fit"]
    return markdown_table(header, lines) if lines else "No splits yet."


def less_giks(errors: Mapping[int, float], giks: Mapping[int, float]) -> str:
    """The mean difference on the same splits, with its interval."""
    gap = paired_by_seed(dict(errors), dict(giks))
    return f"{digits(gap.value)} {interval_text(gap)}" if gap else MISSING


def cadr_report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    designs = request.designs or CADR_DESIGNS
    parts = [f"{CADR_NOTE} {DEFAULTS}{absent_sentence(request)}"]
    for title, number in (("Root of the MISE", "rms"), ("Policy error", "policy")):
        parts += [f"## {title}", cadr_table(scores, designs, number)]
    return Report("Curves of three published sets", parts, verdicts(scores, designs), records)


def cadr_table(scores: Scores, designs: Sequence[str], number: str) -> str:
    """Our rows, then the published ones."""
    sets = {design: design.removeprefix("cadr_") for design in designs}
    lines = [
        [
            row,
            *(
                error_cell(scores, design, HELD_OUT_DESIGNS[design].n_rows, row, number)
                for design in sets
            ),
            seconds_cell(scores, row),
        ]
        for row in measured(scores)
    ]
    published = [published_cadr(name, policy=number == "policy") for name in sets.values()]
    for method in dict.fromkeys(method for table in published for method in table):
        cells = [
            f"{table[method][0]:.2f} (sd {table[method][1]:.2f})" if method in table else MISSING
            for table in published
        ]
        lines.append([f"{method}, published", *cells, MISSING])
    names = [CADR_SETS[name] for name in sets.values()]
    return markdown_table(["", *names, "s per fit"], lines) if lines else "No draws yet."


def measured(scores: Scores) -> list[str]:
    """Rows with records, in the order of the methods."""
    rows = {record["row"] for record in scores.records}
    return [row for row in ROWS if row in rows]


def verdicts(scores: Scores, designs: Sequence[str]) -> list[Verdict]:
    """The bars, on the mean over the splits of a run."""
    bars = []
    for design in designs:
        claim = f"{design}: mean error of {OURS} at most {MOST_ERRORS[design]}"
        mean = scores.mean(design, HELD_OUT_DESIGNS[design].n_rows, OURS)
        if mean is None:
            bars.append(Verdict(None, claim))
            continue
        measured_text = f"measured {digits(mean.value)} {interval_text(mean)}"
        bars.append(Verdict(mean.value <= MOST_ERRORS[design], claim, measured_text))
    return bars


def mean_text(values: Sequence[float]) -> str:
    """A mean with its standard error; of a single value that alone.

    Examples
    --------
    >>> mean_text([2.0, 4.0]), mean_text([2.0])
    ('3.00 (1.00)', '2.00')
    """
    return with_error(simulation_mean(values)) if len(values) > 1 else digits(values[0])
