"""Tables are made and changed by migrations; on both kinds of database."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from service_world import World
from sqlalchemy import inspect, select, text
from stored_rows import decision_row

from doseforest.service.storage.databases import (
    open_database,
)
from doseforest.service.storage.schema import (
    SchemaError,
    check_schema,
    newest_revision,
    revision,
    upgrade,
)
from doseforest.service.storage.tables import (
    decisions,
    metadata,
)


def test_migrations_make_the_tables_that_the_code_declares(database_url: str) -> None:
    database = open_database(database_url)
    upgrade(database)
    with database.writing.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    check_schema(database)
    database.dispose()


def test_rows_of_the_first_schema_survive_the_upgrade(database_url: str) -> None:
    database = open_database(database_url)
    upgrade(database, "0001")
    with database.writing.begin() as connection:
        first = inspect(connection).get_columns("decisions")
        assert "arm" not in {own["name"] for own in first}
        columns = [own["name"] for own in first]
        row = decision_row("a", 5)
        known = {name: row.get(name) for name in columns}
        places = ", ".join(f":{name}" for name in columns)
        connection.execute(
            text(f"INSERT INTO decisions ({', '.join(columns)}) VALUES ({places})"), known
        )
    with pytest.raises(SchemaError, match="doseforest db upgrade"):
        check_schema(database)
    upgrade(database)
    upgrade(database)  # once more does nothing
    assert revision(database) == newest_revision()
    with database.reading.connect() as connection:
        (kept,) = connection.execute(select(decisions)).mappings()
    assert {name: kept[name] for name in row} == row
    assert (kept["arm"], kept["experiment_id"]) == (None, None)
    database.dispose()


def test_a_database_of_a_newer_release_is_refused(world: World) -> None:
    with world.database.writing.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="newer release"):
        check_schema(world.database)
