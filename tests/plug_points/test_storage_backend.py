"""Plug point: a storage backend of the decision service, in this file and one line of the table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.pool import StaticPool

from doseforest.pricing.service.backup import back_up, restore
from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.storage.databases import BACKENDS, Database, open_database
from doseforest.pricing.service.storage.schema import check_schema, upgrade
from doseforest.pricing.service.storage.service_tables import secrets
from doseforest.pricing.service.storage.sqlite import BACKEND as SQLITE
from doseforest.pricing.service.storage.writer import Writer


def open_fleeting(url, patience):
    """A database in the memory of this process."""
    options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
    engine = create_engine("sqlite+pysqlite://", **options)
    return Database(url, FLEETING, engine, engine, None, [])


FLEETING = replace(SQLITE, open=open_fleeting, check=lambda url: None)


@pytest.fixture(name="line")
def _line(monkeypatch):
    monkeypatch.setitem(BACKENDS, "fleeting", FLEETING)


def test_a_scheme_without_a_line_is_refused_with_those_that_have_one():
    with pytest.raises(ValueError, match=r"sqlite: or postgresql:\. Got .* fleeting: instead"):
        open_database("fleeting://here")


@pytest.mark.usefixtures("line")
def test_what_is_written_is_read_again_and_backups_go_both_ways(tmp_path):
    database, files = open_database("fleeting://here"), PolicyFiles(tmp_path / "policies")
    upgrade(database)
    check_schema(database)
    writer = Writer(database)
    writer.insert([(secrets.insert(), [{"name": "salt", "value": "pepper"}])]).result()
    writer.close()
    back_up(database, files, tmp_path / "backup.zip")
    other = open_database(f"sqlite:///{tmp_path / 'other.sqlite'}")
    restore(other, files, tmp_path / "backup.zip")
    for own in (database, other):
        with own.reading.connect() as connection:
            assert ("salt", "pepper") in [tuple(row) for row in connection.execute(select(secrets))]
        own.dispose()


@pytest.mark.usefixtures("line")
def test_an_insert_takes_the_place_of_what_is_there():
    database = open_database("fleeting://here")
    upgrade(database)
    insert = database.backend.insert(secrets)
    upsert = insert.on_conflict_do_update(
        index_elements=["name"], set_={"value": insert.excluded.value}
    )
    with database.writing.begin() as connection:
        for value in ("pepper", "thyme"):
            connection.execute(upsert, [{"name": "herb", "value": value}])
        found = connection.execute(select(secrets.c.value).where(secrets.c.name == "herb"))
        assert found.scalars().all() == ["thyme"]
    database.dispose()
