"""Errors without tracebacks: a message on standard error and an exit code."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from doseforest.pricing.pipeline.problems import ConfigError

FAILED, MISUSED = 1, 2  # exit codes: it could not be done, and it was asked wrongly


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command tell its errors in a line; others than the user's are left to be seen."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except ConfigError as error:
            _end(error, MISUSED)
        except (ValueError, TypeError, OSError, ImportError) as error:
            _end(error, FAILED)

    return run


def _end(error: BaseException, code: int) -> None:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        text = f"{where}{error.strerror}"
    typer.echo(f"Error: {text}", err=True)
    raise typer.Exit(code) from error
