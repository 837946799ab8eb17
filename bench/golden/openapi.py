"""The decision service's OpenAPI document as text."""

from __future__ import annotations

import json
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "tests" / "golden" / "openapi.json"


def document() -> str:
    """The document with sorted keys, so that a diff shows what has changed."""
    from doseforest.pricing.service.api.app import create_app
    from doseforest.pricing.service.service_settings import Settings

    app = create_app(Settings(database="sqlite:///unused.sqlite", policies="unused"))
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
