"""The training table over HTTP: whoever reads it slowly is in nobody's way."""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from service_world import World, make_world, unit

from doseforest.pricing.service.api import export_endpoints

URL = "/v1/training-table"


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    own = make_world(tmp_path, database_url, refresh=3600)  # nobody else reads meanwhile
    yield own
    own.database.dispose()


@pytest.fixture
def decided(client: TestClient, world: World) -> TestClient:
    sent = {"units": [unit(f"u{place}") for place in range(300)]}
    client.post("/v1/decisions", json=sent, headers=world.headers()).raise_for_status()
    return client


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_export_keeps_no_connection_while_it_is_sent(
    decided: TestClient, world: World, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool: Any = decided.app.state.service.database.reading.pool
    blocks, kept = export_endpoints._blocks, []

    def watched(table: IO[bytes]) -> Iterator[bytes]:
        for block in blocks(table):
            kept.append(pool.checkedout())
            yield block

    monkeypatch.setattr(export_endpoints, "BYTES_AT_A_TIME", 1000)
    monkeypatch.setattr(export_endpoints, "_blocks", watched)
    asked = {"format": format, "fallbacks": True}
    answer = decided.get(URL, params=asked, headers=world.headers("report"))
    assert len(kept) > 1
    assert set(kept) == {0}
    assert int(answer.headers["content-length"]) == len(answer.content)
    if format == "csv":
        assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 300
    else:
        assert pq.read_table(io.BytesIO(answer.content)).num_rows == 300


def test_more_exports_than_can_be_written_at_a_time_are_refused(
    decided: TestClient, world: World
) -> None:
    service = decided.app.state.service
    for _ in range(2):
        decided.portal.call(service.exporting.acquire)
    refused = decided.get(URL, headers=world.headers("report"))
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    decided.portal.call(_release, service.exporting)
    assert decided.get(URL, headers=world.headers("report")).status_code == 200


async def _release(semaphore: Any) -> None:
    semaphore.release()


def test_an_export_without_room_is_refused(
    decided: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(Path("/dev/full").open, "wb"))
    refused = decided.get(URL, params={"fallbacks": True}, headers=world.headers("report"))
    assert refused.status_code == 503
    assert refused.json()["error"]["message"] == "There is no room for the export."
