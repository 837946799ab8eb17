"""`doseforest bench ihdp` and `cadr`, on made-up files with the arrays of the published ones."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bench.designs import HELD_OUT_DESIGNS, find_design
from bench.real_data import MissingDataError
from bench.real_data.held_out_curves import (
    CADR_FILE,
    CADR_RESULTS,
    CADR_SETS,
    IHDP_FILE,
    IHDP_RESULTS,
    HeldOutCurves,
    cadr_draw,
    ihdp_split,
    published_cadr,
    published_ihdp,
)
from bench.studies import published_curves
from bench.studies.held_out_measures import policy_error, romberg_root, root_mean_square
from bench.studies.measures import MEASURES
from bench.studies.request import Request
from bench.studies.scores import Scores
from bench.studies.study_methods import OURS
from doseforest.pricing.cli.main import app

N_UNITS = 40


def ihdp_arrays():
    """Two splits of 40 units whose curves are lines."""
    draw = np.random.default_rng(0)
    X, dose = draw.normal(size=(N_UNITS, 3)).astype(np.float32), draw.uniform(0, 1, N_UNITS)
    grid = 0.01 + np.arange(64) / 64
    order = np.stack([draw.permutation(N_UNITS) for _ in range(2)])
    return {
        "X": X,
        "t": dose,
        "y": (1 + X[:, 0]) * dose,
        "idx_train": order[:, :25],
        "idx_test": order[:, 25:],
        "doses_64": grid,
        "response_64": (1 + X[:, :1]) * grid,
    }


def cadr_arrays():
    """Two draws of each set."""
    grid, arrays = np.arange(65) / 64, {"doses": np.arange(65) / 64}
    for name in CADR_SETS:
        for number in range(2):
            draw = np.random.default_rng(number)
            X, units = draw.normal(size=(30, 2)), draw.normal(size=(10, 2))
            dose = draw.uniform(0, 1, 30)
            parts = {"X": X, "t": dose, "y": X[:, 0] * dose, "X_test": units}
            parts["response"] = units[:, :1] * grid
            arrays |= {f"{name}/{number}/{part}": values for part, values in parts.items()}
    return arrays


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data folder."""
    data = tmp_path / "data"
    data.mkdir()
    np.savez(data / IHDP_FILE, **ihdp_arrays())
    np.savez(data / CADR_FILE, **cadr_arrays())
    errors = [
        ("ihdp", method, split, error + split)
        for method, error in (("giks", 1.0), ("VCNet", 2.0))
        for split in (0, 1)
    ]
    columns = ["dataset", "method", "split", "root_mise"]
    pd.DataFrame([*errors, ("news", "giks", 0, 9.0)], columns=columns).to_csv(data / IHDP_RESULTS)
    tables = [
        ("IHDP-1 dataset", "xgboost", "d conf.", 1.14, 0.13),
        ("IHDP-1 dataset", "xgboost", "random.", 1.04, 0.10),
        ("Policy error on IHDP-1 dataset", "xgboost", "d conf.", 0.06, 0.04),
        ("Policy error on IHDP-3 dataset", "VCNet", "d conf.", 264.68, 30.55),
    ]
    columns = ["section", "method", "scenario", "mean", "sd"]
    pd.DataFrame(tables, columns=columns).to_csv(data / CADR_RESULTS, index=False)
    monkeypatch.setenv("DOSEFOREST_DATA", str(data))
    return data


# What is measured


def test_the_root_mean_square_of_a_line_is_that_of_its_squares():
    grid = np.linspace(0.0, 1.0, 64)
    errors = np.stack([3.0 * grid, 4.0 * grid])
    # (9 + 16) / 2 times the mean of k^2 / 63^2 over k = 0..63, which is 127 / (6 * 63).
    assert root_mean_square(errors) == pytest.approx(np.sqrt(12.5 * 127 / (6 * 63)))


@pytest.mark.parametrize("power", [0, 1, 2, 3])
def test_romberg_is_exact_for_polynomials(power):
    grid = np.linspace(0.0, 1.0, 65)
    errors = np.stack([2.0 * grid**power, 0.0 * grid])
    # Squares are of degree 2 power; the step is 1/65 where doses are 1/64 apart.
    exact = 4.0 / (2 * power + 1) * 64 / 65
    assert romberg_root(errors) == pytest.approx(np.sqrt(exact / 2))


