"""Commands about tables, end to end on a few rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bench.designs import DESIGNS
from doseforest import load_forest, load_policy
from doseforest.pricing.cli.main import app
from pipeline_runs import orders, tables, write_rows

FEATURES = ["-x", "hunter,income", "--features", "fare"]
ROLES = ["-y", "ordered", "-t", "discount"]


def run(*arguments):
    return CliRunner().invoke(app, [str(own) for own in arguments])


def said(result):
    """What a command printed, or its error, in one line."""
    return " ".join((result.stdout + result.stderr).replace("│", " ").split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, and a forest without correction fitted on them by the command."""
    folder = tmp_path_factory.mktemp("tables")
    orders(400).to_parquet(folder / "rows.parquet", index=False)
    orders(300, seed=1).to_csv(folder / "new.csv", index=False)
    result = run(
        "fit", folder / "rows.parquet", *ROLES, *FEATURES, "--trees", 10, "--correction", "none",
        "-o", folder / "model.dose", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["features"] == ["hunter", "income", "fare"]
    return folder


def test_simulated_rows_are_those_of_the_library(tmp_path):
    result = run("simulate", tmp_path / "a.csv", "--rows", 30, "--design", "steps", "--seed", 3)
    assert result.exit_code == 0, result.output
    drawn, frame = DESIGNS["steps"].draw(n=30, seed=3), pd.read_csv(tmp_path / "a.csv")
    np.testing.assert_allclose(frame["outcome"], drawn.y)
    np.testing.assert_allclose(frame["dose"], drawn.treatment)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_marketplace_is_written_in_both_formats(tmp_path, ending):
    path = tmp_path / f"views.{ending}"
    result = run("simulate", path, "--rows", 50, "--options", 2, "--json")
    assert json.loads(result.stdout)["rows"] == 50
    frame = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert len(frame) == 50
    assert "shared_discount" in frame


def test_predictions_are_those_of_the_saved_forest(folder, tmp_path):
    out = tmp_path / "curves.parquet"
    result = run(
        "predict", folder / "model.dose", folder / "new.csv", "-o", out, "--doses", "0,0.2",
        "--keep", "cell",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    frame, units = pd.read_parquet(out), pd.read_csv(folder / "new.csv")
    forest = load_forest(folder / "model.dose")
    expected = forest.dose_response(units[["hunter", "income", "fare"]], [0.0, 0.2])
    assert list(frame) == ["cell", "response_0", "response_0.2"]
    np.testing.assert_allclose(frame[["response_0", "response_0.2"]], expected)


def test_effects_are_differences_to_the_baseline(folder, tmp_path):
    out = tmp_path / "effects.csv"
    result = run("predict", folder / "model.dose", folder / "new.csv", "-o", out, "--effects")
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(out)
    np.testing.assert_allclose(frame["effect_0"], 0.0, atol=1e-12)
    assert frame["effect_0.2"].mean() > 0.05  # it is 0.2 on average


def test_an_evaluation_has_risk_qini_and_calibration(folder):
    result = run("evaluate", folder / "model.dose", folder / "new.csv", *ROLES, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["r_risk_less_no_effect"] < 0
    assert [own["dose"] for own in found["qini"]] == [0.1, 0.2]
    assert len(found["calibration"][1]["predicted"]) == 5
    printed = run("evaluate", folder / "model.dose", folder / "new.csv", *ROLES)
    assert "R-risk" in printed.stdout
    assert "Calibration at dose 0.2" in printed.stdout


def test_saved_forests_and_named_models_are_selected(folder):
    files = ["-m", folder / "model.dose"]
    result = run("select", folder / "new.csv", *ROLES, *files, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["best"] == "model"
    named = ["-m", "boosting,linear", *FEATURES, "--propensity", "chance"]
    result = run("select", folder / "rows.parquet", *ROLES, *named, "--json")
    assert result.exit_code == 0, result.output
    assert set(json.loads(result.stdout)["scores"]) == {"boosting", "linear"}


def test_a_plan_keeps_to_its_budget_and_its_policy_decides_alike(folder, tmp_path):
    plan, policy = tmp_path / "plan.parquet", tmp_path / "policy.dose"
    result = run(
        "optimise", folder / "model.dose", folder / "new.csv", "--price", "fare",
        "--budget", 80, "-o", plan, "--policy", policy, "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert 0 < found["cost"] <= 80
    assert found["gain"] > 0
    frame = pd.read_parquet(plan)
    assert frame["expected_cost"].sum() == pytest.approx(found["cost"])
    decided = load_policy(policy).decide(frame[["hunter", "income", "fare"]], frame)
    # What the price leaves of the budget, less than a unit costs, the plan spends on a few more.
    differ = decided.dose != frame["dose"]
    assert (decided.dose[differ] < frame["dose"][differ]).all()
    assert frame["expected_cost"][differ].sum() < frame["expected_cost"].max()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "none.csv", *ROLES], 1, "no file 'none.csv'"),
        (["fit", "{new}", "-y", "orderd", "-t", "discount"], 1, "Did you mean 'ordered'?"),
        (["fit", "{new}", *ROLES, "-x", "incom"], 1, "--features must be a column"),
        (["fit", "{new}", *ROLES, "--trees", "0"], 2, "--trees"),
        (["fit", "{new}", *ROLES, "--correction", "magic"], 1, "'correction' parameter"),
        (["predict", "{new}", "{new}", "-o", "a.csv"], 1, "not a forest"),
        (["predict", "{model}", "{new}", "-o", "a.xls"], 1, "must end in .parquet or .csv"),
        (["predict", "{model}", "{new}", "-o", "a.csv", "--doses", "a"], 1, "--doses must be"),
        (["predict", "{model}", "{new}", "-o", "a.csv", "--doses", "9"], 1, "9"),
        (["predict", "{model}", "{new}", "-o", "a.csv", "--intervals"], 1, "interval"),
        (["evaluate", "{model}", "{new}", "-y", "ordered", "-t", "dscount"], 1, "'discount'"),
        (["select", "{new}", *ROLES, "-m", "forst"], 1, "Did you mean 'forest'?"),
        (["select", "{new}", *ROLES, "-m", "{model},linear"], 1, "not both"),
        (["optimise", "{model}", "{new}", "--price", "fair", "--budget", "1"], 1, "'fare'"),
        (["optimise", "{model}", "{new}", "--price", "1", "--budget", "-1"], 2, "--budget"),
        (["optimise", "{model}", "{new}", "--price", "1", "--budget", "1", "--cell", "cell"],
         1, "given together"),
        (["simulate", "a.csv", "--design", "stepz"], 1, "Did you mean 'steps'?"),
        (["simulate", "a.csv", "--regime", "odd"], 1, "'regime' parameter"),
        (["pipeline", "run", "none.toml"], 2, "pipeline init none.toml"),
        (["pipeline", "init", "{new}"], 1, "there already"),
    ],
)  # fmt: skip
def test_errors_are_a_line_and_an_exit_code(
    folder, tmp_path, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    known = {"new": folder / "new.csv", "model": folder / "model.dose"}
    result = run(*(own.format(**known) for own in arguments))
    assert result.exit_code == code, result.output
    assert message in said(result)
    assert "Traceback" not in said(result)
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.parametrize(
    "command",
    ["demo", "simulate", "fit", "predict", "evaluate", "select", "optimise", "pipeline run",
     "pipeline status", "pipeline init", "pipeline report"],
)  # fmt: skip
def test_the_help_of_every_command_has_an_example(command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Example: doseforest {command}" in said(result)


def write_config(folder):
    lines = []
    for section, own in tables().items():
        nested = {key: value for key, value in own.items() if isinstance(value, dict)}
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(own[key])}" for key in own if key not in nested]
        for key, value in nested.items():
            lines.append(f"[{section}.{key}]")
            lines += [f"{name} = {json.dumps(number)}" for name, number in value.items()]
    (folder / "config.toml").write_text("\n".join(lines))


def test_a_pipeline_is_begun_run_and_looked_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("pipeline", "init", "first.toml").exit_code == 0
    assert "runs" in said(run("pipeline", "run", "first.toml", "--dry-run"))
    write_rows(tmp_path)
    write_config(tmp_path)
    assert "Run the pipeline first" in said(run("pipeline", "report", "config.toml"))
    planned = json.loads(run("pipeline", "run", "config.toml", "--dry-run", "--json").stdout)
    assert {own["state"] for own in planned} == {"runs"}
    result = run("pipeline", "run", "config.toml", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["steps"]["publish"]["model"] in ("boosting", "linear")
    states = json.loads(run("pipeline", "status", "config.toml", "--json").stdout)
    assert {own["state"] for own in states} == {"up to date"}
    assert "up to date" in said(run("pipeline", "status", "config.toml"))
    assert run("pipeline", "report", "config.toml", "-o", "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "Which model ranks" in page
    assert "A/B test: treatment against control" in page
    assert "http" not in page  # nothing comes from the network
    assert "up to date" in said(run("pipeline", "run", "config.toml"))
