"""The table of errors in the README and docs/paper.md, made from the results of Table 1."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from doseforest.evaluation import simulation_mean
from doseforest.studies.markdown import markdown_table
from doseforest.studies.methods import ALGORITHM, CONSTANT, EXACT_AVERAGE, OURS, OUTCOME
from doseforest.studies.provenance import CLONE, results_folder
from doseforest.studies.scores import MISSING, digits, range_text
from doseforest.studies.settings import PRINTED, PUBLISHED, SPARSE
from doseforest.whole_files import write_text

START, END = "<!-- made by `make readme` from table1.json -->\n", "<!-- end -->"
PAGES = ("README.md", "docs/paper.md")
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
        means.setdefault(row, {})[group["design"]] = digits(simulation_mean(group["rms"]).mean)
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


def with_table(text: str, table: str) -> str:
    r"""The README with the table between its marks replaced.

    >>> print(with_table(f"before\n{START}old\n{END}\nafter", "new"))
    before
    <!-- made by `make readme` from table1.json -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end -->
    after
    """
    pattern = re.escape(START) + ".*?" + re.escape(END)
    found, n_tables = re.subn(pattern, lambda _: f"{START}\n{table}\n\n{END}", text, flags=re.S)
    if n_tables != 1:
        raise ValueError(f"The README must have the marks of the table once. Got {n_tables} times.")
    return found


def update_readme(readme: Path, results: Path) -> None:
    """Write the table of a file of results into the README."""
    table = readme_table(json.loads(results.read_text(encoding="utf-8")))
    write_text(readme, with_table(readme.read_text(encoding="utf-8"), table))


if __name__ == "__main__":
    for page in PAGES:
        update_readme(CLONE / page, results_folder() / "table1.json")
