"""What each part of the default buys, and what each step from the printed formula did."""

from __future__ import annotations

from collections.abc import Mapping

from bench.studies.ablation_variants import (
    BOOSTING,
    DEFAULT,
    KERNEL,
    KERNEL_VARIANTS,
    NO_FORESTS,
    NO_POWERS,
    SIEVE_VARIANTS,
    SPLINES,
    STACK,
    WITH,
    WITHOUT,
)
from bench.studies.markdown import markdown_table
from bench.studies.printed_variants import (
    LATER_STEPS,
    PAPER,
    PRINTED,
    PRINTED_VARIANTS,
    STEPS,
)
from bench.studies.report import Report
from bench.studies.request import Request
from bench.studies.scores import (
    MISSING,
    Scores,
    digits,
    mark,
    paired_by_seed,
    range_text,
)
from bench.studies.study_settings import OTHER_SLOPES, size_of
from bench.studies.tasks import Record, Task
from doseforest.evaluation import simulation_mean

METHODS = ("ablation_printed", "ablation", "ablation_powers")
SIMULATIONS = {"ablation_printed": 10, "ablation": 6, "ablation_powers": 10}
PLAIN = (DEFAULT, NO_FORESTS)
STEPS_TOLD = (f"{PRINTED}: {PAPER}", *(f"{STEPS}: {name}" for name in LATER_STEPS))
POWERS_TOLD = tuple(f"{group}: {name}" for group in (WITH, WITHOUT) for name in PLAIN)
PRINTED_TOLD = tuple(f"{PRINTED}: {name}" for name in PRINTED_VARIANTS)
DESIGNS = ("polynomial", "confounded", "steps")
NOTE = (
    "Root mean square error of effects on new units, mean over draws, and in brackets its ratio to "
    "that of the first row, draw by draw. `*`: worse than the first row beyond the 95 % interval "
    "of the paired difference, `!`: better. All variants of a draw share rows, folds and outcome "
    "models; those of the printed algorithm share its halves, mu-hat and pi-hat."
)
STEPS_NOTE = (
    "Each row takes a step from the printed algorithm to the default, from the second on with the "
    "default outcome model. *Published formula*: doubly robust curves fill the leaves, too, in "
    "place of raw outcomes, nuisances are cross-fitted, trees are honest one by one. *Stabilised "
    "weights*: those of local lines, capped and shrunk. *Stabilised*: ratios of sums over the "
    "forest with mu-hat as an offset, three leaf sizes, twice the bandwidth, and a stack with a "
    "safety net. *The default*: functions of the dose in place of kernels."
)
SLOPES_NOTE = (
    "The paper's units have a slope of 0.2 (x1² + x4) t, and a parabola of x1 is among the terms "
    "that the spline core may choose. Here x1² is 1.5 |x1|, 1.5 sin(2 x1), exp(x1 / 1.5), 2 where "
    "x1 is above 0.5, and x1, of which only the last is a term; all else is the paper's polynomial."
)
PRINTED_NOTE = "Where its error comes from. Its mu-hat is fitted to half of the rows."


def tasks(request: Request) -> list[Task]:
    """Seeds first, so that a run that is cut short has something of every design."""
    return [
        Task(method, design, request.n or size_of(design), seed, measure="new_units")
        for method in request.methods or METHODS
        for seed in request.seeds(SIMULATIONS[method])
        for design in designs_of(method, request)
    ]


def designs_of(method: str, request: Request) -> list[str]:
    """Designs of a method: other slopes are for powers alone."""
    of_slopes = method == "ablation_powers"
    asked = request.designs or (OTHER_SLOPES if of_slopes else DESIGNS)
    return [design for design in asked if (design in OTHER_SLOPES) == of_slopes]


def report(records: list[Record], request: Request) -> Report:
    scores = Scores(records)
    sizes, slopes = (
        {own: request.n or size_of(own) for own in designs_of(method, request)}
        for method in ("ablation", "ablation_powers")
    )
    outcomes = [f"{own}: {name}" for own in (STACK, NO_POWERS, SPLINES, BOOSTING) for name in PLAIN]
    sieves, kernels = list(SIEVE_VARIANTS), [f"{KERNEL}: {name}" for name in KERNEL_VARIANTS]
    beside = [f"{BOOSTING}: {name}" for name in (NO_FORESTS, DEFAULT)]
    parts = [
        NOTE,
        "## From the printed algorithm to the default",
        STEPS_NOTE,
        table(scores, sizes, *STEPS_TOLD),
        "## The printed algorithm, one thing changed at a time",
        PRINTED_NOTE,
        table(scores, sizes, *PRINTED_TOLD),
        "## The outcome model",
        table(scores, sizes, *outcomes),
        "## Other slopes, with and without parabolas and cubics",
        SLOPES_NOTE,
        table(scores, slopes, *POWERS_TOLD),
        "## The correction, on the default outcome model",
        table(scores, sizes, *(f"{STACK}: {name}" for name in sieves)),
        "## The correction, on boosting alone",
        "An outcome model that leaves more to correct.",
        table(scores, sizes, *(f"{BOOSTING}: {name}" for name in sieves)),
        "## The kernel forms, on boosting alone",
        table(scores, sizes, *kernels, *beside),
    ]
    return Report("Ablation", parts, [], records)


def table(scores: Scores, sizes: Mapping[str, int], first: str, *others: str) -> str:
    """Rows by designs, compared with the first; `sizes` has the units of each design."""
    if not sizes:
        return "Not asked for in this run."
    lines = [
        [
            row,
            range_text(len(scores.by_seed(own, n, row)) for own, n in sizes.items()),
            *(cell(scores, own, n, row, first) for own, n in sizes.items()),
        ]
        for row in (first, *others)
    ]
    return markdown_table(["", "draws", *sizes], lines)


def cell(scores: Scores, design: str, size: int, row: str, first: str) -> str:
    mean = scores.mean(design, size, row)
    if mean is None:
        return MISSING
    if row == first:
        return digits(mean.value)
    ours, theirs = (scores.by_seed(design, size, own) for own in (first, row))
    ratio = simulation_mean([theirs[seed] / ours[seed] for seed in theirs]).value
    gap = paired_by_seed(theirs, ours)
    return f"{digits(mean.value)} ({ratio:.2f}){mark(gap)}"
