"""Pipelines: what runs, what does not, and what is left after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from doseforest.policy import load_policy
from doseforest.pricing.pipeline import PipelineError, plan_pipeline, run_pipeline
from doseforest.pricing.pipeline.config import PipelineConfig
from doseforest.pricing.pipeline.manifest import Manifest, file_digest
from doseforest.pricing.pipeline.row_tables import read_source
from doseforest.pricing.pipeline.steps import steps_of
from pipeline_runs import config_of, orders, tables, write_rows

STEPS = ["collect", "train boosting", "train linear", "select", "optimise", "publish", "test"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a finished pipeline; tests that change it copy the workspace."""
    folder = tmp_path_factory.mktemp("finished")
    write_rows(folder)
    run_pipeline(config_of(folder))
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished pipeline that a test may change."""
    shutil.copytree(finished, tmp_path / "copy")
    # The manifest knows files outside of the workspace by their path.
    manifest = tmp_path / "copy/out/pipeline/manifest.json"
    manifest.write_text(manifest.read_text().replace(str(finished), str(tmp_path / "copy")))
    return tmp_path / "copy"


def digests(folder):
    steps = Manifest.read(folder / "out/pipeline").steps
    return {name: own for record in steps.values() for name, own in record.outputs.items()}


def ran(folder, **sections):
    return [one.step.name for one in run_pipeline(config_of(folder, **sections)) if one.ran]


def states(folder, **sections):
    return {own.step.name: own.state for own in plan_pipeline(config_of(folder, **sections))}


def test_every_artifact_is_in_the_manifest_with_its_digest(finished):
    workspace = finished / "out/pipeline"
    found = digests(finished)
    assert len(found) == 12
    assert all(file_digest(workspace / name) == own for name, own in found.items())
    record = Manifest.read(workspace).steps["train linear"]
    assert record.seed == 0
    assert record.versions["doseforest"]
    assert record.inputs == {"collect/train.parquet": found["collect/train.parquet"]}
    assert record.metrics["rows"] == 360


def test_nothing_else_is_left_in_the_workspace(finished):
    workspace = finished / "out/pipeline"
    files = {str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()}
    assert files - set(digests(finished)) == {"manifest.json", "pipeline.log", ".lock"}


def test_a_second_run_does_nothing(copied):
    before = (copied / "out/pipeline/manifest.json").read_bytes()
    assert ran(copied) == []
    assert (copied / "out/pipeline/manifest.json").read_bytes() == before


def test_a_fresh_run_gives_the_same_artifacts(copied):
    before = digests(copied)
    config = config_of(copied)
    assert all(one.ran for one in run_pipeline(config, fresh=True))
    assert digests(copied) == before


def test_the_published_policy_decides(finished):
    policy = load_policy(finished / "out/pipeline/publish/policy.dose")
    card = json.loads((finished / "out/pipeline/publish/card.json").read_text())
    units = orders(50, seed=3)
    decisions = policy.decide(units[card["features"]], units)
    assert set(decisions.dose) <= {0.0, 0.1, 0.2}
    # Discounts do nothing for the others: hunters must get more.
    hunters = units["hunter"].to_numpy() == 1
    assert decisions.dose[hunters].mean() > decisions.dose[~hunters].mean()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"test": {"covariates": []}}, []),  # the default, said aloud
        ({"test": {"arm": "arm", "salt": "other"}}, ["test"]),
        ({"pipeline": {"threads": 1}}, []),
        ({"publish": {"target": "copy.dose"}}, ["publish"]),
        ({"select": {"level": 0.2}}, ["select"]),  # what it says stays the same, up to words
        ({"train": {"linear": {"n_trees": 9}}}, ["train linear", "select", "optimise", "publish"]),
    ],
)
def test_a_changed_configuration_runs_what_depends_on_it(copied, changed, expected):
    found = ran(copied, **changed)
    if expected == ["select"]:
        # Words of the verdict may change; then what reads the selection runs as well.
        assert found[0] == "select"
        assert set(found) <= {"select", "optimise", "publish"}
    else:
        assert found == expected
    assert ran(copied, **changed) == []


def test_new_rows_run_everything_that_reads_them(copied):
    orders(700, seed=5).to_parquet(copied / "rows.parquet", index=False)
    assert states(copied)["collect"] == "runs"
    assert ran(copied) == STEPS[:-1]


def test_the_dry_run_says_what_would_run_and_changes_nothing(copied):
    before = (copied / "out/pipeline/manifest.json").read_bytes()
    planned = plan_pipeline(config_of(copied, train={"linear": {"n_trees": 9}}))
    told = {own.step.name: (own.state, own.reason) for own in planned}
    assert told["train boosting"] == ("up to date", "")
    assert told["train linear"] == ("runs", "its configuration changed")
    assert told["select"] == ("runs if its input changes", "needs what comes of train linear")
    assert told["test"] == ("up to date", "")
    assert (copied / "out/pipeline/manifest.json").read_bytes() == before


def test_an_added_model_is_fitted_alone(copied):
    models = {"models": ["boosting", "linear", "random_forest"], "random_forest": {"n_trees": 5}}
    found = ran(copied, train=models)
    assert "train random_forest" in found
    assert "train boosting" not in found


def test_a_damaged_or_missing_artifact_is_made_again(copied):
    workspace, before = copied / "out/pipeline", digests(copied)
    (workspace / "train/linear.joblib").write_bytes(b"half")
    (workspace / "publish/policy.dose").unlink()
    assert states(copied)["train linear"] == "runs"
    assert ran(copied) == ["train linear", "publish"]
    assert digests(copied) == before


def test_a_lost_copy_is_published_again(copied):
    target = {"publish": {"target": "served/copy.dose"}}
    ran(copied, **target)
    copy = copied / "served/copy.dose"
    assert copy.read_bytes() == (copied / "out/pipeline/publish/policy.dose").read_bytes()
    copy.write_bytes(b"other")
    assert ran(copied, **target) == ["publish"]


def test_another_version_of_doseforest_runs_everything(copied):
    path = copied / "out/pipeline/manifest.json"
    stored = json.loads(path.read_text())
    stored["steps"]["select"]["versions"]["doseforest"] = "0.0.1"
    path.write_text(json.dumps(stored))
    reasons = {own.step.name: own.reason for own in plan_pipeline(config_of(copied))}
    assert reasons["select"] == "doseforest has another version"
    assert reasons["train linear"] == ""


def test_a_broken_manifest_is_told_of(copied):
    (copied / "out/pipeline/manifest.json").write_text('{"steps": 3}')
    with pytest.raises(PipelineError, match="not a manifest"):
        plan_pipeline(config_of(copied))


def test_two_runs_at_a_time_are_refused(copied):
    fcntl = pytest.importorskip("fcntl")
    with (copied / "out/pipeline/.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match="Another run is at work"):
            run_pipeline(config_of(copied))


KILLED_IN = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from pipeline_runs import config_of
from doseforest.pricing.pipeline import run_pipeline, runner
from doseforest.pricing.pipeline.manifest import Manifest

when, step = {when!r}, {step!r}
def kill(*event):
    os.kill(os.getpid(), signal.SIGKILL)

def watch(event, own, told):
    if own.name == step and event == "starts":
        if when == "moving":  # artifacts are whole, and half of them in their place
            replace, done = Path.replace, []
            def moved(self, target):
                if self.parent.name == runner.DRAFTS:
                    if done:
                        kill()
                    done.append(target)
                    if len(own.outputs) == 1:
                        replace(self, target)
                        kill()
                return replace(self, target)
            Path.replace = moved
        else:  # a half-written draft
            drafts = Path({folder!r}) / "out/pipeline" / runner.DRAFTS
            def work(self):
                def run(*anything):
                    drafts.mkdir(exist_ok=True)
                    (drafts / Path(own.outputs[0]).name).write_bytes(b"half")
                    kill()
                return run
            type(own).work = work
run_pipeline(config_of(Path({folder!r})), watch=watch)
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_run_goes_on_and_ends_with_the_same_artifacts(copied, step):
    """Killed in the middle of the work for one half of the steps, while moving for the other."""
    before = digests(copied)
    when = "moving" if STEPS.index(step) % 2 else "working"
    workspace = copied / "out/pipeline"
    manifest = Manifest.read(workspace)
    manifest.drop(STEPS[STEPS.index(step) :])
    script = KILLED_IN.format(
        tests=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
        when=when,
        step=step,
        folder=str(copied),
    )
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert step not in Manifest.read(workspace).steps
    assert step in ran(copied)
    assert digests(copied) == before
    assert not (workspace / ".drafts").exists()


def test_tables_of_csv_and_sqlite_give_the_same_rows_as_parquet(copied):
    frame = pd.read_parquet(copied / "rows.parquet")
    frame.to_csv(copied / "rows.csv", index=False)
    with sqlite3.connect(copied / "rows.db") as connection:
        frame.to_sql('of "rows"', connection, index=False)
    expected = pd.read_parquet(copied / "out/pipeline/collect/train.parquet")
    for own in (
        {"source": "csv", "path": "rows.csv"},
        {"source": "sql", "url": "sqlite:///rows.db", "table": 'of "rows"'},
    ):
        found = read_source(config_of(copied, collect=own))
        pd.testing.assert_frame_equal(found[frame.columns], frame, check_dtype=False)
    assert len(expected) == 360


def test_a_column_with_a_new_role_is_collected_anew_and_no_feature_any_more(copied):
    def settings(optimise, features):
        plain = tables(optimise=optimise)
        if features is None:
            del plain["columns"]["features"]
        steps = steps_of(PipelineConfig.from_tables(plain, copied))
        return {own.name: own.settings for own in steps}

    before, after = (settings(own, "named") for own in ({}, {"spent": "income"}))
    assert before["collect"] != after["collect"]
    assert before["train linear"] == after["train linear"]
    before, after = (settings(own, None) for own in ({}, {"spent": "income"}))
    assert before["train linear"] != after["train linear"]


def test_rows_in_the_log_of_a_database_count(copied):
    with closing(sqlite3.connect(copied / "rows.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE rows (a)")
        connection.commit()
        collect = {"source": "sql", "url": "sqlite:///rows.db", "table": "rows"}
        plain = tables() | {"collect": collect}
        files = steps_of(PipelineConfig.from_tables(plain, copied))[0].files
    assert [path.name for path in files] == ["rows.db", "rows.db-wal"]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"url": "sqlite:///none.db", "table": "rows"}, "must name a database that exists"),
        ({"url": "sqlite:///rows.db", "table": "none"}, "table 'none' cannot be read"),
        ({"url": "postgresql://here/rows", "table": "rows"}, "pip install sqlalchemy"),
    ],
)
def test_databases_that_cannot_be_read_are_told_of(copied, own, message):
    if "postgresql" in own["url"] and find_spec("sqlalchemy"):
        pytest.skip("SQLAlchemy is installed")
    with sqlite3.connect(copied / "rows.db") as connection:
        connection.execute("CREATE TABLE rows (a)")
    with pytest.raises(PipelineError, match=message):
        read_source(config_of(copied, collect={"source": "sql", **own}))


def test_a_database_that_does_not_answer_is_told_of(copied):
    pytest.importorskip("psycopg")
    own = {"source": "sql", "url": "postgresql+psycopg://127.0.0.1:9/rows", "table": "rows"}
    with pytest.raises(PipelineError, match=r"table 'rows' cannot be read: .*127\.0\.0\.1"):
        read_source(config_of(copied, collect=own))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"columns": {"outcome": "orderd"}}, r"\[columns\] outcome must be a column .* 'ordered'"),
        ({"optimise": {"price": "fair"}}, r"\[optimise\] price must be a column .* 'fare'"),
        ({"columns": {"treatment": ["hunter_"]}}, r"Did you mean 'hunter'"),
    ],
)
def test_columns_that_are_not_there_are_named(tmp_path, sections, message):
    write_rows(tmp_path, n=200)
    with pytest.raises(PipelineError, match=message):
        run_pipeline(config_of(tmp_path, **sections))


def test_outcomes_that_are_missing_are_named_with_their_row(tmp_path):
    write_rows(tmp_path, n=200)
    frame = orders(200).assign(ordered=np.r_[0.0, np.nan, np.ones(198)])
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(PipelineError, match=r"'ordered' must hold .* Got nan in row 1"):
        run_pipeline(config_of(tmp_path))


def test_too_few_rows_are_refused(tmp_path):
    write_rows(tmp_path, n=80)
    with pytest.raises(PipelineError, match="50 rows or more"):
        run_pipeline(config_of(tmp_path))


def test_supplies_hold_and_their_prices_are_in_the_policy(tmp_path):
    write_rows(tmp_path)
    # About 80 of the 240 held-out rows order at all doses; a cell of 60 rows gets no more seats
    # than its riders take without any discount, the others get plenty.
    frame = orders().assign(seats=lambda own: np.where(own["cell"] == 0, 1.0, 1e6))
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    config = config_of(tmp_path, optimise={"cell": "cell", "supply": "seats"})
    run_pipeline(config)
    planned = pd.read_parquet(config.workspace / "optimise/doses.parquet")
    full = planned["cell"] == 0
    assert planned.loc[~full, "planned_discount"].mean() > 0
    assert planned.loc[full, "planned_discount"].mean() == 0
    policy = load_policy(config.workspace / "publish/policy.dose")
    assert policy.cell_prices.prices[0] > 0
    assert policy.cell_prices.prices[1] == 0


def test_a_test_by_results_finds_the_increment(finished):
    found = json.loads((finished / "out/pipeline/test/result.json").read_text())
    low, high = found["results"]["orders"]["interval"]
    assert low < 3.0 < high
    assert found["results"]["orders"]["p_value"] < 0.05
