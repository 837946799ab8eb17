"""Errors never quote what was sent, names included."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from service_world import World, unit


@pytest.mark.parametrize(
    "sent",
    [
        {"unit": "bob", "features": {"ann@home": ["no", "number"]}},
        {**unit("bob"), "ann@home": 1},
    ],
)
def test_names_that_a_client_made_up_are_not_repeated(
    client: TestClient, world: World, sent: dict[str, Any]
) -> None:
    answer = client.post("/v1/decision", json=sent, headers=world.headers())
    assert answer.status_code == 422
    assert "ann@home" not in answer.text
    assert "*" in answer.json()["error"]["message"]
