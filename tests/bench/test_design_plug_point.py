"""A design is one object: a single file of a user's, and a study runs with it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bench.designs import DESIGNS, find_design
from bench.studies.study_registry import STUDIES
from doseforest.pricing.cli.main import app

TOY = '''
from dataclasses import dataclass

import numpy as np

from doseforest.datasets import OVERLAP_DESIGNS


@dataclass(frozen=True)
class Doubled:
    """A design of the library with outcomes twice as large."""

    name: str = "doubled"
    description: str = "Effects that are twice as large."

    def draw(self, n=100, seed=0):
        from dataclasses import replace

        data = OVERLAP_DESIGNS["steps"].draw(n=n, seed=seed)
        return replace(data, name=self.name, y=2 * data.y)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my_designs.py").write_text(TOY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_runs_with_a_design_of_one_file(folder):
    options = ["--designs", "my_designs:Doubled,steps", "--methods", "zero,adrf"]
    ran = CliRunner().invoke(
        app, ["bench", "accuracy", *options, "--simulations", "2", "--processes", "1"]
    )
    assert ran.exit_code == 0, ran.output
    found = json.loads((folder / "out" / "bench" / "accuracy.json").read_text())["results"]
    designs = {own["design"]: own for own in found if own["row"] == "zero"}
    assert set(designs) == {"my_designs:Doubled", "steps"}
    assert np.isfinite(designs["my_designs:Doubled"]["rms"]).all()
    assert designs["my_designs:Doubled"]["n"] == 1000
    before = (folder / "out" / "bench" / "zero.jsonl").read_bytes()
    again = CliRunner().invoke(
        app, ["bench", "accuracy", *options, "--simulations", "2", "--processes", "1"]
    )
    assert again.exit_code == 0
    assert (folder / "out" / "bench" / "zero.jsonl").read_bytes() == before  # nothing was fitted


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_such_design", "is not one of"),
        ("no_such_module:Design", "No module named 'no_such_module'"),
        ("bench.designs:DESIGNS", "must be the place of a design"),
    ],
)
def test_what_is_no_design_is_refused_before_any_fit(folder, name, told):
    ran = CliRunner().invoke(app, ["bench", "accuracy", "--designs", name])
    assert ran.exit_code in (1, 2)
    assert told in " ".join(ran.output.replace("│", " ").split())
    assert not (folder / "out").exists()


def test_every_registered_design_can_be_asked_for_where_studies_take_any():
    assert {name for name, own in STUDIES.items() if getattr(own, "other_designs", False)} == {
        *("accuracy", "ablation", "scaling", "worlds")
    }
    assert all(find_design(name) is own for name, own in DESIGNS.items())
    assert all(own.name == name for name, own in DESIGNS.items())
