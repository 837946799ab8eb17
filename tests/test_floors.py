"""The plan of the house: what import-linter cannot see of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from doseforest.base.late import late

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("src", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts
]
PLACES = sorted(
    {
        place
        for path in SOURCES
        for place in re.findall(r'late\("(doseforest[\w.]*:\w+)"\)', path.read_text("utf-8"))
    }
)


def test_places_that_are_named_are_many():
    assert len(PLACES) > 10  # or the next test looks at nothing


@pytest.mark.parametrize("place", PLACES)
def test_what_a_lower_floor_asks_for_by_name_is_there(place):
    assert callable(late(place))


def test_no_file_has_the_name_of_another():
    names = Counter(path.name for path in SOURCES if not path.name.startswith("__"))
    assert not [name for name, times in names.items() if times > 1]


def test_no_class_has_the_name_of_another():
    names = Counter(
        name
        for path in SOURCES
        for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), flags=re.MULTILINE)
    )
    assert not [name for name, times in names.items() if times > 1]


def test_no_name_of_a_package_is_hidden_by_a_module_of_it():
    hidden = []
    for path in SOURCES:
        if path.name == "__init__.py":
            modules = {own.stem for own in path.parent.iterdir() if own.name != path.name}
            homes = re.findall(
                r'^    "(\w+)": (?:"[\w.]+"|_\w+ \+ "\w+"),$', path.read_text("utf-8"), re.MULTILINE
            )
            hidden += [(path, name) for name in homes if name in modules]
    assert not hidden
