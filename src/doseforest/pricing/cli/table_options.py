"""What commands about tables share: options, columns by name, doses as texts, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from doseforest.base.dtypes import FloatArray
from doseforest.base.plain_json import json_text
from doseforest.pricing.pipeline.problems import nearest
from doseforest.pricing.pipeline.row_tables import read_table

Rows = Annotated[Path, typer.Argument(help="A table, Parquet or CSV by its ending.")]
Model = Annotated[Path, typer.Argument(help="A saved forest, from `doseforest fit`.")]
Outcome = Annotated[str, typer.Option("--outcome", "-y", help="Column of the outcome.")]
Treatment = Annotated[
    list[str], typer.Option("--treatment", "-t", help="Column of the dose; repeat it for several.")
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features", "-x", help="Columns, repeated or with commas; by default all without a role."
    ),
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Columns that are no features, repeated or with commas.")
]
Propensity = Annotated[
    str | None, typer.Option(help="Column with the chance of each row's own dose.")
]
Group = Annotated[str | None, typer.Option(help="Column of groups whose rows stay together.")]
Doses = Annotated[
    str | None,
    typer.Option(help="Doses with commas, components with a colon: 0,0.1,0.2 or 0:0,0.1:0.2."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]


def split(given: list[str] | None) -> list[str]:
    """Names of an option that is repeated or has commas.

    >>> split(["a, b", "c"])
    ['a', 'b', 'c']
    """
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]


def read_doses(text: str | None) -> FloatArray | None:
    """Doses of an option, (n_doses,) or (n_doses, n_components).

    >>> read_doses("0, 0.5").tolist(), read_doses("0:1").tolist()
    ([0.0, 0.5], [[0.0, 1.0]])
    """
    if text is None:
        return None
    try:
        result = [[float(each) for each in dose.split(":")] for dose in text.split(",")]
        doses = np.array(result)
    except ValueError as error:
        raise ValueError(
            f"The --doses must be numbers with commas, components with a colon. Got {text!r}."
        ) from error
    return doses[:, 0] if doses.shape[1] == 1 else doses


def one_dose(text: str | None) -> Any:
    """A single dose of an option: a number, or a tuple of components."""
    doses = read_doses(text)
    if doses is None:
        return None
    if len(doses) != 1:
        raise ValueError(f"One dose must be given here. Got {text!r}.")
    return float(doses[0]) if doses.ndim == 1 else tuple(doses[0].tolist())


def column(frame: Any, name: str, option: str) -> Any:
    """A column of a table, or an error with the nearest name."""
    known = [str(column) for column in frame.columns]
    if name not in known:
        raise ValueError(
            f"{option} must be a column of the table. Got {name!r}.{nearest(name, known)}"
        )
    return frame[name].to_numpy()


class RoleTable:
    """Columns of a table by their roles."""

    def __init__(
        self,
        path: Path,
        *,
        outcome: str | None = None,
        treatment: list[str] | None = None,
        features: list[str] | None = None,
        exclude: list[str] | None = None,
        propensity: str | None = None,
        group: str | None = None,
    ) -> None:
        self.frame = read_table(path)
        self.treatment_names = split(treatment)
        roles = [outcome, *self.treatment_names, propensity, group, *split(exclude)]
        named = split(features)
        for name in named:
            column(self.frame, name, "--features")
        self.names = named or [str(column) for column in self.frame.columns if column not in roles]
        self._outcome, self._propensity, self._group = outcome, propensity, group

    @property
    def features(self) -> Any:
        """The features, a frame."""
        return self.frame[self.names]

    @property
    def y(self) -> Any:
        """Outcomes."""
        return column(self.frame, str(self._outcome), "--outcome")

    @property
    def treatment(self) -> Any:
        """Doses, (n_rows,) or (n_rows, n_components)."""
        columns = [column(self.frame, name, "--treatment") for name in self.treatment_names]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)

    @property
    def propensity(self) -> Any:
        """Chances of the rows' own doses, or None."""
        own = self._propensity
        return None if own is None else column(self.frame, own, "--propensity")

    @property
    def groups(self) -> Any:
        """Groups of the rows, or None."""
        return None if self._group is None else column(self.frame, self._group, "--group")


def answer(found: dict[str, Any], json: bool, text: str) -> None:
    """Print what a command found, for scripts or for people."""
    typer.echo(json_text(found) if json else text)


def show(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table for people."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
