"""What published results are kept under: they outlive moves of files, not changes of answers."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bench.designs import CATEGORY_COLUMNS, WORLDS
from bench.golden import ChangedAnswersError, check_before_use, part_keys, require_stored_answers
from bench.golden.answers import FILE
from bench.studies import result_keys, study_methods
from bench.studies.measures import MEASURES, digest_of_measure
from bench.studies.provenance import results_folder
from bench.studies.report import ungrouped
from bench.studies.result_keys import answers_of, digest_of_code, digest_of_draw, result_key
from bench.studies.study_methods import METHODS, state
from bench.studies.study_registry import STUDIES
from doseforest.base.versions import PACKAGE
from doseforest.pricing.cli.main import app

ALL = {name: own for name, own in METHODS.items() if not own.missing}
SMALL = "reference curves"  # the golden fit that takes the least time


def states() -> dict[str, str]:
    state.cache_clear()
    return {name: state(name, "new_units") for name in ALL}


@pytest.fixture(name="keys")
def _keys(tmp_path, monkeypatch):
    """Keys of all methods once a stored golden answer has another last digit."""

    def after(fit: str) -> dict[str, str]:
        stored = json.loads(FILE.read_text())
        rows = next(iter(stored[fit].values()))["rows"]
        rows[0] = f"{rows[0]} 0x1.8p+0"
        path = tmp_path / "answers.json"
        path.write_text(json.dumps(stored))
        monkeypatch.setattr(result_keys, "stored_keys", lambda: part_keys(path))
        return states()

    yield after
    state.cache_clear()


@pytest.mark.parametrize(
    ("fit", "parts"),
    [
        ("engine, bootstrap", {"engine"}),
        ("all defaults", {"defaults"}),
        ("Kennedy as coded", {"kennedy"}),
        ("kernel", {"engine", "outcome", "density", "kernel", "averages"}),
        ("policy", {"engine", "outcome", "density", "orthogonal", "policy"}),
    ],
)
def test_a_changed_answer_changes_the_keys_of_those_methods_that_use_it(keys, fit, parts):
    before, after = states(), keys(fit)
    users = {name for name, own in ALL.items() if parts.intersection(own.uses)}
    assert {name for name in ALL if after[name] != before[name]} == users
    assert users < set(ALL) if users else parts.isdisjoint(answers_of([]))


def test_a_source_file_that_is_touched_or_moved_keeps_the_keys(monkeypatch):
    before = states()
    os.utime(PACKAGE / "estimator" / "effect_forest.py")
    for name, own in ALL.items():
        assert not [
            file
            for file in own.files
            if not file.startswith("bench/") and "xgboost" not in file and "econml" not in file
        ], f"{name} of ours must rest on golden answers, not on files"
    assert states() == before


def test_what_a_file_does_is_not_where_it_lies_what_it_imports_or_how_it_is_explained(tmp_path):
    here, there, other = (tmp_path / name for name in ("here.py", "there.py", "other.py"))
    here.write_text(
        '"""One."""\nfrom a import b\n\n\ndef f(x):\n    """Two."""\n    return b(x)  # why\n'
    )
    there.write_text(
        '"""Another."""\nfrom c.d import b\nimport e\n\n\ndef f(x):\n    return b(x)\n'
    )
    other.write_text("def f(x):\n    return b(x) + 1\n")
    assert digest_of_code([here]) == digest_of_code([there]) != digest_of_code([other])


def test_a_part_without_golden_answers_is_refused():
    with pytest.raises(ValueError, match=r"must name parts of the algorithm.*Got \['gears'\]"):
        result_key(["gears"])


def test_every_study_and_method_names_parts_that_have_golden_answers():
    for own in (*METHODS.values(), *STUDIES.values()):
        answers_of(getattr(own, "uses", ()))
    assert all(own.uses or own.files for own in METHODS.values())


def test_a_column_that_becomes_one_of_categories_changes_the_data(monkeypatch):
    before = {name: digest_of_draw(WORLDS[name]) for name in ("shops", "rhythms")}
    monkeypatch.setitem(CATEGORY_COLUMNS, "shops", (0, 3))
    assert digest_of_draw(WORLDS["shops"]) != before["shops"]
    assert digest_of_draw(WORLDS["rhythms"]) == before["rhythms"]


def test_a_default_that_is_not_the_golden_one_is_a_setting():
    ours = METHODS["doseforest"]
    assert study_methods.settings_of(ours) == {}
    changed = replace(ours, make=lambda data, seed: ours.make(data, seed).set_params(n_trees=9))
    assert study_methods.settings_of(changed) == {"n_trees": "9"}
    assert set(study_methods.settings_of(METHODS["paper"])) == {"doses", "baseline"}


def test_measures_have_keys_of_their_own_that_stay(monkeypatch):
    found = {name: digest_of_measure(name) for name in MEASURES}
    assert len(set(found.values())) == len(MEASURES)
    digest_of_measure.cache_clear()
    monkeypatch.setitem(MEASURES, "effects", lambda model, data, seed: {"rms": 0.0})
    assert digest_of_measure("effects") != found["effects"]
    assert digest_of_measure("new_units") == found["new_units"]
    digest_of_measure.cache_clear()


@pytest.mark.parametrize(
    ("file", "methods"),
    [
        ("table1.json", set()),  # none since seeds are hashes: to be run again
        ("scaling.json", set()),
    ],
)
def test_published_fits_of_ours_still_hold(file, methods):
    """A name that changes must not cost them; if answers changed on purpose, take them out above.

    They are to be run again, then: `make bench-table1`, or `doseforest bench NAME --publish`.
    """
    published = json.loads((results_folder() / file).read_text(encoding="utf-8"))["results"]
    held = {
        own["method"]
        for own in ungrouped(published)
        if own["method"] in ALL and own.get("state") == state(own["method"], own["measure"])
    }
    assert held == methods


# Answers are those of the code


@pytest.fixture(name="golden_fits")
def _golden_fits(monkeypatch):
    """Names of the fits that are run; the part "reference" has one."""
    ran = []

    def run(name):
        ran.append(name)
        return fits_run(name)

    fits_run = check_before_use.run
    monkeypatch.setattr(check_before_use, "run", run)
    return ran


def test_golden_fits_are_run_once_for_each_version_of_the_code(golden_fits, tmp_path, monkeypatch):
    for _ in range(2):
        require_stored_answers(["reference"], tmp_path)
        assert golden_fits == [SMALL]
    monkeypatch.setattr(check_before_use, "code_stamp", lambda: "another version")
    require_stored_answers(["reference"], tmp_path)
    assert golden_fits == [SMALL, SMALL]
    require_stored_answers([], tmp_path)
    assert len(golden_fits) == 2


def test_a_study_of_code_with_other_answers_stops_and_says_what_to_do(
    golden_fits, tmp_path, monkeypatch
):
    stored = json.loads(FILE.read_text())
    stored[SMALL]["average"]["rows"][0] = "0x1.8p+0 0x1.8p+0 0x1.8p+0 0x1.8p+0"
    monkeypatch.setattr(check_before_use, "read_answers", lambda: stored)
    options = ["--methods", "zero", "--simulations", "2", "--out", str(tmp_path)]
    for times in (1, 2):  # what failed is not taken for passed
        result = CliRunner().invoke(app, ["bench", "accuracy", *options])
        assert result.exit_code == 1
        assert len(golden_fits) == times
        assert f"python -m bench.golden write '{SMALL}'" in result.output
        assert not list(tmp_path.glob("*.jsonl"))
    with pytest.raises(ChangedAnswersError, match="golden answers, under which results are kept"):
        require_stored_answers(["reference"], tmp_path)
