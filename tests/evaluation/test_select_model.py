"""Selection of models: honest splits, winners, refusals; tables of scores; pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.baselines import AverageCurve, ZeroEffect
from doseforest.evaluation import (
    mean_of_rows,
    qini_curve,
    qini_table,
    randomised_scores,
    robust_scores,
    select_model,
)
from doseforest.evaluation.candidates import split_parts
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.evaluation.selection_metrics import METRICS
from doseforest.evaluation.verdicts import decide
from doseforest.nuisance.cross_fit import draw_folds

mpl.use("Agg")


class KnownEffect(BaseEstimator):
    """Effects x w per unit of dose; remembers the rows of its fit."""

    def __init__(self, weights=(1.0, 0.0)):
        self.weights = weights

    def fit(self, X, y, treatment, groups=None):
        self.rows_ = len(X)
        self.groups_ = groups
        self.ids_ = set(np.asarray(X)[:, 2].astype(int).tolist())
        return self

    def effect(self, X, dose, baseline):
        return np.asarray(X)[:, :2] @ np.array(self.weights) * (dose - baseline)


def experiment(n=3000, seed=0, noise=1.0):
    """Effects x1 per unit of dose; the third column is the row's number."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), np.arange(n)])
    treatment = rng.integers(0, 3, n).astype(float)
    y = X[:, 0] * treatment + X[:, 1] + noise * rng.normal(size=n)
    return X, y, treatment


CANDIDATES = {"right": KnownEffect(), "wrong": KnownEffect((0.0, 1.0)), "none": ZeroEffect()}
RANDOM = partial(select_model, scores="randomised")


@pytest.mark.parametrize("metric", ["qini", "budgeted_qini", "policy_value"])
def test_the_better_model_wins_by_every_metric(metric):
    found = RANDOM(CANDIDATES, *experiment(), metric=metric, cost=[0.0, 0.1, 0.3])
    assert found.winner == found.best == found.ranking[0] == "right"
    assert found.tied == ()
    assert "'right' wins on 750 rows" in found.reason
    assert found.model.rows_ == 3000  # fitted again, on all rows
    assert found.models["right"].rows_ == 1500
    assert found.test.value > 0
    assert "right" in str(found).splitlines()[1]


def test_the_r_risk_selects_too():
    right = AverageCurve(lambda doses: 2.0 * doses)
    rng = np.random.default_rng(1)
    X, dose = rng.normal(size=(400, 2)), rng.uniform(0, 3, 400)
    y = 2 * dose + X[:, 0] + rng.normal(size=400)
    candidates = {"line": lambda places: right, "none": ZeroEffect()}
    found = select_model(candidates, X, y, dose, metric="r_risk", doses=[1.0, 2.0])
    assert found.winner == "line"
    assert found.model is right


def test_equally_good_models_are_not_told_apart():
    X, y, treatment = experiment(seed=2)
    twins = {"one": KnownEffect((1.0, 0.3)), "other": KnownEffect((1.0, -0.3))}
    found = RANDOM(twins, X, y, treatment)
    assert found.winner is None
    assert found.model is None
    assert set(found.tied) == {"one", "other"}
    assert "Nobody is declared: 750 rows cannot tell the best" in found.reason
    assert found.reason in str(found)


def test_nobody_wins_where_nobody_beats_chance():
    rng = np.random.default_rng(4)
    X, y, treatment = experiment(seed=4)
    found = RANDOM(CANDIDATES, X, rng.normal(size=len(y)), treatment)
    assert found.winner is None
    assert "not beyond chance" in found.reason


def test_false_winners_are_as_rare_as_asked_for():
    # Two models equally good, a third far behind, where the rule has its whole level: 5 % of draws
    # declare one; 400 draws, so 2.5 points are more than two standard deviations. One-sided
    # comparisons would declare 10 %.
    declared = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=400)
        treatment = rng.integers(0, 2, 400).astype(float)
        y = x * treatment + rng.normal(size=400)
        estimates = {
            name: qini_curve(y, treatment, sign * x + rng.normal(size=400), dose=1).estimate
            for name, sign in {"a": 1, "b": 1, "behind": -1}.items()
        }
        declared += decide(estimates, METRICS["qini"], 0.05, 400).winner is not None
    assert 0.025 * 400 <= declared <= 0.075 * 400


