"""The command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import doseforest
from bench import command
from doseforest.pricing.cli.main import COMMANDS, app


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def test_the_version_is_that_of_the_package():
    result = run("--version")
    assert result.exit_code == 0
    assert result.output == f"doseforest {doseforest.__version__}\n"


@pytest.mark.parametrize("late", COMMANDS, ids=lambda own: own.name)
def test_the_list_of_commands_says_what_their_own_help_begins_with(late):
    assert late.load().help.startswith(late.help.rstrip("."))
    assert run(late.name, "--help").exit_code == 0


def test_help_imports_no_command():
    program = "import sys\nfrom typer.testing import CliRunner\n"
    program += "from doseforest.pricing.cli.main import app\n"
    program += "CliRunner().invoke(app, ['--help'])\nprint(*sys.modules)"
    command = [sys.executable, "-c", program]
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "doseforest.pricing.cli.late_commands" in imported
    assert {
        "scipy",
        "sklearn",
        "doseforest.estimator.generalized_causal_forest",
        "bench.command",
    }.isdisjoint(imported)


def test_every_study_has_a_command():
    printed = run("bench", "--help").output
    assert all(name in printed for name in ("table1", "adrf", "ablation", "scaling"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "'magic' is not one of doseforest"),
        (["--designs", "polynomial,nowhere"], "'nowhere' is not one of polynomial"),
        (["--designs", "confounded"], "'confounded' is not one of polynomial"),
        (["--methods", ","], "'' is not one of doseforest"),
        (["--simulations", "0"], "greater than or equal to 1"),
        (["--n", "5"], "greater than or equal to 100"),
        (["--seed", "-1"], "greater than or equal to 0"),
        (["--processes", "0"], "greater than or equal to 1"),
    ],
)
def test_bad_options_are_named(arguments, message):
    result = run("bench", "table1", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("study", "method", "message"),
    [
        ("ablation", "random_forest", "is not one of ablation_printed, ablation"),
        ("table1", "ablation", "'ablation' is not one of doseforest"),
        ("table1", "apart", "'apart' is not one of doseforest"),
    ],
)
def test_a_study_takes_no_methods_that_its_report_would_not_show(study, method, message):
    result = run("bench", study, "--methods", method)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("study", ["accuracy", "joint", "colangelo-lee"])
def test_studies_of_a_fixed_size_refuse_another(study):
    result = run("bench", study, "--n", "500")
    assert result.exit_code == 2
    assert "This study takes --methods" in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("place", "message"), [("", "is a directory"), ("missing/numbers.json", "cannot be written to")]
)
def test_numbers_that_cannot_be_written_are_told_before_the_first_fit(tmp_path, place, message):
    result = run("bench", "table1", "--methods", "zero", "--json", tmp_path / place)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not (tmp_path / "missing").exists()


def test_a_figure_without_a_curve_to_draw_is_refused_before_the_first_fit():
    result = run("bench", "adrf", "--methods", "zero,adrf")
    assert result.exit_code == 1
    assert "must have one that estimates an average curve. Got zero, adrf" in result.output


def test_names_may_have_commas_be_repeated_and_stand_for_groups(monkeypatch):
    asked = []

    def answer(study, request, json):
        asked.append(request)
        return "text", True

    monkeypatch.setattr(command, "run_study", answer)
    result = run("bench", "table1", "--methods", "zero, adrf", "--methods", "fast", "--n", "200")
    assert result.exit_code == 0
    assert result.output == "text\n"
    assert asked[0].methods[:2] == ("zero", "adrf")
    assert "econml" not in asked[0].methods
    assert asked[0].n == 200
    assert not asked[0].whole


def test_a_study_that_left_something_out_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(command, "run_study", lambda study, request, json: ("text", False))
    result = run("bench", "table1")
    assert result.exit_code == 1
    assert "left out or failed" in result.output


def test_a_study_of_one_fit_takes_no_methods():
    result = run("bench", "large-fit", "--simulations", "3")
    assert result.exit_code == 2
    assert "This study takes --seed." in " ".join(result.output.replace("│", " ").split())


def test_a_study_of_draws_takes_their_number_but_no_methods(monkeypatch):
    asked = []
    monkeypatch.setattr(
        command,
        "run_study",
        lambda study, request, json: (asked.append(request) or "text", True),
    )
    assert run("bench", "ab", "--simulations", "3").exit_code == 0
    assert asked[0].simulations == 3
    result = run("bench", "ab", "--methods", "zero")
    assert result.exit_code == 2
    assert "takes --simulations, --seed." in " ".join(result.output.replace("│", " ").split())
