"""Commands that are imported when they are asked for, so that help and quick ones do not wait."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class LateCommand(TyperCommand):
    """A command, or group of commands, of which only its name and a line of help are known yet.

    Parameters
    ----------
    name, help : str
    place : str
        Module and attribute, such as ``doseforest.pricing.cli.key_commands:app``: a function or a
        `Typer`.
    """

    def __init__(self, name: str, help: str, place: str) -> None:
        super().__init__(name, help=help)
        self._place = place

    def load(self) -> Any:
        """The command itself."""
        module, _, attribute = self._place.partition(":")
        result = getattr(importlib.import_module(module), attribute)
        if isinstance(result, typer.Typer):
            return typer.main.get_group(result)
        alone = typer.Typer(add_completion=False)
        alone.command(self.name)(result)
        return typer.main.get_command(alone)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Begin to run: from here on it is the command itself."""
        return self.load().make_context(*arguments, **options)


def late_group(commands: list[LateCommand]) -> type[TyperGroup]:
    """A kind of group that has these commands.

    Examples
    --------
    >>> from typer.testing import CliRunner
    >>> place = "doseforest.pricing.cli.key_commands:app"
    >>> keys = LateCommand("keys", "Keys of the service.", place)
    >>> app = typer.Typer(cls=late_group([keys]))
    >>> app.callback()(lambda: None) and None
    >>> "create" in CliRunner().invoke(app, ["keys", "--help"]).output
    True
    """
    known = {str(command.name): command for command in commands}

    class LateGroup(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(known)

        def get_command(self, ctx: Any, cmd_name: str) -> LateCommand | None:
            return known.get(cmd_name)

    return LateGroup