def test_a_policy_by_the_exact_curves_loses_nothing():
    response = np.random.default_rng(0).normal(size=(20, 65))
    assert policy_error(response, response) == 0.0
    assert policy_error(response, 5 + 2 * response) == 0.0
    worst = np.mean((response.max(axis=1) - response.min(axis=1)) ** 2)
    assert policy_error(response, -response) == pytest.approx(worst)


def test_errors_are_of_the_held_out_units(folder):
    class Half:
        def dose_response(self, X, doses):
            return 0.5 * (1 + X[:, :1]) * doses

    data = ihdp_split(1)
    errors = MEASURES["published_ihdp"](Half(), data, 1)
    assert errors["rms"] == pytest.approx(np.sqrt(np.mean(data.response**2)) / 2)


# What is read


def test_a_split_has_its_rows_and_the_curves_of_the_others(folder):
    arrays, data = ihdp_arrays(), ihdp_split(1)
    assert isinstance(data, HeldOutCurves)
    np.testing.assert_array_equal(data.X, arrays["X"][arrays["idx_train"][1]])
    np.testing.assert_array_equal(data.treatment, arrays["t"][arrays["idx_train"][1]])
    np.testing.assert_array_equal(data.y, arrays["y"][arrays["idx_train"][1]])
    np.testing.assert_array_equal(data.units, arrays["X"][arrays["idx_test"][1]])
    np.testing.assert_allclose(data.response, (1 + data.units[:, :1]) * data.doses)
    assert data.X.dtype == data.units.dtype == np.float64


def test_a_draw_has_its_arrays(folder):
    arrays, data = cadr_arrays(), cadr_draw("synth1", 1)
    np.testing.assert_array_equal(data.X, arrays["synth1/1/X"])
    np.testing.assert_array_equal(data.response, arrays["synth1/1/response"])
    assert len(data.doses) == 65
    some = find_design("cadr_synth1").draw(n=7, seed=1)
    np.testing.assert_array_equal(some.X, data.X[:7])
    assert len(some.y) == len(some.treatment) == 7


def test_published_errors_are_those_of_the_data_set_and_setting(folder):
    assert published_ihdp() == {"giks": {0: 1.0, 1: 2.0}, "VCNet": {0: 2.0, 1: 3.0}}
    assert published_cadr("ihdp1") == {"xgboost": (1.14, 0.13)}
    assert published_cadr("ihdp3") == {}
    assert published_cadr("ihdp3", policy=True) == {"VCNet": (264.68, 30.55)}


def _without(arrays, name):
    return {key: values for key, values in arrays.items() if key != name}


WRONG_FILES = {
    "lacks an array": (lambda arrays: _without(arrays, "response_64"), "must have the arrays X, t"),
    "tests on training rows": (
        lambda arrays: arrays | {"idx_test": arrays["idx_train"]},
        "must not test on training rows",
    ),
    "has places that are no rows": (
        lambda arrays: arrays | {"idx_train": arrays["idx_train"] + N_UNITS},
        "places of its 40 rows in 'idx_train'. Got 40 to 79",
    ),
    "has one split": (
        lambda arrays: arrays | {"idx_train": arrays["idx_train"][:1]},
        "more than 1 splits in 'idx_train'",
    ),
    "has curves on another grid": (
        lambda arrays: arrays | {"doses_64": arrays["doses_64"][:60]},
        r"curves of shape \(15, 60\). Got \(15, 64\)",
    ),
    "has doses in two columns": (
        lambda arrays: arrays | {"t": np.stack([arrays["t"]] * 2, axis=1)},
        r"doses of rows of shape \(25,\). Got \(25, 2\)",
    ),
    "has an outcome that is no number": (
        lambda arrays: arrays | {"y": np.full(N_UNITS, np.nan)},
        "finite outcomes. Got nan",
    ),
    "has doses that descend": (
        lambda arrays: arrays | {"doses_64": arrays["doses_64"][::-1]},
        "ascending doses of curves",
    ),
}


@pytest.mark.parametrize("what", WRONG_FILES)
def test_a_wrong_file_is_refused(what, folder):
    change, message = WRONG_FILES[what]
    np.savez(folder / IHDP_FILE, **change(ihdp_arrays()))
    with pytest.raises(ValueError, match=message):
        ihdp_split(1)


