"""The study of Qini scores, on little data: parts, tables, verdicts, the command line."""

from __future__ import annotations

import json

import matplotlib as mpl
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from typer.testing import CliRunner

from bench.studies.qini import qini_study, qini_tables
from bench.studies.qini.qini_models import TABLE_2, QiniEffort
from bench.studies.qini.qini_study import QiniStudy
from bench.studies.qini.qini_trials import TRIALS, training_marks
from bench.studies.request import Request
from bench.studies.study_workers import Clock
from doseforest.pricing.cli.main import app
from made_up_tables import write_tables

pytest.importorskip("xgboost")
mpl.use("Agg")

EFFORT = QiniEffort(
    n_train=300,
    n_test=4000,
    n_trees=16,
    n_cf_trees=10,
    outcome_model=HistGradientBoostingRegressor(max_iter=10),
    blocks=(1000,),
    n_jobs=1,
)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("qini")
    (folder / "data").mkdir()
    write_tables(folder / "data")
    return folder


@pytest.fixture(autouse=True)
def _apart(folder, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(folder / "data"))
    monkeypatch.chdir(folder)  # where studies keep what they measure


def measured(*designs, effort=EFFORT):
    return QiniStudy("test", ("engine",), effort).run(
        Request(designs=designs, processes=1), Clock()
    )


def test_a_regime_has_scores_differences_ranks_and_agreement(tmp_path):
    report, complete = measured("threshold")
    assert complete
    kinds = [record["measure"] for record in report.records]
    assert kinds.count("score") == 5 * 5  # models, discounts
    assert kinds.count("difference") == 4 * 6  # others than ours; discounts and their mean
    assert kinds.count("ranking") == 5
    assert [own["n"] for own in report.records if own["measure"] == "agreement"] == [1000, 4000]
    scores = [own for own in report.records if own["measure"] == "score"]
    ranking = {own["row"]: own for own in report.records if own["measure"] == "ranking"}
    for model in TABLE_2:
        own = [score["value"] for score in scores if score["row"] == model]
        assert ranking[model]["mean"] == pytest.approx(sum(own) / 5)
    text = report.write("qini", [tmp_path], 1.0)
    assert "d5 (25 %)" in text
    assert "GCF less CF" in text
    assert (tmp_path / "qini.png").exists()
    assert json.loads((tmp_path / "qini.json").read_text())["verdicts"]


def test_a_part_that_is_measured_is_not_measured_again(monkeypatch):
    measured("threshold")
    monkeypatch.setattr(qini_study.qini_experiment, "measure", None)  # a call would fail
    again, complete = measured("threshold")
    assert complete
    assert len(again.records) == 25 + 24 + 5 + 2


def test_trials_are_judged_on_rows_of_other_groups():
    report, complete = measured("mailings", "match-ratios")
    assert complete
    assert {own["design"] for own in report.records} == {"mailings", "match-ratios"}
    text = "\n".join(report.parts)
    assert "### Gerber, Green and Larimer 2008" in text
    assert "Nobody beats random order." in text or "Beyond chance" in text
    rows = TRIALS["mailings"].read()
    fits = training_marks(rows, EFFORT)
    assert set(rows.groups[fits]).isdisjoint(rows.groups[~fits])
    about = next(own for own in report.records if own["design"] == "mailings")
    assert (about["n"], about["n_train"]) == ((~fits).sum(), fits.sum())


def test_absent_data_are_told_and_left_out(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    report, complete = measured("loans")
    assert not complete
    assert report.records == []
    assert "This part is left out" in capsys.readouterr().err


def test_verdicts_say_what_holds_and_what_is_lost():
    def score(value, exact):
        return {"measure": "score", "row": "GCF", "value": value, "exact": exact} | {
            "standard_error": 0.001,
            "dose": 0.05,
        }

    def gap(model, value):
        own = {"measure": "difference", "row": model, "dose": "mean"}
        return own | {"value": value, "standard_error": 0.001}

    def rank(model, mean, value):
        return {"measure": "ranking", "row": model, "mean": mean, "policy_value": value}

    records = [
        *(score(0.01, 0.0105) for _ in range(9)),
        gap("XGBoost", 0.005),
        gap("CF", 0.001),
        rank("GCF", 2.0, 5.0),
        rank("CF", 1.0, 6.0),
    ]
    found = qini_tables.verdicts({"threshold": records})
    assert [own.holds for own in found] == [True, False, True, False]
    assert "GCF by score, CF by true value" in str(found[1])
    lost = qini_tables.verdicts({"threshold": [*records, *(score(0.01, 0.02) for _ in range(9))]})
    assert lost[0].holds is False
    assert qini_tables.verdicts({})[0].holds is None


def test_sentences_name_who_beats_random_order():
    def mean(model, value):
        own = {"measure": "score", "row": model, "dose": "mean"}
        return own | {"value": value, "standard_error": 1.0}

    assert (
        qini_tables.beyond_chance([mean("CF", 1.0), mean("GCF", 0.5)])
        == "Nobody beats random order."
    )
    found = qini_tables.beyond_chance([mean("CF", -3.0), mean("GCF", 3.0)])
    assert found == "Beyond chance: GCF. Worse than random order: CF."


def test_the_command_knows_its_parts():
    result = CliRunner().invoke(app, ["bench", "qini", "--designs", "polynomial"])
    assert result.exit_code == 2
    assert "is not one of near_linear" in " ".join(result.output.replace("│", " ").split())
    result = CliRunner().invoke(app, ["bench", "qini", "--simulations", "3"])
    assert result.exit_code == 2
