"""The schema of a database: which release wrote it, and how it gets to this one."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from doseforest.pricing.service.storage.databases import Database, create_file

MIGRATIONS = Path(__file__).parent / "migrations"


class SchemaError(Exception):
    """The tables are not those of this release."""


def newest_revision() -> str:
    """Revision of the tables of this release."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    return str(head)


def revision(database: Database) -> str | None:
    """Revision of a database, None where it has no tables of ours."""
    with database.writing.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(database: Database, target: str = "head") -> None:
    """Bring the tables to this release; what is stored stays."""
    create_file(database)
    config = _config()
    with database.writing.begin() as connection:
        config.attributes["connection"] = connection
        config.attributes["lock"] = database.backend.lock
        command.upgrade(config, target)


def check_schema(database: Database) -> None:
    """Refuse tables of another release, with the cure."""
    result, wanted = revision(database), newest_revision()
    if result != wanted:
        scripts = ScriptDirectory.from_config(_config()).walk_revisions()
        known = {script.revision for script in scripts}
        if result is not None and result not in known:
            raise SchemaError(
                f"The database has tables of a newer release (revision {result}). "
                "Install that release, or restore a backup."
            )
        raise SchemaError(
            f"The database has tables of revision {result or 'none'}, this release needs {wanted}. "
            "Run: doseforest db upgrade"
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config
