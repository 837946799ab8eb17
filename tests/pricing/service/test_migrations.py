"""Tables are made and changed by migrations; on both kinds of database."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from service_world import World
from sqlalchemy import inspect, select, text
from stored_rows import decision_row

from doseforest.pricing.service.storage.databases import (
    open_database,
)
from doseforest.pricing.service.storage.schema import (
    SchemaError,
    check_schema,
    newest_revision,
    revision,
    upgrade,
)
from doseforest.pricing.service.storage.service_tables import (
    decisions,
    metadata,
    outcomes,
)


def test_migrations_make_the_tables_that_the_code_declares(database_url: str) -> None:
    database = open_database(database_url)
    upgrade(database)
    with database.writing.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, metadata) == []
    check_schema(database)
    database.dispose()


@pytest.mark.parametrize("earlier", ["0001", "0002"])
def test_rows_of_earlier_schemas_survive_the_upgrade(database_url: str, earlier: str) -> None:
    database = open_database(database_url)
    upgrade(database, earlier)
    row = decision_row("a", 5)
    outcome = {"decision_id": row["id"], "metric": "outcome", "value": 0.5, "at": 6}
    with database.writing.begin() as connection:
        first = {own["name"] for own in inspect(connection).get_columns("decisions")}
        assert "doses" not in first
        assert ("arm" in first) == (earlier > "0001")
        for table, own in (("decisions", row), ("outcomes", outcome)):
            places = ", ".join(f":{name}" for name in own)
            connection.execute(
                text(f"INSERT INTO {table} ({', '.join(own)}) VALUES ({places})"), own
            )
    with pytest.raises(SchemaError, match="doseforest db upgrade"):
        check_schema(database)
    upgrade(database)
    upgrade(database)  # once more does nothing
    assert revision(database) == newest_revision()
    joint = {"dose": None, "doses": '{"express": 0.1, "premium": 5.0}'}
    with database.writing.begin() as connection:
        connection.execute(decisions.insert(), [decision_row("b", 7) | joint])
    with database.reading.connect() as connection:
        kept, new = connection.execute(select(decisions).order_by(decisions.c.id)).mappings()
        assert connection.execute(select(outcomes)).mappings().all() == [outcome]
    assert {name: kept[name] for name in row} == row
    assert (kept["arm"], kept["experiment_id"], kept["doses"]) == (None, None, None)
    assert {name: new[name] for name in joint} == joint
    database.dispose()


def test_a_database_of_a_newer_release_is_refused(world: World) -> None:
    with world.database.writing.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaError, match="newer release"):
        check_schema(world.database)
