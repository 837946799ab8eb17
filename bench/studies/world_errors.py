"""Errors on designs that no term of the model was made for, beside what a user would reach for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bench.designs import WORLDS
from bench.studies.markdown import markdown_table
from bench.studies.measures import N_NEW_UNITS
from bench.studies.report import Report, Verdict
from bench.studies.request import Request
from bench.studies.scores import MISSING, Scores, digits, interval_text
from bench.studies.study_methods import METHODS, OURS, PARTS, ROWS
from bench.studies.study_settings import OVERLAP, PUBLISHED
from bench.studies.tasks import Record, Task
from doseforest.base.estimates import Estimate

SIZE, SIMULATIONS = 1000, 10
MEASURE = "new_units"
FAMILIAR = (*OVERLAP, *PUBLISHED)  # designs of the accuracy study
COLUMNS = (*WORLDS, *FAMILIAR)
PEERS = ("gaussian_process", "lightgbm", "lightgbm_tuned", "catboost", "random_forest", "econml")
TABLE = ("doseforest", *PEERS)
OPTIONAL = ("catboost",)  # in no extra of the package: rows of them are worth having, not needed
MOST_RATIO = 1.02
KINDS = ("other row", "peer")
NOTE = (
    f"Root mean square error of theta(t, x) = mu(t, x) - mu(lowest dose, x) on {N_NEW_UNITS} new "
    "units and 20 doses: means over draws, standard error in brackets. All methods have their "
    "defaults, but for *tuned*: the best of 15 random settings by 4 folds. Where columns are codes "
    "of categories, doseforest, LightGBM and CatBoost take them as such; others have indicators."
)
RATIO_NOTE = (
    "Mean error of doseforest over that of the best other row by its mean, and of the best peer, "
    "which parts of doseforest are not; 95 % intervals from the paired draws. The best row is "
    "chosen on the same draws, which favours it."
)

Best = tuple[str, Estimate]  # a row, and the ratio of ours to it


def tasks(request: Request) -> list[Task]:
    """Seeds first, so that a run that is cut short has something of every design."""
    return [
        Task(method, design, request.n or SIZE, seed, MEASURE)
        for seed in request.seeds(SIMULATIONS)
        for design in request.designs or COLUMNS
        for method in request.methods or available(TABLE)
    ]


def available(methods: Sequence[str]) -> tuple[str, ...]:
    """Methods, without optional ones whose packages are not installed."""
    return tuple(name for name in methods if name not in OPTIONAL or not METHODS[name].missing)


def report(records: list[Record], request: Request) -> Report:
    scores, size = Scores(records), request.n or SIZE
    designs = [name for name in request.designs or COLUMNS if scores.rows_of(name, size)]
    ratios = {name: ratio_to_best(scores, name, size) for name in designs}
    peers = {name: ratio_to_best(scores, name, size, without=(OURS, *PARTS)) for name in designs}
    parts = [
        f"{NOTE} {size:,} units to learn from.{absent_sentence(request)}",
        error_table(scores, designs, size),
        "## The best other row",
        RATIO_NOTE,
        ratio_table(ratios, peers),
        *mean_sentences(ratios, "best other row"),
        *mean_sentences(peers, "best peer"),
    ]
    bars = [near_the_best(design, ratios.get(design)) for design in request.designs or COLUMNS]
    return Report("Worlds that are not ours", parts, bars, records)


def absent_sentence(request: Request) -> str:
    """Which rows are left out for want of a package."""
    asked = request.methods or TABLE
    absent = [METHODS[name].row for name in asked if name in OPTIONAL and METHODS[name].missing]
    return f" Left out, as not installed: {', '.join(absent)}." if absent else ""


def error_table(scores: Scores, designs: Sequence[str], size: int, number: str = "rms") -> str:
    """Designs by rows; then geometric means of errors over those of doseforest, and times."""
    measured = {record["row"] for record in scores.records}
    rows = [row for row in ROWS if row in measured]
    if not rows:
        return "No draws yet."
    lines = [
        [design, *(error_cell(scores, design, size, row, number) for row in rows)]
        for design in designs
    ]
    lines.append(["geometric mean, of ours", *relative_errors(scores, designs, size, rows, number)])
    lines.append(["s per fit", *(seconds_cell(scores, row) for row in rows)])
    return markdown_table(["", *rows], lines)


def error_cell(scores: Scores, design: str, size: int, row: str, number: str) -> str:
    """A mean with its standard error; of one draw its value alone."""
    values = list(scores.by_seed(design, size, row, number).values())
    mean = scores.mean(design, size, row, number)
    if mean is None:
        return digits(values[0]) if values else MISSING
    return f"{digits(mean.value)} ({digits(mean.standard_error)})"


def relative_errors(
    scores: Scores, designs: Sequence[str], size: int, rows: Sequence[str], number: str
) -> list[str]:
    """Geometric means over designs of mean errors, relative to doseforest; of whole rows alone."""

    def means(row: str) -> list[float]:
        errors = [list(scores.by_seed(name, size, row, number).values()) for name in designs]
        return [float(np.mean(values)) for values in errors if values]

    ours = means(OURS)
    cells = []
    for row in rows:
        theirs = means(row)
        whole = len(theirs) == len(ours) == len(designs)
        cells.append(digits(geometric_mean(np.divide(theirs, ours))) if whole else MISSING)
    return cells


def seconds_cell(scores: Scores, row: str) -> str:
    times = [record["fit_seconds"] for record in scores.records if record["row"] == row]
    return MISSING if row in PARTS else f"{np.mean(times):.1f}"


def ratio_to_best(
    scores: Scores,
    design: str,
    size: int,
    number: str = "rms",
    *,
    without: Sequence[str] = (OURS,),
) -> Best | None:
    """The best other row by its mean over the draws of ours, and the ratio of ours to it."""
    ours = scores.by_seed(design, size, OURS, number)
    rows = [row for row in scores.rows_of(design, size) if row not in without]
    errors = {row: scores.by_seed(design, size, row, number) for row in rows}
    others = {row: theirs for row, theirs in errors.items() if theirs.keys() >= ours.keys()}
    if len(ours) < 2 or not others:
        return None
    means = {row: np.mean([theirs[seed] for seed in ours]) for row, theirs in others.items()}
    best = min(means, key=means.__getitem__)
    return best, ratio_of_means(list(ours.values()), [others[best][seed] for seed in ours])


def ratio_of_means(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Mean of first over mean of second, draw by draw, with the error of the delta method.

    Examples
    --------
    >>> ratio_of_means([1.0, 3.0], [2.0, 6.0])
    0.5 (s.e. 0)
    >>> ratio_of_means([1.0, 3.0], [2.0, 2.0])
    1 (s.e. 0.5)
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    ratio = float(one.mean() / other.mean())
    left = one - ratio * other
    error = float(left.std(ddof=1) / np.sqrt(len(left)) / other.mean())
    return Estimate(ratio, error, degrees=len(left) - 1)


def ratio_table(ratios: Mapping[str, Best | None], peers: Mapping[str, Best | None]) -> str:
    """Designs by the best other row and the best peer, each with the ratio of ours to it."""
    lines = [
        [design, *best_cells(best), *best_cells(peers[design])]
        for design, best in ratios.items()
        if best is not None
    ]
    header = ["", *(f"best {what}{part}" for what in KINDS for part in ("", ": ratio"))]
    return markdown_table(header, lines) if lines else "Two draws of ours and of another row first."


def best_cells(best: Best | None) -> list[str]:
    """A row, and the ratio to it with its interval."""
    if best is None:
        return [MISSING, MISSING]
    row, ratio = best
    return [row, f"{digits(ratio.value)} {interval_text(ratio)}"]


def mean_sentences(ratios: Mapping[str, Best | None], what: str) -> list[str]:
    """Geometric means of the ratios, of the worlds and of the designs of the accuracy study."""
    groups = {"the worlds": WORLDS, "the designs of the accuracy study": FAMILIAR}
    texts = []
    for name, members in groups.items():
        values = [best[1].value for design in members if (best := ratios.get(design)) is not None]
        if values:
            mean = digits(geometric_mean(np.array(values)))
            texts.append(
                f"Ratio to the {what}, geometric mean over {len(values)} of {name}: {mean}."
            )
    return texts


def geometric_mean(values: np.ndarray) -> float:
    """Of positive numbers.

    >>> round(geometric_mean(np.array([1.0, 4.0])), 6)
    2.0
    """
    return float(np.exp(np.log(values).mean()))


def near_the_best(design: str, best: Best | None) -> Verdict:
    claim = f"{design}: at most {MOST_RATIO - 1:.0%} worse than the best other row"
    if best is None:
        return Verdict(None, claim)
    row, ratio = best
    measured = f"{digits(ratio.value)} {interval_text(ratio)} ({row})"
    return Verdict(ratio.value <= MOST_RATIO, claim, measured)
