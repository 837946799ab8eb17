"""`doseforest bench`: the studies of a clone, which are not part of the wheel."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from doseforest.base.versions import CLONE


def refuse() -> NoReturn:
    """Say where studies are to be had, and end."""
    typer.echo(
        "Error: studies are part of the repository, not of the installed package. Clone "
        f"doseforest and run this command in the clone. Got {Path.cwd()} instead.",
        err=True,
    )
    raise typer.Exit(1)


class AbsentStudies(TyperGroup):
    """Commands of no name, whatever their options: all of them are refused alike."""

    def resolve_command(self, ctx: Any, args: Any) -> NoReturn:
        """Refuse before the name is looked up."""
        refuse()


def studies_of(*folders: Path) -> typer.Typer:
    """The commands of the studies in a clone, or one that says where studies are to be had.

    Parameters
    ----------
    *folders : Path
        The ``bench`` of the first that is a clone of doseforest is imported.

    Examples
    --------
    >>> from typer.testing import CliRunner
    >>> result = CliRunner().invoke(studies_of(Path("/")), ["table1", "--simulations", "2"])
    >>> result.exit_code, "Clone doseforest" in result.output
    (1, True)
    """
    for folder in folders:
        if (folder / "bench/command.py").is_file() and (folder / "cpp/engine.hpp").is_file():
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            studies: typer.Typer = import_module("bench.command").app
            return studies
    absent = typer.Typer(cls=AbsentStudies, invoke_without_command=True)
    absent.callback()(refuse)
    return absent


# Of the clone that the package runs from, wherever the command is run; else of where it is run.
app = studies_of(CLONE, Path.cwd())
