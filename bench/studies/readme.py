"""The tables of the README and docs/paper.md that are made from published results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from bench.studies import ablation, scaling
from bench.studies.markdown import markdown_table
from bench.studies.provenance import CLONE, results_folder
from bench.studies.report import ungrouped
from bench.studies.scores import MISSING, Scores, digits, range_text
from bench.studies.study_methods import ALGORITHM, CONSTANT, EXACT_AVERAGE, OURS, OUTCOME
from bench.studies.study_settings import OTHER_SLOPES, PRINTED, PUBLISHED, SIZES, SPARSE
from doseforest.base.atomic_files import write_text
from doseforest.base.estimates import Estimate
from doseforest.evaluation import simulation_mean

START, END = "<!-- made by `make readme` from {} -->\n", "<!-- end -->"
FEW_SIZES = (500, 2000, 10_000, 50_000)
TOLD = (OURS, OUTCOME, CONSTANT, EXACT_AVERAGE, ALGORITHM)  # then baselines, in their order


def readme_table(results: dict[str, Any]) -> str:
    """Root mean square errors of all methods on the six data sets.

    Parameters
    ----------
    results : dict
        What `table1.json` holds.
    """
    means: dict[str, dict[str, str]] = {}
    draws: dict[str, list[int]] = {}
    for group in results["results"]:
        row = group["row"]
        means.setdefault(row, {})[group["design"]] = digits(simulation_mean(group["rms"]).value)
        draws.setdefault(row, []).append(len(group["rms"]))
    others = [row for row in means if row not in TOLD]
    lines = [
        [
            named(row),
            range_text(draws[row]),
            *(means[row].get(own, MISSING) for own in (*PUBLISHED, *SPARSE)),
        ]
        for row in (*(row for row in TOLD if row in means), *others)
    ]
    printed = [f"{pair[0]:.2f}" for pair in PRINTED["GCF, published"]]
    lines.append(["GCF as published", MISSING, *printed, *[MISSING] * len(SPARSE)])
    header = [*("rms of effects", "draws"), *PUBLISHED, *(f"{own}, sparse" for own in PUBLISHED)]
    return markdown_table(header, lines)


def named(row: str) -> str:
    """Row names as the README says them."""
    return {
        OURS: "**doseforest**",
        EXACT_AVERAGE: "the exact average curve for everyone",
        ALGORITHM: "the printed algorithm, `paper()`",
    }.get(row, row)


def ablation_tables(results: dict[str, Any]) -> list[str]:
    """Changes to the printed algorithm, the steps from it to the default, and other slopes.

    Parameters
    ----------
    results : dict
        What `ablation.json` holds.
    """
    scores = Scores(ungrouped(results["results"]))
    sizes = {design: SIZES[design] for design in ablation.DESIGNS}
    slopes = {design: SIZES[design] for design in OTHER_SLOPES}
    return [
        ablation.table(scores, sizes, *ablation.PRINTED_TOLD),
        ablation.table(scores, sizes, *ablation.STEPS_TOLD),
        ablation.table(scores, slopes, *ablation.POWERS_TOLD),
    ]


def scaling_table(results: dict[str, Any]) -> str:
    """Errors of our forest at a few numbers of units, over units and doses and at the worst dose.

    Parameters
    ----------
    results : dict
        What `scaling.json` holds.
    """
    scores = Scores(ungrouped(results["results"]))
    lines = []
    for design in scaling.DESIGNS:
        by_size = [
            [scores.mean(design, n, OURS, number) for number in scaling.ERRORS] for n in FEW_SIZES
        ]
        slopes = [scaling.slopes(scores, design, OURS, number) for number in scaling.ERRORS]
        by_size.append([simulation_mean(list(own.values())) for own in slopes])
        lines.append([design, *(" / ".join(map(with_value, pair)) for pair in by_size)])
    return markdown_table(["rms / sup", *(f"n = {n:,}" for n in FEW_SIZES), "slope"], lines)


def with_value(mean: Estimate | None) -> str:
    """A mean without its error."""
    return MISSING if mean is None else digits(mean.value)


# By file of results and its tables: the pages that have them, in this order.
PAGES: dict[tuple[str, Callable[[dict[str, Any]], list[str]]], tuple[str, ...]] = {
    ("table1.json", lambda results: [readme_table(results)]): ("README.md", "docs/paper.md"),
    ("ablation.json", ablation_tables): ("docs/paper.md",),
    ("scaling.json", lambda results: [scaling_table(results)]): ("docs/paper.md",),
}


def with_tables(text: str, source: str, tables: Sequence[str]) -> str:
    r"""A page with the tables between its marks replaced.

    >>> start = START.format("a.json")
    >>> print(with_tables(f"before\n{start}old\n{END}\nafter", "a.json", ["new"]))
    before
    <!-- made by `make readme` from a.json -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end -->
    after
    """
    start = START.format(source)
    pattern = re.escape(start) + ".*?" + re.escape(END)
    n_places = len(re.findall(pattern, text, flags=re.S))
    if n_places != len(tables):
        raise ValueError(
            f"A page must have a place for each of the {len(tables)} tables from {source}. "
            f"Got {n_places} instead."
        )
    remaining = iter(tables)
    return re.sub(pattern, lambda _: f"{start}\n{next(remaining)}\n\n{END}", text, flags=re.S)


def updated(page: str, text: str) -> str:
    """A page with all of its tables as the results are."""
    for (source, tables_of), pages in PAGES.items():
        if page in pages:
            results = json.loads((results_folder() / source).read_text(encoding="utf-8"))
            text = with_tables(text, source, tables_of(results))
    return text


if __name__ == "__main__":
    for name in sorted({page for pages in PAGES.values() for page in pages}):
        path = CLONE / name
        write_text(path, updated(name, path.read_text(encoding="utf-8")))
