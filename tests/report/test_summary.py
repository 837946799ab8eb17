"""The summary: everything on one screen, and the numbers that methods give."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.doses.dose_values import Doses
from doseforest.report.model_summary import made_of

SECTIONS = (
    "Data",
    "Treatment",
    "Made of",
    "Outcome model",
    "Correction",
    "Effects",
    "Overlap",
    "Time",
)


def fit(dose, *, n=300, sample_weight=None, groups=None, y=None, **parameters):
    x = np.random.default_rng(1).normal(size=(n, 3))
    x[:20, 2] = np.nan
    outcome = x[:, 0] + dose * (1 + x[:, 1]) + np.random.default_rng(2).normal(size=n)
    settings = {"n_trees": 40, "outcome_model": Filled(), "density": "none", "n_jobs": 1}
    forest = GeneralizedCausalForest(**{**settings, "random_state": 0, **parameters})
    return forest.fit(
        pd.DataFrame(x, columns=["income", "age", "visits"]),
        outcome if y is None else y,
        treatment=dose,
        sample_weight=sample_weight,
        groups=groups,
    )


class Filled(LinearRegression):
    """Least squares with zeros for missing values."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.nan_to_num(X), y, sample_weight)

    def predict(self, X):
        return super().predict(np.nan_to_num(X))


@pytest.fixture(scope="module", name="uniform")
def _uniform():
    return fit(np.random.default_rng(0).uniform(0, 4, size=300), baseline=2.0)


def words(forest):
    return " ".join(str(forest.summary()).split())


def test_every_section_is_there_on_one_screen(uniform):
    text = str(uniform.summary())
    lines = text.splitlines()
    assert lines[0] == "GeneralizedCausalForest"
    for section in SECTIONS:
        assert sum(line.startswith(section) for line in lines) == 1
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 96
    assert repr(uniform.summary()) == text


def test_data_and_treatment_are_described(uniform):
    said = words(uniform)
    assert "300 rows, 3 features, 1 of them with missing values" in said
    assert "a quantity from 0.0" in said
    assert "baseline 2" in said
    assert "groups" not in said
    assert "weights 'none' worth 100% of the rows" in said


def test_average_effects_are_those_that_the_forest_gives(uniform):
    body = dict(uniform.summary().sections)["Effects"]
    last = body[-1].split()
    dose = uniform.doses_[-1]
    exact = uniform.average_effect(dose)
    assert float(last[0]) == pytest.approx(dose, rel=1e-3)
    assert float(last[1]) == pytest.approx(exact.value, rel=1e-2)
    assert float(last[2]) == pytest.approx(exact.standard_error, rel=6e-2)  # two digits
    quantiles = [float(value) for value in last[3:]]
    assert quantiles == sorted(quantiles)


def test_rounds_and_members_are_told(uniform):
    said = words(uniform)
    assert "orthogonal, round 1: strength" in said
    for share in sorted(uniform.rounds_[0]["shares"].values())[-1:]:
        assert f"{share:.2f}" in said
    (name,) = uniform.outcome_weights_
    assert f"{name} 1.00" in said
    for phase in uniform.seconds_:
        assert f"{phase} {uniform.seconds_[phase]:.1f} s" in said


def test_what_the_curves_are_made_of_is_said_in_plain_words():
    dose = np.random.default_rng(0).uniform(0, 4, size=300)
    members = fit(dose, baseline=2.0, outcome_model=["core", "trees", "process"])
    made = dict(members.summary().sections)["Made of"][0]
    kinds = {"core": "splines", "trees": "boosted trees", "process": "Gaussian processes"}
    for name, share in members.outcome_weights_.items():
        assert (f"{kinds[name]} ({share:.0%})" in made) == (share >= 0.05)
    assert ("forests added nothing" in made) == (
        not any(report["shares"] for report in members.rounds_)
    )


def test_members_of_the_user_go_by_their_names():
    members = {"trees of mine": 0.5, "core demand": 0.48, "other": 0.02}
    part = SimpleNamespace(
        rows=SimpleNamespace(n_rows=3),
        fitted=SimpleNamespace(added=SimpleNamespace(curves=lambda doses: np.zeros((1, 2)))),
    )
    text = made_of(members, (part,), Doses.of([0.0, 1.0]))
    assert text == "trees of mine (50%), core demand (48%); forests added nothing"


def test_what_forests_change_is_a_share_of_the_bend_of_the_outcome_models_curves(uniform):
    made = dict(uniform.summary().sections)["Made of"][0]
    share = float(made.split("changed ")[1].split("%")[0]) / 100
    doses = uniform.doses_[np.linspace(0, len(uniform.doses_) - 1, 9).astype(int)]
    frame = pd.DataFrame(
        np.random.default_rng(1).normal(size=(300, 3)), columns=["income", "age", "visits"]
    )
    both = uniform.dose_response(frame, doses)
    alone = uniform.outcome_model_.dose_response(frame, doses)
    bends = [each - each.mean(axis=1, keepdims=True) for each in (both - alone, alone)]
    ratio = np.sqrt((bends[0] ** 2).mean() / (bends[1] ** 2).mean())
    assert share == pytest.approx(ratio, rel=0.4)  # trees that have seen the rows


def test_no_correction_and_sure_of_nothing_are_told_apart():
    dose = np.random.default_rng(0).uniform(0, 4, size=300)
    assert "Correction none" in words(fit(dose, baseline=2.0, correction="none"))
    noise = np.random.default_rng(3).normal(size=300)
    unsure = fit(dose, baseline=2.0, y=noise)
    shrunk = [not report["shares"] for report in unsure.rounds_]
    assert words(unsure).count("nothing added") == sum(shrunk)


def test_levels_are_listed_with_their_shares():
    dose = np.arange(300) % 3 * 1.0
    said = words(fit(dose, correction="none"))
    assert "levels 0 (33%), 1 (33%), 2 (33%); baseline 0" in said


def test_point_masses_groups_and_weights_are_told():
    rng = np.random.default_rng(0)
    dose = np.where(rng.random(300) < 0.4, 0.0, rng.uniform(1, 4, size=300))
    forest = fit(
        dose,
        correction="none",
        sample_weight=rng.uniform(0.5, 1.5, size=300),
        groups=np.arange(300) // 3,
    )
    said = words(forest)
    assert "100 groups" in said
    assert "point masses at 0 (" in said
    assert "weights worth 2" in said  # of 300 rows, 277 or so


def test_problems_of_overlap_are_counted():
    rng = np.random.default_rng(0)
    x = np.random.default_rng(1).normal(size=(300, 3))
    dose = 3 * x[:, 0] + 0.2 * rng.normal(size=300)
    with pytest.warns(UserWarning, match="could have had"):
        forest = fit(dose, baseline=0.0, correction="none")
    n_messages = len(forest.overlap_report().messages)
    assert n_messages >= 2
    assert f"{n_messages} problems, see overlap_report()" in words(forest)


def test_halves_are_told_apart():
    dose = np.random.default_rng(0).uniform(0, 4, size=300)
    said = words(fit(dose, baseline=2.0, honesty="swap"))
    assert ", half 1: " in said
    assert ", half 2: " in said


def test_before_fit_there_is_nothing_to_sum_up():
    with pytest.raises(NotFittedError):
        GeneralizedCausalForest().summary()
