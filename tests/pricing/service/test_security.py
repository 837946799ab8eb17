"""Keys, roles, limits, headers, logs: what is refused, and that refusals tell nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from running_server import wait_until
from service_world import World, make_world, unit

from doseforest.pricing.service.logs import JsonLines, logger
from doseforest.pricing.service.security.api_keys import list_keys, revoke_key
from doseforest.pricing.service.storage.databases import sqlite_url


@pytest.fixture
def world(tmp_path: Path) -> World:  # type: ignore[misc]
    """One database is enough: nothing here depends on its kind."""
    own = make_world(tmp_path, sqlite_url(tmp_path / "decisions.sqlite"))
    yield own
    own.database.dispose()


def test_every_wrong_key_gets_the_same_answer(client: TestClient, world: World) -> None:
    right = world.keys["decide"]
    key_id = right.split("_")[1]
    wrong = [
        None,
        "",
        "Bearer",
        f"Basic {right}",
        f"Bearer {right[:-1]}",
        f"Bearer {right}x",
        f"Bearer df_{key_id}_{'A' * 43}",
        f"Bearer df_00000000_{'A' * 43}",
        f"Bearer {right.replace('df_', 'xx_')}",
        "Bearer \x7f\xff",
    ]
    seen = set()
    for header in wrong:
        headers = {"X-Request-ID": "same"}
        if header is not None:
            headers["Authorization"] = header.encode("latin-1")  # type: ignore[assignment]
        for content in (b"{", b"x" * 5_000_000, json.dumps(unit()).encode()):  # none is read
            answer = client.post("/v1/decision", content=content, headers=headers)
            shown = {k: v for k, v in answer.headers.items() if k != "date"}
            seen.add((answer.status_code, answer.content, tuple(sorted(shown.items()))))
    assert len(seen) == 1
    assert seen.pop()[0] == 401


def test_roles_may_do_what_they_may(client: TestClient, world: World) -> None:
    asked = {
        "decide": ("POST", "/v1/decision", unit()),
        "report": ("GET", "/v1/policies", None),
        "admin": ("POST", "/v1/policies/1/activate", None),
    }
    for needed, (method, path, body) in asked.items():
        for role in ("decide", "report", "admin"):
            answer = client.request(method, path, json=body, headers=world.headers(role))
            assert answer.status_code == (200 if role in (needed, "admin") else 403), (role, path)


def test_a_revoked_key_stops_working_while_the_service_runs(
    client: TestClient, world: World
) -> None:
    headers = world.headers()
    assert client.post("/v1/decision", json=unit(), headers=headers).status_code == 200
    with world.database.writing.begin() as connection:
        revoke_key(connection, world.keys["decide"].split("_")[1])
    wait_until(lambda: client.post("/v1/decision", json=unit(), headers=headers).status_code == 401)


def test_secrets_are_not_stored(world: World) -> None:
    with world.database.reading.connect() as connection:
        stored = list_keys(connection)
    for own in stored:
        secret = world.keys[own.role].split("_", 2)[2]
        assert len(secret) == 43  # 256 bits in base 64
        assert secret not in str(own)
    content = b"".join(own.read_bytes() for own in world.folder.glob("decisions.sqlite*"))
    assert all(key.encode() not in content for key in world.keys.values())


INVALID: list[Any] = [
    {},
    [],
    {"unit": "a"},
    {"unit": "", "features": {}},
    {"unit": "a\x00b", "features": {}},
    {"unit": "x" * 101, "features": {}},
    {"unit": 7, "features": {}},
    {"unit": "a", "features": {"x0": [1.0]}},
    {"unit": "a", "features": {"x0": "y" * 201}},
    {"unit": "a", "features": {"": 1.0}},
    {"unit": "a", "features": {f"f{k}": 1.0 for k in range(1001)}},
    {"unit": "a", "features": {}, "dose": 3.0},
    {"unit": "a", "features": {}, "cell": "\n"},
]


@pytest.mark.parametrize("sent", INVALID, ids=range(len(INVALID)))
def test_malformed_units_are_refused_without_quoting_them(
    client: TestClient, world: World, sent: Any
) -> None:
    answer = client.post("/v1/decision", json=sent, headers=world.headers())
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == "invalid_request"
    assert "yyyyyyyy" not in answer.text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"unit": "a", "features": {"x0": NaN}}',
        b'{"unit": "a", "features": {"x0": 1e999}}',
        b'{"unit": "a", "features": {"x0": 1' + b"0" * 400 + b"}}",
        b'{"unit": "\\ud800", "features": {}}',
        b'{"unit": "a", "features": {"\\udfff": 1}}',
    ],
)
def test_bodies_that_are_no_proper_json_are_refused(
    client: TestClient, world: World, content: bytes
) -> None:
    headers = {**world.headers(), "Content-Type": "application/json"}
    answer = client.post("/v1/decision", content=content, headers=headers)
    assert answer.status_code in (400, 422), answer.text
    assert set(answer.json()["error"]) == {"code", "message", "request_id"}


def test_too_much_is_refused(tmp_path: Path, started: Callable[..., TestClient]) -> None:
    world = make_world(
        tmp_path, sqlite_url(tmp_path / "d.sqlite"), max_units=3, max_body=2000, max_policy=1000
    )
    world.publish("control")
    client = started(world)
    headers = {**world.headers("admin"), "Content-Type": "application/json"}
    many = client.post("/v1/decisions", json={"units": [unit()] * 4}, headers=headers)
    assert (many.status_code, many.json()["error"]["code"]) == (413, "too_large")
    announced = client.post("/v1/decision", content=b"x" * 2001, headers=headers)
    assert announced.status_code == 413

    def chunks() -> Any:  # without saying how long it will be
        for _ in range(100):
            yield b" " * 1000

    assert client.post("/v1/decision", content=chunks(), headers=headers).status_code == 413
    assert client.post("/v1/policies", content=b"x" * 1001, headers=headers).status_code == 413
    world.database.dispose()


def test_a_key_that_asks_too_fast_is_told_when_to_ask_again(
    tmp_path: Path, started: Callable[..., TestClient]
) -> None:
    world = make_world(tmp_path, sqlite_url(tmp_path / "d.sqlite"), rate=0.01)
    world.publish("control")
    client = started(world)
    statuses = [client.post("/v1/decision", json=unit(), headers=world.headers()) for _ in range(2)]
    assert [own.status_code for own in statuses] == [200, 429]
    assert 1 <= int(statuses[1].headers["retry-after"]) <= 100
    other = client.post("/v1/decision", json=unit(), headers=world.headers("admin"))
    assert other.status_code == 200
    world.database.dispose()


@pytest.mark.parametrize("path", ["/healthz", "/v1/policies", "/dashboard", "/nowhere"])
def test_every_answer_has_safe_headers_and_an_id(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"X-Request-ID": "trace-7"})
    assert answer.headers["x-request-id"] == "trace-7"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    forged = client.get(path, headers={"X-Request-ID": 'a"b\t{}'})
    assert forged.headers["x-request-id"] != 'a"b\t{}'


@pytest.mark.parametrize("name", ["..%2f..%2fpyproject.toml", "%2e%2e", "app.js%00", "style.css/x"])
def test_no_path_leads_to_a_file(client: TestClient, name: str) -> None:
    assert client.get(f"/dashboard/{name}").status_code == 404


def test_logs_name_keys_and_routes_but_no_units(client: TestClient, world: World) -> None:
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Kept()
    handler.setFormatter(JsonLines())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        sent = {"unit": "ann.smith", "cell": "elm-street", "features": {"x0": 12.75, "x1": "rare"}}
        client.post("/v1/decision", json=sent, headers=world.headers())
        client.post("/v1/decision?who=ann.smith", json={"unit": "ann.smith"})
        client.get("/ann.smith")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    found = [json.loads(line) for line in lines]
    requests = [line for line in found if line["event"] == "request"]
    assert [line["status"] for line in requests] == [200, 401, 404]
    assert requests[0]["route"] == "/v1/decision"
    assert requests[0]["key"] == world.keys["decide"].split("_")[1]
    assert requests[0]["units"] == 1
    text = "".join(lines)
    assert all(word not in text for word in ("ann", "elm", "12.75", "rare"))
    assert all(key not in text for key in world.keys.values())


def test_metrics_need_a_key_unless_they_are_opened(client: TestClient, world: World) -> None:
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=world.headers("decide")).status_code == 403
    page = client.get("/metrics", headers=world.headers("report"))
    assert 'doseforest_requests_total{method="GET",route="/metrics",status="401"} 1.0' in page.text


def test_an_unexpected_error_tells_nothing_and_is_logged(
    client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("of ann.smith")

    lines: list[str] = []
    monkeypatch.setattr("doseforest.pricing.service.api.decision_endpoints.new_ids", broken)
    monkeypatch.setattr(logger, "handle", lambda record: lines.append(JsonLines().format(record)))
    answer = client.post("/v1/decision", json=unit(), headers=world.headers())
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]
    (logged,) = [json.loads(line) for line in lines if "unexpected" in line]
    assert (logged["error"], logged["where"].partition(":")[0]) == ("RuntimeError", "broken")
    assert "ann" not in answer.text + "".join(lines)
