"""The public names and the service's OpenAPI document are those that are stored."""

from __future__ import annotations

import difflib

from bench.golden.openapi import DOCUMENT, document
from bench.golden.public_names import NAMES, public_names


def changes(stored: str, found: str) -> str:
    lines = difflib.unified_diff(stored.splitlines(), found.splitlines(), "stored", "now", n=1)
    return "\n".join(lines)


def test_public_names_change_on_purpose_only() -> None:
    """After a change that is meant: python -m bench.golden write-names."""
    assert not changes(NAMES.read_text(), public_names())


def test_the_openapi_document_changes_on_purpose_only() -> None:
    """After a change that is meant: python -m bench.golden write-openapi."""
    assert not changes(DOCUMENT.read_text(), document())
