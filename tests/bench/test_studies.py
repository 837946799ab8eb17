"""The machinery of `doseforest bench`: tasks, their store, reports; and the studies' arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.designs import DESIGNS
from bench.studies import adrf_figure, kept_results, readme, scaling, study_registry, table1
from bench.studies.measures import AVERAGE_DOSES
from bench.studies.provenance import CLONE
from bench.studies.report import Report, Verdict, grouped, ungrouped
from bench.studies.request import Request
from bench.studies.result_keys import source
from bench.studies.scores import Scores
from bench.studies.store import Store
from bench.studies.study_methods import EXACT_AVERAGE, METHODS, OURS, OUTCOME, ROWS, ZERO, state
from bench.studies.study_settings import FIRST_SEED, PUBLISHED
from bench.studies.study_workers import Clock, run_tasks
from bench.studies.tasks import Task, run_task
from doseforest.evaluation import effect_errors

RESULTS = CLONE / "bench" / "results"
CHEAP = [Task(method, "steps", 100, seed) for method in ("adrf", "zero") for seed in (0, 1)]


def record(row, design="polynomial", seed=0, n=1000, **numbers):
    return {"row": row, "design": design, "seed": seed, "n": n, "fit_seconds": 1.0, **numbers}


# Tasks and their store


def test_a_task_measures_what_effect_errors_says():
    (found,) = run_task(Task("zero", "steps", 100, 0))
    data = DESIGNS["steps"].draw(n=100, seed=0)
    zero = METHODS["zero"].fit(data, 0)[ZERO]
    assert found["rms"] == effect_errors(zero, data).rms
    assert found["row"] == ZERO


def test_new_units_are_not_the_training_units():
    (old,) = run_task(Task("zero", "steps", 100, 0))
    (new,) = run_task(Task("zero", "steps", 100, 0, measure="new_units"))
    assert new["rms"] != old["rms"]
    # Of one population: the sizes of effects agree within a tenth.
    assert new["rms"] == pytest.approx(old["rms"], rel=0.1)


def test_averages_end_at_the_highest_observed_dose():
    (found,) = run_task(Task("zero", "polynomial", 100, 0, measure="new_units_and_average"))
    highest = DESIGNS["polynomial"].draw(n=100, seed=0).support[1]
    assert len(found["average"]) == (highest >= AVERAGE_DOSES).sum()


def test_stored_results_are_found_again_until_something_changes(tmp_path, monkeypatch):
    store = Store(tmp_path)
    for task in CHEAP[:3]:
        store.add(run_task(task))
    assert list(store.find(CHEAP)) == CHEAP[:3]
    monkeypatch.setattr("bench.studies.store.state", lambda name, measure: "another")
    assert store.find(CHEAP) == {}


def test_results_of_other_data_do_not_count(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.add(run_task(CHEAP[0]))
    monkeypatch.setattr("bench.studies.store.fingerprint", lambda task: "another")
    assert store.find(CHEAP) == {}


def test_a_line_that_is_being_written_does_not_count(tmp_path):
    store = Store(tmp_path)
    store.add(run_task(CHEAP[0]))
    with (tmp_path / "adrf.jsonl").open("a") as file:
        file.write('{"method": "adrf", "desi')
    assert list(store.find(CHEAP)) == CHEAP[:1]
    store.add(run_task(CHEAP[1]))  # after a run that was killed in the middle of a line
    assert list(store.find(CHEAP)) == CHEAP[:2]


def test_a_run_that_was_cut_short_goes_on(tmp_path, capsys):
    store = Store(tmp_path)
    store.add(run_task(CHEAP[0]))
    records, failed = run_tasks(CHEAP, store, 1, Clock(verbose=True))
    assert not failed
    assert [(own["row"], own["seed"]) for own in records] == [
        (METHODS[task.method].row, task.seed) for task in CHEAP
    ]
    printed = capsys.readouterr().err
    assert "1 of 4 fits are done already" in printed
    assert "3/3: steps, n = 100, seed" in printed


def test_a_failed_fit_is_told_and_does_not_stop_the_others(tmp_path, capsys):
    broken = Task("zero", "no such design", 100, 0)
    store = Store(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "find", lambda self, tasks: {})
        records, failed = run_tasks([broken, CHEAP[0]], store, 1, Clock())
    assert failed == [broken]
    assert len(records) == 1
    assert "no such design" in capsys.readouterr().err


def test_fits_are_not_done_under_another_name_when_sources_change():
    with pytest.raises(RuntimeError, match="changed since this run began"):
        run_task(CHEAP[0], expected="the state of an earlier version")


@pytest.mark.parametrize("name", list(METHODS))
def test_the_files_that_a_method_names_are_there(name):
    assert all(source(file).exists() for file in METHODS[name].files)
    if not METHODS[name].missing:  # an estimator that cannot be made has no settings
        assert len(state(name, "effects")) == 12


def test_results_are_of_another_state_when_a_setting_changes():
    ours = METHODS["doseforest"]

    def larger_leaves(data, seed):
        return ours.make(data, seed).set_params(correction__leaf_sizes=21)

    state.cache_clear()
    before = state("doseforest", "effects")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "doseforest", replace(ours, make=larger_leaves))
        state.cache_clear()
        assert state("doseforest", "effects") != before
    state.cache_clear()
    assert state("doseforest", "effects") == before


# Reports


def test_reports_are_written_for_people_and_programs(tmp_path):
    records = [record(OURS, seed=seed, rms=seed + 0.5, state="x", data="y") for seed in (3, 4)]
    report = Report("Title", ["words"], [Verdict(False, "claim", "measured 2")], records)
    text = report.write("name", [tmp_path], seconds=1.0)
    assert text == (tmp_path / "name.md").read_text()
    assert "- FAIL: claim; measured 2" in text
    assert "seeds 3 to 4." in text
    found = json.loads((tmp_path / "name.json").read_text())
    assert found["seeds"] == [3, 4]
    assert found["versions"]["numpy"] == np.__version__
    assert found["verdicts"] == [{"holds": False, "claim": "claim", "measured": "measured 2"}]
    (group,) = found["results"]
    assert group["rms"] == [3.5, 4.5]
    assert group["state"] == "x"
    assert "data" not in group


def test_groups_keep_designs_apart():
    groups = grouped([record(OURS, rms=1.0), record(OURS, "sinusoidal", rms=2.0)])
    assert [own["design"] for own in groups] == ["polynomial", "sinusoidal"]


# Table 1


def test_slow_methods_have_fewer_draws_unless_a_number_is_asked_for():
    def counts(request):
        tasks = table1.tasks(request)
        return {
            name: len({task.seed for task in tasks if task.method == name})
            for name in ("doseforest", "boosting", "kennedy", "econml")
        }

    own = {"doseforest": 100, "boosting": 100, "kennedy": 25, "econml": 12}
    assert counts(Request()) == own
    assert set(counts(Request(simulations=30)).values()) == {30}
    assert {task.design for task in table1.tasks(Request())} == set(table1.COLUMNS)
    assert min(task.seed for task in table1.tasks(Request())) == FIRST_SEED


def errors_of(ours, outcome, forest, others=None, jitter=0.01):
    rows = {OURS: ours, OUTCOME: outcome, **dict.fromkeys(table1.LITERATURE, others)}
    rows["random forest, leaf 5"] = forest
    rows = {row: mean for row, mean in rows.items() if mean is not None}
    return [
        record(row, design, seed, rms=mean + jitter * (seed - 2) * place, mae=0.74 * mean)
        for design in PUBLISHED
        for seed in range(5)
        for place, (row, mean) in enumerate(rows.items(), start=1)
    ]


def claims(records):
    scores = Scores(records)
    return {own.claim: own.holds for own in table1.verdicts(scores, list(PUBLISHED), 1000)}


def test_bars_of_table_1_hold_where_they_should():
    held = claims(errors_of(ours=0.9, outcome=1.0, forest=3.9, others=40.0))
    assert held["polynomial: rms at most 1.1 (aim 0.8)"]
    assert held["polynomial: at most a third of the published GCF in rms and mae"]
    assert held["polynomial: ahead of every baseline of the literature beyond the paired interval"]
    assert held["polynomial: not worse than its outcome model alone beyond noise"]
    assert held[
        "polynomial: rms and mae of random forest, leaf 5 within 10% of what others measured"
    ]
    assert held["polynomial: rms and mae of Kennedy within 10% of what others measured"] is False


def test_bars_of_table_1_say_nothing_about_rows_that_were_not_run():
    held = claims(errors_of(ours=0.9, outcome=1.0, forest=3.9))
    literature = "polynomial: ahead of every baseline of the literature beyond the paired interval"
    assert held[literature] is None
    assert held["polynomial: rms and mae of Kennedy within 10% of what others measured"] is None


def test_known_numbers_are_bars_at_their_number_of_units_alone():
    records = [{**own, "n": 200} for own in errors_of(ours=0.9, outcome=1.0, forest=3.9)]
    found = [own.claim for own in table1.verdicts(Scores(records), list(PUBLISHED), 200)]
    assert any("its outcome model alone" in claim for claim in found)
    assert not any("others measured" in claim or "published GCF" in claim for claim in found)


def test_draws_are_counted_by_who_is_ahead():
    records = [
        record(row, seed=seed, rms=rms)
        for row, errors in ((OURS, (1.0, 1.0, 1.0, 1.0)), (OUTCOME, (1.5, 1.25, 1.0, 0.75)))
        for seed, rms in enumerate(errors)
    ]
    cells = table1.draws_table(Scores(records), ["polynomial"], 1000).splitlines()[-1].split("|")
    assert [cell.strip() for cell in cells[1:-1]] == ["polynomial", "2", "1", "1", "100%"]


def test_bars_of_table_1_fail_where_they_should():
    held = claims(errors_of(ours=1.5, outcome=1.0, forest=1.4, others=40.0))
    failed = [claim for claim, holds in held.items() if holds is False]
    assert {claim.split(": ")[1] for claim in failed} >= {
        "rms at most 1.1 (aim 0.8)",
        "at most a third of the published GCF in rms and mae",
        "ahead of every baseline of the literature beyond the paired interval",
        "not worse than its outcome model alone beyond noise",
        "rms and mae of random forest, leaf 5 within 10% of what others measured",
    }


def test_the_table_marks_who_is_ahead():
    records = errors_of(ours=0.9, outcome=0.9, forest=3.9)
    text = table1.report(records, Request(designs=PUBLISHED)).parts[1]
    forest = next(line for line in text.splitlines() if "leaf 5" in line)
    assert forest.count("3.90") == forest.count("*") == 3
    assert "| 14.09 / 12.58" in text


@pytest.mark.parametrize("page", ["README.md", "docs/paper.md"])
def test_tables_of_pages_are_those_of_the_results(page):
    text = (CLONE / page).read_text(encoding="utf-8")
    assert readme.updated(page, text) == text
    results = json.loads((RESULTS / "table1.json").read_text(encoding="utf-8"))
    ours = next(own for own in results["results"] if own["row"] == OURS)
    assert f"{np.mean(ours['rms']):.3f}" in text


def test_a_page_has_a_place_for_each_table():
    with pytest.raises(ValueError, match="Got 0 instead"):
        readme.with_tables("no marks", "table1.json", ["table"])


# Several sittings


@pytest.mark.parametrize(
    "name", ["table1", "adrf", "ablation", "accuracy", "scaling", "coverage", "real"]
)
def test_published_records_can_be_published_again(name):
    published = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]
    assert grouped(ungrouped(published)) == published


def request(tmp_path, **parts):
    """A request of one process, whose fits are kept in the folder of a test."""
    return Request(processes=1, out=tmp_path / "work", **parts)


def toy_study(monkeypatch, tmp_path, commit, methods=("adrf",), n_draws=2):
    """Two data sets of Table 1 with quick methods alone; published under a commit."""
    monkeypatch.setattr(kept_results, "results_folder", lambda: tmp_path)
    monkeypatch.setattr(kept_results, "commit", lambda: commit)
    monkeypatch.setattr(study_registry, "commit", lambda: commit)

    def tasks(request):
        asked = request.designs or PUBLISHED[:2]
        return [
            Task(method, own, 100, seed, "new_units_and_average")
            for own in asked
            for method in request.methods or methods
            for seed in range(n_draws)
        ]

    own = study_registry.STUDIES["table1"]
    return replace(own, tasks=tasks, designs=PUBLISHED[:2])


def test_data_sets_that_a_run_leaves_out_are_kept_with_their_commit(monkeypatch, tmp_path):
    study = toy_study(monkeypatch, tmp_path, "first")
    whole, _ = study.run(request(tmp_path), Clock())
    assert whole.merged
    (tmp_path / "table1.json").write_text(whole.as_json({"commit": "first"}))
    study = toy_study(monkeypatch, tmp_path, "second")
    asked = request(tmp_path, designs=PUBLISHED[1:2])
    again, complete = study.run(asked, Clock())
    assert complete
    assert again.merged
    assert {(own["design"], own["commit"]) for own in again.records} == {
        (PUBLISHED[0], "first"),
        (PUBLISHED[1], "second"),
    }
    assert again.parts[-1] == (
        f"Reported at commit first: {PUBLISHED[0]}. At commit second: {PUBLISHED[1]}."
    )
    few, _ = study.run(replace(asked, simulations=2), Clock())
    assert not few.merged
    assert {own["design"] for own in few.records} == {PUBLISHED[1]}
    (tmp_path / "table1.json").write_text(again.as_json({"commit": "second"}))
    last, _ = study.run(request(tmp_path, designs=PUBLISHED[:1]), Clock())
    assert last.merged
    assert {own["commit"] for own in last.records} == {"second"}


def test_more_draws_take_only_those_fits_that_are_not_published(monkeypatch, tmp_path):
    study = toy_study(monkeypatch, tmp_path, "first")
    whole, _ = study.run(request(tmp_path), Clock())
    report = json.loads(whole.as_json({"commit": "first"}))
    report["results"].append(report["results"][0] | {"method": "gone", "row": "gone"})
    (tmp_path / "table1.json").write_text(json.dumps(report))
    study = toy_study(monkeypatch, tmp_path, "second", n_draws=3)
    asked = study.tasks(Request())
    known = kept_results.published_fits("table1.json", asked)
    assert {task.seed for task in asked} - {task.seed for task in known} == {2}
    fitted = []
    monkeypatch.setattr(Store, "find", lambda self, tasks: {})
    monkeypatch.setattr(Store, "add", lambda self, records: fitted.append(records[0]["seed"]))
    more, complete = study.run(request(tmp_path), Clock())
    assert complete
    assert fitted == [2, 2]  # of both data sets
    seeds = [own["seed"] for own in more.records if own["row"] != "gone"]
    assert sorted(seeds) == [0, 0, 1, 1, 2, 2]
    monkeypatch.setattr("bench.studies.store.state", lambda name, measure: "another")
    assert not kept_results.published_fits("table1.json", asked)


def test_rows_that_a_run_leaves_out_are_kept_too(monkeypatch, tmp_path):
    methods = ("adrf", "zero")
    study = toy_study(monkeypatch, tmp_path, "first", methods)
    only_zero = request(tmp_path, methods=("zero",))
    alone, _ = study.run(only_zero, Clock())
    assert not alone.merged  # nothing is published yet: it would be a table of one row
    whole, _ = study.run(request(tmp_path), Clock())
    (tmp_path / "table1.json").write_text(whole.as_json({"commit": "first"}))
    study = toy_study(monkeypatch, tmp_path, "second", methods)
    again, complete = study.run(request(tmp_path, methods=("adrf",)), Clock())
    assert complete
    assert again.merged
    assert [own["row"] for own in again.records] == [own["row"] for own in whole.records]
    assert {(own["row"], own["commit"]) for own in again.records} == {
        ("ADRF only", "second"),
        ("zero", "first"),
    }
    names = ", ".join(PUBLISHED[:2])
    assert again.parts[-1] == (
        f"Reported at commit second: {names} (other rows). At commit first: {names} (zero)."
    )
    monkeypatch.setattr(kept_results, "design_digest", lambda name: "another")
    changed, _ = study.run(only_zero, Clock())
    assert not changed.merged  # its other row is of designs that are no more


def test_data_sets_that_a_study_does_not_have_are_told_apart(monkeypatch, tmp_path):
    study = toy_study(monkeypatch, tmp_path, "first")
    whole, _ = study.run(request(tmp_path), Clock())
    (tmp_path / "table1.json").write_text(whole.as_json({"commit": "first"}))
    other, _ = study.run(request(tmp_path, designs=PUBLISHED[2:]), Clock())
    assert {own["design"] for own in other.records} == set(PUBLISHED[2:])
    assert not other.merged


def test_data_sets_whose_design_has_changed_are_not_kept(monkeypatch, tmp_path):
    study = toy_study(monkeypatch, tmp_path, "first")
    whole, _ = study.run(request(tmp_path), Clock())
    (tmp_path / "table1.json").write_text(whole.as_json({"commit": "first"}))
    monkeypatch.setattr(kept_results, "design_digest", lambda name: "another")
    again, _ = study.run(request(tmp_path, designs=PUBLISHED[1:2]), Clock())
    assert {own["design"] for own in again.records} == {PUBLISHED[1]}
    assert not again.merged  # it would leave a column empty


def test_panels_of_the_published_figure_stay_as_they_are(tmp_path):
    exact = adrf_figure.truth("sinusoidal", AVERAGE_DOSES)
    drawn = [
        record(OURS, "sinusoidal", seed, commit="first", average=(exact + seed).tolist())
        for seed in range(3)
    ]
    first = adrf_figure.report(drawn, Request(designs=("sinusoidal",)))
    stored = json.loads(first.as_json({"commit": "first"}))["results"]
    again = adrf_figure.report(ungrouped(stored), Request(designs=("sinusoidal",)))
    assert again.parts == first.parts
    assert again.records == first.records


# Scaling


def test_slopes_are_those_of_power_laws_and_compared_at_the_same_sizes():
    records = [
        record(row, "confounded", seed, n, rms=(1 + seed) * n**power, sup=1.0)
        for row, power, sizes in ((OURS, -0.4, (500, 1000, 5000)), (ZERO, -0.1, (500, 1000)))
        for n in sizes
        for seed in range(3)
    ]
    scores = Scores(records)
    found = scaling.slopes(scores, "confounded", OURS)
    assert list(found) == [0, 1, 2]
    np.testing.assert_allclose(list(found.values()), -0.4)
    verdict = scaling.as_steep(scores, "confounded", ZERO)
    assert verdict.holds
    assert "-0.400, -0.100; difference -0.300" in verdict.measured
    assert scaling.as_steep(scores, "confounded", EXACT_AVERAGE).holds is None


def test_sizes_that_were_asked_for_are_in_the_table():
    records = [record(OURS, "steps", seed, 3000, rms=1.0, sup=2.0) for seed in range(2)]
    text = "\n".join(scaling.report(records, Request(designs=("steps",), n=3000)).parts)
    assert "3,000" in text


# The figure of average curves


def test_the_exact_average_has_no_error_in_the_figure(tmp_path):
    exact = adrf_figure.truth("sinusoidal", AVERAGE_DOSES)
    records = [
        record(OURS, "sinusoidal", seed, average=(exact + 0.5 * (seed - 1)).tolist())
        for seed in range(3)
    ]
    report = adrf_figure.report(records, Request(designs=("sinusoidal",)))
    assert f"| {OURS} |     3 |             0.000 |             0.950 |" in report.parts[-1]
    assert report.records[0]["seeds"] == [0, 1, 2]
    report.write("adrf", [tmp_path], 0.0)
    assert (tmp_path / "adrf.png").read_bytes().startswith(b"\x89PNG")


def test_the_truth_of_the_figure_is_the_average_of_many_units():
    data = DESIGNS["exponential"].draw(n=200, seed=0)
    units = data.draw_units(200_000, seed=1)
    doses = np.array([2.0, 10.0, 18.0])
    level = (units @ data.population.outcome_weights).mean()
    average = data.mean(doses, units).mean(axis=0) - level
    # 0.2 (x1^2 + x4) t has standard deviation .35 t: .014 at dose 18 over these units.
    np.testing.assert_allclose(average, adrf_figure.truth("exponential", doses), atol=0.06)


def test_names_of_rows_are_told_apart():
    names = [row for method in METHODS.values() for row in method.rows]
    assert len(names) == len(set(names))
    assert set(ROWS) <= set(names)


# The command


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A part of a study in a folder of the test's own; published reports are in another."""
    monkeypatch.setattr(study_registry, "results_folder", lambda: tmp_path / "results")
    monkeypatch.setattr(kept_results, "results_folder", lambda: tmp_path / "results")
    about = {"designs": ("steps",), "simulations": 2, "processes": 1}
    return Request(methods=("zero",), **about, out=tmp_path / "work")


