"""Databases of both kinds, and the service on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from postgres_server import PostgresServer, find_program
from service_world import World, make_world
from sqlalchemy import create_engine, text

from doseforest.pricing.service.api.app import create_app
from doseforest.pricing.service.storage.databases import parsed_url, sqlite_url

OTHERS_LEAVE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if find_program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Makes an empty database of a kind and says where it is."""

    def make(kind: str) -> str:
        if kind == "sqlite":
            return sqlite_url(tmp_path / "decisions.sqlite")
        server: PostgresServer = request.getfixturevalue("postgres")
        engine = create_engine(parsed_url(server.url()), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:  # faster than a new database
            connection.execute(text(OTHERS_LEAVE))
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        engine.dispose()
        return server.url()

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """A new and empty database of each kind."""
    return new_database(request.param)


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    own = make_world(tmp_path, database_url)
    yield own
    own.database.dispose()


@pytest.fixture
def started() -> Iterator[Callable[..., TestClient]]:
    """Starts the service of a world in this process."""
    with ExitStack() as running:

        def start(world: World, **options: Any) -> TestClient:
            app = create_app(world.settings)
            return running.enter_context(TestClient(app, **options))

        yield start


@pytest.fixture
def client(world: World, started: Callable[..., TestClient]) -> TestClient:
    """The service with the forest's policy active."""
    world.publish("forest")
    return started(world)
