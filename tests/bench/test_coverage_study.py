"""`doseforest bench coverage`: its draws, their store, its arithmetic and its bars."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

from bench.studies import study_registry
from bench.studies.coverage import (
    coverage_and_positivity,
    coverage_of_shapes,
    coverage_of_units,
    coverage_study,
    published_coverage,
    unit_draws,
)
from bench.studies.coverage.coverage_section import CoverageSection, by_case, no_packages
from bench.studies.coverage.coverage_study import Draw, draws_of
from bench.studies.request import Request
from bench.studies.study_workers import Clock
from doseforest.estimator.bags import growing_bags
from doseforest.pricing.cli.main import app

# Few rows and cheap models: what forests say about that has its own tests.
pytestmark = pytest.mark.filterwarnings("ignore")


def toy(measure):
    def summary(records):
        return [
            {"case": case, "row": case, "mean": float(np.mean([own["x"] for own in draws]))}
            for case, draws in by_case(records).items()
        ]

    def parts(found):
        return [f"{own['case']}: mean {own['mean']:.1f}" for own in found]

    return CoverageSection(
        "Toy",
        ("engine",),
        (),
        {"one": 3, "two": 3},
        no_packages,
        measure,
        summary,
        parts,
        lambda found: [],
    )


def alone(draws, request, clock, done):
    """Make draws in this process."""
    for own in draws:
        done[own] = coverage_study.measured(own)
        with coverage_study.store_file(own.section, request.out).open("a") as file:
            file.write("\n" + json.dumps(done[own]) + "\n")


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """A study of one cheap section, in one process, and the draws that it made."""
    made = []

    def measure(case, seed):
        made.append((case, seed))
        return {"x": seed}

    (tmp_path / "coverage").mkdir()
    monkeypatch.setattr(coverage_study, "SECTIONS", {"toy": toy(measure)})
    monkeypatch.setattr(coverage_study, "make", alone)
    return made


def test_draws_come_seed_by_seed_and_can_be_chosen():
    asked = draws_of(Request(sections=("units",), designs=("randomised 2000",), simulations=2))
    assert asked == [
        Draw("units", f"randomised 2000 {method}", seed)
        for seed in (1000, 1001)
        for method in ("doseforest", "econml")
    ]
    whole = draws_of(Request())
    for name, section in coverage_study.SECTIONS.items():
        own = Counter(draw.case for draw in whole if draw.section == name)
        assert own == section.draws


def test_draws_that_are_made_are_not_made_again(toys, tmp_path):
    ran = coverage_study.CoverageStudy("toy")
    report, complete = ran.run(Request(out=tmp_path, simulations=2, seed=5), Clock())
    assert complete
    assert toys == [("one", 5), ("two", 5), ("one", 6), ("two", 6)]
    assert "one: mean 5.5" in report.parts
    assert "Seeds 5 to 6, commit" in report.parts[-1]
    assert not report.merged  # fewer draws than the study has by default
    ran.run(Request(out=tmp_path, simulations=3, seed=5), Clock())
    assert toys[4:] == [("one", 7), ("two", 7)]
    ran.run(Request(out=tmp_path, simulations=2, seed=5, fresh=True), Clock())
    assert len(toys) == 10


def test_cases_of_other_runs_are_kept_with_their_commit(toys, monkeypatch, tmp_path):
    monkeypatch.setattr(published_coverage, "results_folder", lambda: tmp_path)
    ran = coverage_study.CoverageStudy("toy")
    monkeypatch.setattr(coverage_study, "commit", lambda: "first")
    whole, _ = ran.run(Request(out=tmp_path), Clock())
    assert whole.merged
    about = {"date": "", "seconds": 0.0}
    (tmp_path / published_coverage.FILE).write_text(whole.as_json(about))
    monkeypatch.setattr(coverage_study, "commit", lambda: "second")
    again, complete = ran.run(Request(out=tmp_path, designs=("two",), fresh=True), Clock())
    assert complete
    assert again.merged
    assert [(own["case"], own["commit"]) for own in again.records] == [
        ("one", "first"),
        ("two", "second"),
    ]
    assert "one: mean 1001.0" in again.parts
    assert "Seeds 1000 to 1002, commit first: one." in again.parts[-1]


def test_a_draw_that_was_cut_short_is_made_again(toys, tmp_path):
    path = coverage_study.store_file("toy", tmp_path)
    path.write_text('{"section": "toy", "case": "one", "seed": 5, "x"')
    coverage_study.CoverageStudy("toy").run(Request(out=tmp_path, simulations=2, seed=5), Clock())
    assert ("one", 5) in toys


def test_a_draw_of_units_has_the_same_units_and_another_sample():
    first, second = (unit_draws.Sample.of("confounded", 50, seed) for seed in (1, 2))
    np.testing.assert_array_equal(first.units, second.units)
    assert first.data.population.mean(np.ones((1, 1)), first.units[:1]) == (
        second.data.population.mean(np.ones((1, 1)), first.units[:1])
    )
    assert not np.array_equal(first.X, second.X)
    truth = first.truth(np.array([5.0, 7.0]), 5.0)
    assert not truth[:, 0].any()


def test_summaries_of_normal_errors_are_those_of_their_law():
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(400):
        miss = 0.5 + rng.normal(size=50)
        draws.append(
            {
                "miss": miss.tolist(),
                "error": [2.0] * 50,
                "covered": (np.abs(miss) < 1.96).astype(int).tolist(),
                "width": 3.92,
                "together": 0.5,
            }
        )
    found = unit_draws.summarised(draws)
    # P(|N(.5, 1)| < 1.96) = .921; 20,000 errors have a standard error of .002.
    assert found["coverage"] == pytest.approx(0.921, abs=0.01)
    assert found["bias"] == pytest.approx(0.5, abs=0.03)
    assert found["error_ratio"] == pytest.approx(2.0, abs=0.05)
    assert found["deviation"] == pytest.approx(1.0, abs=0.03)
    assert found["worst_tenth"] < found["coverage"]
    assert found["together"] == 0.5


def record(**numbers):
    about = {"row": "doseforest", "design": "randomised", "n": 8000, "baseline": "interior"}
    good = {"coverage": 0.95, "worst_tenth": 0.9, "error_ratio": 1.0, "together": 0.95}
    return about | good | numbers


@pytest.mark.parametrize(
    ("numbers", "failing"),
    [
        ({}, 0),
        ({"coverage": 0.91}, 1),
        ({"coverage": 0.91, "baseline": "edge"}, 0),
        ({"coverage": 0.98, "baseline": "edge"}, 1),
        ({"worst_tenth": 0.84}, 1),
        ({"error_ratio": 1.3}, 1),
        ({"error_ratio": 0.85}, 1),
        ({"together": 0.89}, 1),
        ({"together": 0.89, "n": 2000}, 0),
        ({"coverage": 0.5, "row": "econml"}, 0),
    ],
)
def test_the_bars_of_units(numbers, failing):
    said = coverage_of_units.verdicts([record(**numbers)])
    assert [verdict.holds for verdict in said].count(False) == failing


def test_the_bars_of_shapes_and_of_positivity():
    flat = {"case": "increasing 1000", "flat": 0.08, "reversed": 0.95}
    assert [verdict.holds for verdict in coverage_of_shapes.verdicts([flat])] == [False, True]
    silent = {"design": "polynomial", "reported": 0.9}
    assert not coverage_and_positivity.verdicts([silent])[0].holds


def test_a_draw_of_units_is_measured(monkeypatch):
    monkeypatch.setattr(growing_bags, "N_BAGS", 10)
    monkeypatch.setattr(growing_bags, "BAG_SIZE", 3)
    cheap = partial(unit_draws.GeneralizedCausalForest, outcome_model=LinearRegression())
    monkeypatch.setattr(unit_draws, "GeneralizedCausalForest", cheap)
    case = "linear 150 doseforest"
    question = unit_draws.Question((-0.5, 0.5), {"interior": 0.0, "edge": 1.0})
    monkeypatch.setattr(coverage_of_units, "WAVES", question)
    draws = [{"case": case, **coverage_of_units.measure(case, seed)} for seed in (0, 1)]
    found = coverage_of_units.summary(draws)
    assert [own["baseline"] for own in found] == ["interior", "edge"]
    assert found[0]["draws"] == 2
    text = coverage_of_units.parts(found)[1]
    assert "doseforest" in text
    assert len(text.splitlines()) == 4
    # So few rows say little, but an interval that misses most effects would be a mistake.
    assert found[0]["coverage"] > 0.5


def test_the_command_names_its_sections_and_refuses_others():
    printed = CliRunner().invoke(app, ["bench", "coverage", "--sections", "nothing"])
    assert printed.exit_code == 2
    assert "is not one of units, average, changes, positivity, shape" in " ".join(
        printed.output.replace("│", " ").split()
    )
    assert study_registry.STUDIES["coverage"].about.startswith("whether intervals cover")