def test_a_study_writes_where_it_is_told_and_publishes_nothing_by_itself(asked, tmp_path):
    text, complete = study_registry.run_study("accuracy", asked)
    assert complete
    assert (asked.out / "accuracy.md").read_text() == text
    assert not (tmp_path / "results").exists()


def test_a_part_of_a_study_is_not_published(asked, tmp_path, capsys):
    _, complete = study_registry.run_study("accuracy", replace(asked, publish=True))
    assert not complete
    assert not (tmp_path / "results").exists()
    assert "not published" in capsys.readouterr().err


def test_a_whole_study_is_published_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(study_registry, "results_folder", lambda: tmp_path / "results")
    whole = Report("Whole", ["words"], [], [record(OURS, rms=1.0)])
    toy = study_registry.Measurement("toy", lambda request, clock: whole, ())
    monkeypatch.setitem(study_registry.STUDIES, "toy", toy)
    own = tmp_path / "work"
    study_registry.run_study("toy", Request(out=own))
    assert not (tmp_path / "results").exists()
    study_registry.run_study("toy", Request(out=own, publish=True))
    assert (tmp_path / "results" / "toy.md").read_text() == (own / "toy.md").read_text()


def test_methods_whose_packages_are_absent_are_left_out_and_named(asked, monkeypatch, capsys):
    monkeypatch.setattr("bench.studies.study_methods.installed", lambda name: "not installed")
    _, complete = study_registry.run_study("accuracy", replace(asked, methods=("econml", "zero")))
    assert not complete
    assert "pip install 'doseforest[baselines]'" in capsys.readouterr().err


def test_numbers_go_where_they_are_asked_for(asked, tmp_path):
    target = Path(tmp_path) / "deep" / "numbers.json"
    study_registry.run_study("accuracy", asked, target)
    assert json.loads(target.read_text())["title"] == "Accuracy"
    assert (asked.out / "accuracy.json").read_text() == target.read_text()
