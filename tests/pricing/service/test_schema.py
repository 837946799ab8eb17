"""The OpenAPI page is true: generated requests find no server error and no undeclared answer."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from service_world import make_world
from starlette.testclient import TestClient

from doseforest.pricing.service.api.app import create_app

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


def test_generated_requests_find_no_server_error(database_url: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, database_url, fallback_dose=0.0)
    world.publish("forest")
    for other in ("random", "joint"):
        world.publish(other, active=False)
    app = create_app(world.settings)
    headers = world.headers("admin")
    asked = []
    with TestClient(app):
        page = schemathesis.openapi.from_asgi("/openapi.json", app)
        for found in page.get_all_operations():
            operation = found.ok()

            @hypothesis.given(case=operation.as_strategy())
            @hypothesis.settings(
                max_examples=12,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            def ask(case: schemathesis.Case) -> None:
                response = case.call(headers=headers)
                case.validate_response(response, checks=CHECKS)

            ask()
            asked.append(operation.label)
    assert {"POST /v1/decision", "POST /v1/outcomes", "GET /metrics"} <= set(asked)
    assert len(asked) >= 18
    world.database.dispose()
