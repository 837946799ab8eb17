"""`doseforest bench real`, on made-up tables with the columns of the real data."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from bench.real_data import DoseRows, loan_rows, match_ratio_rows
from bench.studies import study_registry
from bench.studies.real import real_study
from bench.studies.real.held_out import held_out_rows, judge, no_worse_than_one_curve
from bench.studies.real.job_corps import meets_the_bar
from bench.studies.real.loans import line_within_strata, near_the_article
from bench.studies.real.plain import line
from bench.studies.real.real_effort import RealEffort
from bench.studies.real.real_sections import SECTIONS
from bench.studies.real.real_study import RealStudy
from bench.studies.result_keys import FOREST
from doseforest.pricing.cli.main import app
from made_up_tables import write_tables

# Few rows and trees: what forests say about that has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = RealEffort(n_trees=8, outcome_model=LinearRegression(), seeds=(0,))
CHEAP = "match-ratios"  # the section that takes the least time


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Shared by all tests: what one has measured others find."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def bench(tables, results, monkeypatch):
    """Run the command with little effort, in folders of the test's own."""
    monkeypatch.setenv("DOSEFOREST_DATA", str(tables))
    monkeypatch.setitem(study_registry.STUDIES, "real", RealStudy("real data", FOREST, QUICK))
    monkeypatch.setattr(study_registry, "results_folder", lambda: results / "whole")

    def run(*options):
        return CliRunner().invoke(
            app, ["bench", "real", "--threads", "1", "--out", str(results / "parts"), *options]
        )

    return run


def forbid(monkeypatch):
    def measured(name, effort):
        raise RuntimeError("measured again")

    monkeypatch.setattr(real_study, "_measured", measured)


def test_every_section_is_measured_and_reported(bench, results):
    result = bench("--publish")
    assert result.exit_code == 0, result.output
    text = (results / "whole" / "real.md").read_text()
    for section in SECTIONS.values():
        assert f"\n## {section.title}\n" in text
    for name in SECTIONS:
        assert f": {name}: on rows held out not worse than one curve for all" in text
    stored = json.loads((results / "whole" / "real.json").read_text())
    assert {group["design"] for group in stored["results"]} == set(SECTIONS)
    assert stored["commit"]
    assert stored["versions"]


def test_what_is_done_is_not_measured_again(bench, monkeypatch):
    assert bench("--sections", CHEAP).exit_code == 0
    forbid(monkeypatch)
    assert bench("--sections", CHEAP).exit_code == 0
    again = bench("--sections", CHEAP, "--fresh")
    assert again.exit_code == 1
    assert f"{CHEAP} failed: RuntimeError('measured again')" in again.output


def test_a_section_that_fails_does_not_cost_the_others(bench, monkeypatch):
    assert bench("--sections", CHEAP, "--seed", "7").exit_code == 0
    forbid(monkeypatch)
    result = bench("--sections", "loans", "--sections", CHEAP, "--seed", "7")
    assert result.exit_code == 1
    assert "loans failed: RuntimeError('measured again')" in result.output
    assert "## Match ratios" in result.output
    assert "## Loans" not in result.output


def test_a_part_of_the_study_does_not_replace_the_whole(bench, results):
    (results / "whole").mkdir(exist_ok=True)
    (results / "whole" / "real.md").write_text("kept")
    assert bench("--sections", CHEAP).exit_code == 0
    assert (results / "whole" / "real.md").read_text() == "kept"
    assert "## Match ratios" in (results / "parts" / "real.md").read_text()


def test_other_data_and_other_settings_have_other_results(bench, tables, tmp_path, monkeypatch):
    study = RealStudy("real data", FOREST, QUICK)
    first = study.section_file(CHEAP, QUICK, tmp_path)
    assert study.section_file(CHEAP, replace(QUICK, n_jobs=7), tmp_path) == first
    assert study.section_file(CHEAP, replace(QUICK, n_trees=9), tmp_path) != first
    table = (tables / match_ratio_rows.FILE).read_bytes()
    (tmp_path / match_ratio_rows.FILE).write_bytes(table + b" ")
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    assert study.section_file(CHEAP, QUICK, tmp_path) != first


def test_without_any_data_the_command_says_where_to_get_them(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    result = bench("--sections", "loans")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)  # no traceback
    for text in (loan_rows.FILE, "Set DOSEFOREST_DATA", "The data are public: "):
        assert text in result.output


