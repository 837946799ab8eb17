"""`doseforest bench worlds`: its rows, the ratio to the best of them, and how it goes on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from bench.designs import WORLDS, find_design
from bench.studies import world_errors
from bench.studies.category_codes import WithIndicators
from bench.studies.regression_peers import CategoryBoosting, ScaledProcess
from bench.studies.request import Request
from bench.studies.scores import Scores
from bench.studies.study_methods import METHODS, OURS, OUTCOME, settings_of
from bench.studies.study_registry import STUDIES
from bench.studies.world_errors import FAMILIAR, PEERS, ratio_of_means, ratio_to_best
from doseforest.baselines import random_forest
from doseforest.pricing.cli.main import app

CHEAP = ["--designs", "heavy_tails,shops", "--methods", "lightgbm,zero"]


def records(**errors):
    """Records of "purchases" by row: an error for each seed."""
    return [
        {"row": row, "design": "purchases", "n": 1000, "seed": seed, "rms": rms, "fit_seconds": 1.0}
        for row, values in errors.items()
        for seed, rms in enumerate(values)
    ]


def test_all_worlds_and_all_designs_of_the_accuracy_study_are_asked_for():
    tasks = world_errors.tasks(Request())
    assert {task.design for task in tasks} == {*WORLDS, *FAMILIAR}
    assert len(FAMILIAR) == 8
    assert {task.n for task in tasks} == {1000}
    assert len({task.seed for task in tasks}) == 10
    assert {task.method for task in tasks} <= {"doseforest", *PEERS}
    assert {task.n for task in world_errors.tasks(Request(n=200))} == {200}


def test_an_optional_peer_without_its_package_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr("bench.studies.study_methods.installed", lambda name: "not installed")
    assert "catboost" not in {task.method for task in world_errors.tasks(Request())}
    assert "catboost" in {
        task.method for task in world_errors.tasks(Request(methods=("catboost",)))
    }
    assert "not installed: CatBoost." in world_errors.report([], Request()).parts[0]


def test_a_ratio_of_means_has_the_error_of_the_delta_method():
    draw = np.random.default_rng(0)
    second = draw.uniform(1.0, 2.0, 50)
    first = 0.9 * second + draw.normal(0.0, 0.05, 50)
    ratio = ratio_of_means(first, second)
    picks = draw.integers(50, size=(4000, 50))
    again = first[picks].mean(axis=1) / second[picks].mean(axis=1)
    assert ratio.value == first.mean() / second.mean()
    # Of 4,000 bootstrap draws: a standard deviation is known within 1.1 %; the rest is that a
    # bootstrap divides by n.
    assert ratio.standard_error == pytest.approx(again.std(), rel=0.06)
    assert ratio.degrees == 49


def test_ours_is_compared_with_the_best_row_by_its_mean():
    scores = Scores(records(**{OURS: [1.0, 1.0], "one": [0.5, 2.5], "two": [0.9, 1.1]}))
    row, ratio = ratio_to_best(scores, "purchases", 1000)
    assert row == "two"
    assert ratio.value == 1.0


def test_parts_of_ours_are_rows_but_no_peers():
    errors = {OURS: [1.0, 1.0], OUTCOME: [0.8, 0.8], "LightGBM": [2.0, 2.0]}
    report = world_errors.report(records(**errors), Request(designs=("purchases",)))
    line = next(text for text in report.parts[4].splitlines() if "purchases" in text)
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    assert cells == ["purchases", OUTCOME, "1.25 [1.25, 1.25]", "LightGBM", "0.500 [0.500, 0.500]"]


def test_rows_that_lack_draws_of_ours_are_no_best_row():
    scores = Scores(records(**{OURS: [1.0, 1.0], "one": [0.1], OUTCOME: [1.0, 1.2]}))
    assert ratio_to_best(scores, "purchases", 1000)[0] == OUTCOME
    assert ratio_to_best(scores, "shops", 1000) is None


@pytest.mark.parametrize(("ours", "holds"), [([1.0, 1.02], True), ([1.02, 1.04], False)])
def test_the_bar_is_two_per_cent(ours, holds):
    report = world_errors.report(
        records(**{OURS: ours, "random forest, leaf 5": [1.0, 1.0]}),
        Request(designs=("purchases",)),
    )
    assert [verdict.holds for verdict in report.verdicts] == [holds]
    ratio = np.mean(ours)
    sentence = f"Ratio to the best peer, geometric mean over 1 of the worlds: {ratio:.2f}."
    assert report.parts[-1] == sentence


def test_indicators_stand_for_codes_that_fit_has_seen():
    data = find_design("shops").draw(n=200, seed=0)
    model = METHODS["random_forest"].fit(data, 0)["random forest, leaf 5"]
    assert isinstance(model, WithIndicators)
    encoded = model.encode(data.X)
    assert encoded.shape == (200, 9 + len(np.unique(data.X[:, 0])))
    np.testing.assert_array_equal(encoded[:, :9], data.X[:, 1:])
    np.testing.assert_array_equal(encoded[:, 9:].sum(axis=1), 1.0)
    # Codes by other numbers are the same categories.
    renamed = data.X.copy()
    renamed[:, 0] = 100.0 - renamed[:, 0]
    other = WithIndicators(random_forest(5), [0]).fit(renamed, data.y, treatment=data.treatment)
    assert other.encode(renamed).shape == encoded.shape


@pytest.mark.filterwarnings("ignore:categorical_feature keyword")
def test_lightgbm_takes_codes_as_categories():
    """Codes in an order that says nothing: a split is of sets of categories."""
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 30, 3000).astype(float)
    levels = draw.permutation(30).astype(float)
    regressor = METHODS["lightgbm"].make(find_design("shops").draw(n=10), 0).regressor
    regressor.set_params(n_estimators=1, learning_rate=1.0, num_leaves=2, cat_smooth=0.0)
    predicted = regressor.fit(codes[:, None], levels[codes.astype(int)]).predict(codes[:, None])
    # One split of categories into the lower and the upper half, however they are coded.
    upper = levels[codes.astype(int)] > np.median(levels)
    assert len(np.unique(predicted)) == 2
    assert np.mean((predicted > predicted.mean()) == upper) > 0.9


def test_settings_of_peers_have_no_addresses_in_them():
    for name in ("gaussian_process", "lightgbm", "lightgbm_tuned"):
        assert " at 0x" not in str(settings_of(METHODS[name]))
    assert settings_of(METHODS["doseforest"]) == {}


def test_the_process_has_a_length_for_every_column():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 3)) * [1.0, 10.0, 1.0]
    y = np.sin(2 * X[:, 0]) + 0.05 * X[:, 1] + draw.normal(0.0, 0.1, 150)
    process = ScaledProcess().fit(X[:100], y[:100])
    lengths = process.process_.kernel_.k1.k2.length_scale
    assert lengths[0] < lengths[1] < lengths[2]
    # Noise has a tenth of the deviation; the rest of the signal is smooth.
    assert np.std(process.predict(X[100:]) - y[100:]) < 0.25


def test_tables_for_catboost_keep_numbers_without_codes():
    X = np.array([[1.5, 2.0]])
    assert CategoryBoosting().table(X) is X
    assert CategoryBoosting([1]).table(X).tolist() == [[1.5, 2]]


def test_a_run_of_two_processes_goes_on_where_it_was_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "elsewhere"
    options = ["bench", "worlds", *CHEAP, "--n", "120", "--jobs", "2", "--out", str(out)]
    first = CliRunner().invoke(app, [*options, "--simulations", "1"])
    assert first.exit_code == 0, first.output
    assert "heavy_tails" in first.output
    kept = (out / "lightgbm.jsonl").read_text().split("\n")
    second = CliRunner().invoke(app, [*options, "--simulations", "2"])
    assert second.exit_code == 0, second.output
    later = (out / "lightgbm.jsonl").read_text().split("\n")
    assert later[: len(kept)] == kept
    assert len([line for line in later if line]) == 2 * len([line for line in kept if line]) == 4
    groups = json.loads((out / "worlds.json").read_text())["results"]
    assert {(group["design"], len(group["rms"])) for group in groups} == {
        ("heavy_tails", 2),
        ("shops", 2),
    }
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


def test_the_study_is_listed():
    assert STUDIES["worlds"].designs == world_errors.COLUMNS