def test_parts_of_a_split_share_no_row_and_no_group():
    X, y, treatment = experiment(600, seed=4)
    groups = np.arange(600) // 3
    found = RANDOM(
        {"right": KnownEffect()}, X, y, treatment, groups=groups, refit=False, test_size=0.2
    )
    seen = {row // 3 for row in found.model.ids_}
    judged = np.flatnonzero(found.estimates["right"].influence != 0)
    told = set(range(200)) - seen - set((judged // 3).tolist())
    assert seen.isdisjoint((judged // 3).tolist())
    assert len(seen) == 110  # 55 % of 200 groups: 25 % choose, 20 % tell
    assert len(told) == 40
    assert found.model.groups_ is not None  # whoever takes groups gets them
    parts = split_parts(np.arange(100) // 2, (0.5, 0.5), seed=0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(100))


def test_cross_validation_judges_every_row_by_models_that_have_not_seen_it():
    X, y, treatment = experiment(900, seed=5)
    found = RANDOM(CANDIDATES, X, y, treatment, cv=3)
    assert found.winner == "right"
    assert found.test is None
    assert found.models == {}
    assert found.model.rows_ == 900
    assert (found.estimates["right"].influence != 0).mean() > 0.99
    whole = qini_table({"right": KnownEffect().fit(X, y, treatment)}, X, y, treatment)
    # The mean over three folds is about the score on all rows at once.
    error = whole.mean("right").standard_error
    assert abs(found.estimates["right"].value - whole.mean("right").value) < error
    assert 0.8 < found.estimates["right"].standard_error / error < 1.25


def test_jobs_never_change_the_result():
    data = experiment(400, seed=6)  # two processes have to start: most of this file's time
    one, two = (RANDOM(CANDIDATES, *data, n_jobs=jobs) for jobs in (1, 2))
    assert str(one) == str(two)


def test_frames_and_functions_of_places_are_welcome():
    X, y, treatment = experiment(600, seed=7)
    frame = pd.DataFrame(X, columns=["a", "b", "id"])
    fitted = []

    def fit(places):
        fitted.append(len(places))
        return KnownEffect().fit(X[places], y[places], treatment[places])

    found = RANDOM({"right": fit, "wrong": KnownEffect((0.0, 1.0))}, frame, y, treatment)
    assert found.winner == "right"
    assert fitted == [300, 600]


def test_robust_scores_are_the_default_where_no_chances_are_known():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(900, 2))
    treatment = (rng.random(900) < 1 / (1 + np.exp(-2 * X[:, 1]))).astype(float)
    y = X[:, 0] * treatment + 3 * X[:, 1] + rng.normal(size=900)
    X = np.column_stack([X, np.arange(900)])
    options = {"score_options": {"outcome_model": LinearRegression()}}
    candidates = {"right": KnownEffect(), "confounded": KnownEffect((0.0, 1.0))}
    found = select_model(candidates, X, y, treatment, **options)
    assert found.winner == "right"


def test_a_forest_is_a_candidate_like_any_other():
    X, y, treatment = experiment(500, seed=9)
    forest = GeneralizedCausalForest(
        20, outcome_model=LinearRegression(), random_state=0, n_jobs=1, progress=False
    )
    found = RANDOM({"forest": forest, "none": ZeroEffect()}, X[:, :2], y, treatment, refit=False)
    assert found.winner == "forest"


def test_given_scores_of_all_rows_are_cut_like_the_rows():
    X, y, treatment = experiment(900, seed=10)
    scores = randomised_scores(y, treatment, [0, 1, 2])
    found = select_model(CANDIDATES, X, y, treatment, scores=scores)
    assert found.winner == "right"


BAD = {
    "no candidates": ({"candidates": {}}, "'candidates' parameter must be a dictionary"),
    "a number for a model": ({"candidates": {"a": 1}}, "'candidates' parameter must hold"),
    "another metric": ({"metric": "auc"}, "'metric' parameter must be one of qini"),
    "budgets without costs": ({"metric": "budgeted_qini"}, "'cost' parameter must be given"),
    "costs of other doses": ({"cost": [0.0, 1.0]}, "'cost' parameter must be finite numbers"),
    "other scores": ({"scores": "naive"}, "'scores' parameter must be one of randomised"),
    "all rows choose": ({"selection_size": 1.0}, "'selection_size' parameter must be a float"),
    "no rows to fit": ({"test_size": 0.75}, "'test_size' parameter must leave rows"),
    "one fold": ({"cv": 1}, "'cv' parameter must be an int of at least 2"),
    "a level of 0": ({"level": 0}, "'level' parameter must be a float"),
    "too few rows": ({"cv": 99}, "'X' parameter must have enough rows"),
    "only the baseline": ({"doses": [0.0]}, "'doses' parameter must hold a dose beside"),
    "chances of others": ({"propensity": [0.5]}, "'propensity' parameter must have one row"),
    "a seed below 0": ({"random_state": -1}, "'random_state' parameter"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    options, message = BAD[case]
    X, y, treatment = experiment(60)
    usual = {"candidates": CANDIDATES, "X": X, "y": y, "treatment": treatment}
    with pytest.raises(ValueError, match=message):
        RANDOM(**{**usual, **options})


def test_a_model_without_the_effect_api_is_refused():
    with pytest.raises(TypeError, match="'model' parameter must have a method dose_response"):
        predicted_curves(LinearRegression(), np.zeros((2, 1)), [0.0, 1.0])
    with pytest.raises(ValueError, match="must give a finite number for each row and dose"):
        predicted_curves(np.ones((2, 5)), np.zeros((2, 1)), [0.0, 1.0])


def test_a_table_has_the_curves_of_every_model_and_dose():
    X, y, treatment = experiment(2000, seed=11)
    models = {name: model.fit(X, y, treatment=treatment) for name, model in CANDIDATES.items()}
    table = qini_table(models, X, y, treatment)
    assert table.scores.shape == (3, 2)
    assert table.best == "right"
    alone = qini_curve(y, treatment, 2 * X[:, 0], dose=2)
    assert table.curves["right"][1].score == alone.score
    gap = table.mean_difference("right", "none")
    assert np.isclose(gap.value, table.scores[0].mean())  # "none" ranks nobody: 0
    assert gap.p_value < 1e-6
    text = str(table).splitlines()
    assert text[0].split() == ["Qini", "score", "1", "2", "mean"]
    assert text[4].startswith("right less wrong")
    with pytest.raises(ValueError, match="'model' parameter must be one of"):
        table.mean("left")
    with pytest.raises(ValueError, match="'models' parameter must be a dictionary"):
        qini_table({}, X, y, treatment)
    with pytest.raises(ValueError, match="'doses' parameter must be given"):
        qini_table(models, X, y, X[:, 0])


def test_pictures_draw_what_they_are_given():
    X, y, treatment = experiment(800, seed=12)
    models = {name: model.fit(X, y, treatment=treatment) for name, model in CANDIDATES.items()}
    table = qini_table(models, X, y, treatment)
    axes = table.plot()
    assert len(axes) == 2
    labels = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert labels[0].startswith("right 0.")
    assert labels[3] == "at random"
    assert axes[0].get_title(loc="left") == "1 against 0"
    curve = table.curves["right"][0]
    assert np.array_equal(curve.plot().lines[0].get_ydata(), curve.gain)
    bars = curve.uplift().plot().patches
    assert np.allclose([bar.get_height() for bar in bars], curve.uplift().values)
    dots = curve.uplift().plot_calibration().lines[0]
    assert np.allclose(dots.get_xdata(), curve.uplift().predicted)
    ax = RANDOM(CANDIDATES, X, y, treatment).plot()
    assert ax.get_yticklabels()[0].get_text() == "right"


def test_means_of_rows_know_groups():
    values = np.repeat([1.0, 2.0, 4.0], 5)
    together = mean_of_rows(values, clusters=np.repeat([0, 1, 2], 5))
    assert np.isclose(together.standard_error, np.std([1, 2, 4], ddof=1) / np.sqrt(3))


def test_the_examples_of_the_page_run():
    page = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
    names = {}
    for part in page.split("```python\n")[1:]:
        exec(part.split("```")[0], names)
    assert names["table"].scores.shape == (2, 5)
    assert names["found"].best in names["candidates"]


def test_a_single_group_declares_nobody():
    # Influences of one group add up to 0 but for rounding: an error of 1e-16 would be told.
    X, y, treatment = experiment(60)
    one = qini_curve(y, treatment, X[:, 0], dose=1, groups=np.zeros(60))
    assert one.standard_error == np.inf
    assert one.p_value == 1.0
    assert one.interval() == (-np.inf, np.inf)
    assert mean_of_rows(y, clusters=np.zeros(60, int)).p_value == 1.0
    assert mean_of_rows(y[:1]).p_value == 1.0


@pytest.mark.parametrize("split", [{"selection_size": 0.34, "test_size": 0.0}, {"cv": 3}])
def test_parts_that_judge_need_two_groups(split):
    X, y, treatment = experiment(90)
    with pytest.raises(ValueError, match="at least two where models are judged"):
        RANDOM(CANDIDATES, X, y, treatment, groups=np.arange(90) % 3, **split)
    found = RANDOM(CANDIDATES, X, y, treatment, groups=np.arange(90) % 6, cv=3)
    assert np.isfinite(found.estimates["right"].standard_error)


@pytest.mark.parametrize("metric", ["qini", "budgeted_qini", "policy_value"])
def test_given_scores_are_used_by_their_doses(metric):
    X, y, treatment = experiment(600, seed=13)
    options = {"metric": metric, "cost": [0.0, 0.1, 0.3], "refit": False}
    plain, turned = (
        select_model(
            CANDIDATES, X, y, treatment, scores=randomised_scores(y, treatment, doses), **options
        )
        for doses in ([0, 1, 2], [2, 0, 1])
    )
    assert str(plain) == str(turned)
    with pytest.raises(ValueError, match="'doses' parameter must be one of the doses that have"):
        select_model(
            CANDIDATES, X, y, treatment, scores=randomised_scores(y, treatment, [0, 1]), **options
        )


def test_known_chances_are_the_density_of_robust_scores():
    rng = np.random.default_rng(14)
    X, y, _ = experiment(400, seed=14)
    chances = rng.uniform(0.2, 0.8, 400)
    treatment = (rng.random(400) < chances).astype(float)
    own = np.where(treatment == 1, chances, 1 - chances)
    options = {"scores": "robust", "random_state": 0}
    linear = {"score_options": {"outcome_model": LinearRegression()}}
    usual = (CANDIDATES, X, y, treatment)
    told = select_model(*usual, propensity=own, cv=2, refit=False, **options, **linear)
    blind = select_model(*usual, cv=2, refit=False, **options, **linear)
    value = {"right": 0.0}
    for fold in [
        np.flatnonzero(draw_folds(np.arange(400), 2, 0) == own_fold) for own_fold in (0, 1)
    ]:
        scores = robust_scores(
            X[fold],
            y[fold],
            treatment[fold],
            [0.0, 1.0],
            density=own[fold],
            outcome_model=LinearRegression(),
        )
        table = qini_table({"right": KnownEffect()}, X[fold], None, treatment[fold], scores=scores)
        value["right"] += table.mean("right").value / 2
    assert np.isclose(told.estimates["right"].value, value["right"])
    assert told.estimates["right"].value != blind.estimates["right"].value


REFUSED = {
    "chances beside scores": ({"scores": "given", "propensity": np.full(60, 0.3)}, "'propensity'"),
    "chances for the R-risk": (
        {"metric": "r_risk", "propensity": np.full(60, 0.3)},
        "'propensity'",
    ),
    "scores for the R-risk": ({"metric": "r_risk", "scores": "given"}, "'scores'"),
    "options for the R-risk": ({"metric": "r_risk", "score_options": {"n_jobs": 1}}, "'score_opt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_ignored_is_refused(case):
    options, name = REFUSED[case]
    X, y, treatment = experiment(60)
    if options.get("scores") == "given":
        options = {**options, "scores": randomised_scores(y, treatment, [0, 1, 2])}
    with pytest.raises(ValueError, match=f"{name}.* parameter must be None"):
        select_model({"none": ZeroEffect()}, X, y, treatment, **options)


def test_the_r_risk_asks_for_curves_before_any_fit():
    X, y, treatment = experiment(60)
    with pytest.raises(ValueError, match="'candidates' parameter must hold models with a method "):
        select_model({"effects": KnownEffect()}, X, y, treatment, metric="r_risk")
    with pytest.raises(TypeError, match="'model' parameter must have a method dose_response"):
        select_model({"made": lambda places: KnownEffect()}, X, y, treatment, metric="r_risk")