def test_sections_without_data_are_left_out(bench, tables, tmp_path, monkeypatch):
    (tmp_path / match_ratio_rows.FILE).write_bytes((tables / match_ratio_rows.FILE).read_bytes())
    monkeypatch.setenv("DOSEFOREST_DATA", str(tmp_path))
    result = bench("--sections", f"loans,{CHEAP}")
    assert result.exit_code == 1
    assert f"loans: This needs {loan_rows.FILE}" in result.output
    assert "## Match ratios" in result.output
    assert "## Loans" not in result.output


def test_without_pandas_the_command_says_what_to_install(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = bench("--sections", CHEAP)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "pip install 'doseforest[data]'" in result.output


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sections", "loan"], "'loan' is not one of job-corps, loans"),
        (["--sections", "loans,juice"], "'juice' is not one of"),
        (["--n", "10"], "greater than or equal to 1000"),
        (["--threads", "0"], "greater than or equal to 1"),
        (["--designs", "linear"], "No such option"),
    ],
)
def test_bad_options_are_named(bench, options, told):
    result = bench(*options)
    assert result.exit_code == 2
    plain = " ".join(result.output.replace("│", " ").split())
    assert told in plain


# What sections are made of


def test_a_line_is_that_of_least_squares():
    draw = np.random.default_rng(0)
    x, z = draw.normal(size=(2, 200))
    y = 2 * x - z + draw.normal(size=200)
    columns = np.column_stack([np.ones(200), z])
    design = np.column_stack([x, columns])
    known = np.linalg.lstsq(design, y, rcond=None)[0]
    found = line(y, x, columns)
    assert found.value == pytest.approx(known[0])
    inverse, left = np.linalg.inv(design.T @ design), y - design @ known
    sandwich = inverse @ (design.T * left**2) @ design @ inverse
    assert found.error == pytest.approx(np.sqrt(sandwich[0, 0]))


def test_rows_that_are_repeated_in_a_cluster_tell_nothing_new():
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 100))
    once = line(y, x)
    twice = line(np.tile(y, 2), np.tile(x, 2), clusters=np.tile(np.arange(100), 2))
    assert twice.value == pytest.approx(once.value)
    assert twice.error == pytest.approx(once.error)


@pytest.mark.usefixtures("bench")
def test_lines_within_strata_do_not_see_levels_of_strata():
    offers = loan_rows.read_offers()
    level = offers["risk"].map({"LOW": 5.0, "MEDIUM": 1.0, "HIGH": 0.0}) + offers["wave"]
    y = level - 0.3 * np.log(offers["share"])
    found = line_within_strata(offers.assign(applied=y), "applied")
    assert found.value == pytest.approx(-0.3 / y.mean())


def test_groups_are_held_out_whole():
    groups = np.repeat(np.arange(60), 5)
    rows = DoseRows(np.zeros((300, 1)), np.zeros(300), np.zeros(300), groups=groups)
    held_out = held_out_rows(rows, seed=0)
    assert set(groups[held_out]).isdisjoint(groups[~held_out])
    # 60 draws with a chance of a third: 20 with a standard deviation of 3.7.
    assert 0.1 < held_out.mean() < 0.6


def test_a_forest_that_sees_opposite_effects_beats_one_curve_for_all():
    draw = np.random.default_rng(2)
    X, dose = draw.choice([-1.0, 1.0], (600, 1)), draw.uniform(0, 1, 600)
    rows = DoseRows(X, 2 * X[:, 0] * dose + draw.normal(0, 0.2, 600), dose)
    held_out = held_out_rows(rows, seed=0)
    seen, unseen = rows.take(~held_out), rows.take(held_out)
    effort = replace(QUICK, n_trees=20, n_jobs=1)
    records = judge(effort.forest(seen), seen, unseen, effort)
    # The mean square of 2 (T - E T) over units is 1 / 3; one curve for all has none of it.
    gain = records[0]
    assert gain["gain"] > 0.15
    assert gain["gain"] > 5 * gain["standard_error"]
    assert no_worse_than_one_curve("made-up", records).holds
    worse = [{**gain, "gain": -gain["gain"]}]
    assert not no_worse_than_one_curve("made-up", worse).holds


def test_the_bar_of_job_corps_has_three_parts():
    assert meets_the_bar(0.5, 0.96, 1.1)
    assert not meets_the_bar(0.51, 0.99, 1.0)
    assert not meets_the_bar(0.1, 0.95, 1.0)
    assert not meets_the_bar(0.1, 0.99, 1.2)
    assert not meets_the_bar(0.1, 0.99, None)


def test_an_elasticity_is_near_within_a_standard_error():
    record = {"row": "applied", "ours": -0.30, "standard_error": 0.05, "published": -0.27}
    assert near_the_article(record).holds
    assert not near_the_article({**record, "ours": -0.40}).holds
