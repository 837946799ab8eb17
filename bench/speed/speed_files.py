"""Where measurements of speed are written: as studies are, to a folder and, if asked, the clone."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.studies.provenance import OUT, results_folder
from doseforest.base.atomic_files import write_text


def read_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """Options of a command with ``--out`` and ``--publish``; only whole runs are published."""
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the report ({OUT})")
    parser.add_argument(
        "--publish", action="store_true", help="put it among the reports of the clone, too"
    )
    given = parser.parse_args(arguments)
    changed = {name for name, value in vars(given).items() if value != parser.get_default(name)}
    if given.publish and (parts := sorted(changed - {"out", "publish"})):
        options = ", ".join("--" + name.replace("_", "-") for name in parts)
        parser.error(f"argument --publish: only whole runs are published: leave out {options}")
    return given


def write_files(given: argparse.Namespace, files: Mapping[str, str]) -> None:
    """Write texts by the names of their files to the folders that the options ask for."""
    for folder in (given.out, *([results_folder()] if given.publish else [])):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_text(folder / name, text)