@pytest.mark.parametrize("contents", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_archive_is_refused(contents, folder):
    (folder / CADR_FILE).write_bytes(contents)
    with pytest.raises(ValueError, match="must be an archive of arrays"):
        cadr_draw("ihdp1", 0)


def test_objects_are_not_unpickled(folder):
    np.savez(folder / CADR_FILE, doses=np.array([{}, {}], dtype=object))
    with pytest.raises(ValueError, match="must be an archive of arrays without objects"):
        cadr_draw("ihdp1", 0)


def test_tables_with_other_columns_are_refused(folder):
    pd.DataFrame({"method": ["giks"]}).to_csv(folder / IHDP_RESULTS, index=False)
    with pytest.raises(ValueError, match="must have the columns dataset, method"):
        published_ihdp()


@pytest.mark.parametrize("seed", [-1, 50])
def test_a_split_that_there_is_not_is_refused(seed):
    with pytest.raises(ValueError, match=rf"from 0 to 49\. Got {seed} instead"):
        HELD_OUT_DESIGNS["ihdp"].draw(seed=seed)


# The studies


def test_all_splits_are_asked_for_and_no_others():
    tasks = published_curves.ihdp_tasks(Request())
    assert {(task.design, task.n) for task in tasks} == {("ihdp", 471)}
    assert {task.seed for task in tasks} == set(range(50))
    some = published_curves.cadr_tasks(Request(seed=8, simulations=5, designs=("cadr_synth1",)))
    assert {(task.design, task.n, task.seed) for task in some} == {
        ("cadr_synth1", 559, 8),
        ("cadr_synth1", 559, 9),
    }
    with pytest.raises(ValueError, match=r"from 0 to 49\. Got 50 instead"):
        published_curves.ihdp_tasks(Request(seed=50))


@pytest.mark.parametrize(("error", "holds"), [(0.84, True), (0.86, False)])
def test_the_bar_is_on_the_mean_over_splits(error, holds):
    records = [
        {"row": OURS, "design": "ihdp", "n": 471, "seed": split, "rms": error + wobble}
        for split, wobble in ((0, -0.1), (1, 0.1))
    ]
    (verdict,) = published_curves.verdicts(Scores(records), ["ihdp"])
    assert verdict.holds is holds
    (unmeasured,) = published_curves.verdicts(Scores([]), ["cadr_ihdp3"])
    assert unmeasured.holds is None


def test_ihdp_is_run_beside_the_published_splits(folder, tmp_path):
    options = ["--simulations", "2", "--methods", "zero", "--jobs", "1", "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, ["bench", "ihdp", *options])
    assert ran.exit_code == 0, ran.output
    lines = [line for line in ran.output.splitlines() if line.startswith("|")]
    rows = {cells[1].strip(): cells for line in lines if (cells := line.split("|"))}
    assert rows["GIKS, published"][3].strip() == "1.50 (0.500)"
    assert rows["VCNet, published"][4].strip() == "1.00 [1.00, 1.00]"
    groups = json.loads((tmp_path / "ihdp.json").read_text())["results"]
    splits = [ihdp_split(split) for split in (0, 1)]  # the row is the mean outcome at every dose
    exact = [root_mean_square(split.response - split.y.mean()) for split in splits]
    np.testing.assert_allclose(groups[0]["rms"], exact, rtol=1e-4)  # five digits are written


def test_cadr_is_run_beside_the_published_tables(folder, tmp_path):
    options = ["--simulations", "1", "--methods", "zero", "--jobs", "1", "--out", str(tmp_path)]
    ran = CliRunner().invoke(app, ["bench", "cadr", *options])
    assert ran.exit_code == 0, ran.output
    assert "1.14 (sd 0.13)" in ran.output
    assert "264.68 (sd 30.55)" in ran.output
    groups = json.loads((tmp_path / "cadr.json").read_text())["results"]
    assert {group["design"] for group in groups} == {"cadr_ihdp1", "cadr_ihdp3", "cadr_synth1"}
    data = cadr_draw("ihdp1", 0)
    exact = romberg_root(data.response - data.y.mean())
    np.testing.assert_allclose(groups[0]["rms"], [exact], rtol=1e-4)


@pytest.mark.parametrize(("study", "file"), [("ihdp", IHDP_FILE), ("cadr", CADR_RESULTS)])
def test_absent_data_is_said_before_any_fit(study, file, tmp_path, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path / "nowhere"))
    ran = CliRunner().invoke(app, ["bench", study, "--out", str(tmp_path / "out")])
    assert ran.exit_code == 1
    assert f"This needs {file}, which is not in {tmp_path / 'nowhere'}" in ran.output
    assert "Set DOSEFOREST_DATA" in ran.output
    assert not (tmp_path / "out").exists()
    with pytest.raises(MissingDataError, match="The data are public"):
        ihdp_split(0)
