"""What the commands of the service have in common: where its data is, and errors as sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from doseforest.pricing.service.registry.policy_files import PolicyFiles
    from doseforest.pricing.service.storage.databases import Database

DATABASE = "DOSEFOREST_DATABASE"

Data = Annotated[
    Path,
    typer.Option(
        "--data",
        envvar="DOSEFOREST_DATA_FOLDER",
        help="Folder of the embedded database and of the policies' files.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar=DATABASE,
        help="URL of another database: postgresql://user:password@host/name. Better given by the "
        "environment, where other users do not see it.",
    ),
]
DEFAULT_DATA = Path("doseforest-data")


def database_url(data: Path, url: str | None) -> str:
    """The URL that was given, or that of the embedded database."""
    if url is not None:
        return url
    from doseforest.pricing.service.storage.databases import sqlite_url

    return sqlite_url(data / "decisions.sqlite")


@contextlib.contextmanager
def said_plainly() -> Iterator[None]:
    """Errors that a user can do something about: a sentence and exit code 1, no traceback."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "doseforest":
            raise
        extra = "postgres" if missing == "psycopg" else "service"
        _fail(f"This needs {missing}. Install it with: pip install 'doseforest[{extra}]'", error)
    except (ValueError, OSError) as error:
        _fail(str(error), error)
    except Exception as error:
        if type(error).__module__.startswith(("doseforest.pricing.service", "sqlalchemy.exc")):
            _fail(_sentence(error), error)
        raise


def _sentence(error: Exception) -> str:
    if type(error).__module__.startswith("sqlalchemy.exc"):
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return f"The database does not do what it should: {reason}"
    return str(error)


def _fail(text: str, error: Exception) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(1) from error


@contextlib.contextmanager
def opened(data: Path, url: str | None, *, check: bool = True) -> Iterator[Database]:
    """The database, with the tables of this release."""
    with said_plainly():
        from doseforest.pricing.service.storage.databases import open_database
        from doseforest.pricing.service.storage.schema import check_schema, upgrade

        database = open_database(database_url(data, url))
        try:
            if check:
                if database.file is not None and not database.file.exists():
                    upgrade(database)  # the embedded database makes itself
                check_schema(database)
            yield database
        finally:
            database.dispose()


def policy_files(data: Path) -> PolicyFiles:
    """The folder of policies."""
    from doseforest.pricing.service.registry.policy_files import PolicyFiles

    return PolicyFiles(data / "policies")
