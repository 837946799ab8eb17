"""Life among scikit-learn's tools: routing, searches, parameters, copies, names of features."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from doseforest import GeneralizedCausalForest
from doseforest.corrections import Orthogonal

N_ROWS = 160
NAMES = ["age", "spend", "visits"]
CURE = r"sklearn\.set_config\(enable_metadata_routing=True\)"


def draw(n=N_ROWS):
    rng = np.random.default_rng(0)
    x, dose = rng.normal(size=(n, 3)), rng.uniform(0, 3, size=n)
    y = x[:, 0] + dose * (1 + x[:, 1]) + 0.1 * rng.normal(size=n)
    return x, y, dose


def plain(**changed):
    """The outcome model alone: what is tested here is what reaches it."""
    settings = {"correction": "none", "outcome_model": Ridge(), "baseline": 1.0, "random_state": 0}
    return GeneralizedCausalForest(**{**settings, **changed})


def corrected(**changed):
    settings = {
        "n_trees": 4,
        "correction": Orthogonal(n_rounds=1, leaf_sizes=10),
        "treatment_model": LinearRegression(),
    }
    return plain(**{**settings, **changed})


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def scaler():
    """Scaling that has said whether it wants weights: scikit-learn asks everyone who could."""
    with sklearn.config_context(enable_metadata_routing=True):
        return StandardScaler().set_fit_request(sample_weight=False)


class Recorder(GeneralizedCausalForest):
    """A forest that notes what reaches it; of the class, for searches clone."""

    notes = []

    def __init__(self, correction="none", outcome_model=None, baseline=1.0):
        super().__init__(correction=correction, outcome_model=outcome_model, baseline=baseline)

    def fit(self, X, y, *, treatment=None, sample_weight=None, groups=None):
        self.notes.append(("fit", len(X), treatment, sample_weight, groups))
        self.fitted_ = True
        return self

    def score(self, X, y, *, treatment=None, sample_weight=None, groups=None):
        self.notes.append(("score", len(X), treatment, sample_weight, groups))
        return 0.0


@pytest.fixture
def notes():
    Recorder.notes = []
    return Recorder.notes


# --- routing -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_the_treatment_on():
    x, y, dose = draw()
    x[::7, 0] = np.nan
    pipeline = make_pipeline(SimpleImputer(), scaler(), plain())
    pipeline.fit(x, y, treatment=dose, sample_weight=np.ones(N_ROWS), groups=np.arange(N_ROWS))
    ready = pipeline[:-1].transform(x)
    direct = plain().fit(ready, y, treatment=dose)
    assert np.array_equal(pipeline[-1].effect(ready, 2.0), direct.effect(ready, 2.0))
    assert pipeline.score(x, y, treatment=dose) == direct.score(ready, y, treatment=dose)


@pytest.mark.usefixtures("routing")
def test_searches_hand_everything_to_fit_and_score_row_by_row(notes):
    x, y, dose = draw()
    weights, groups = 1 + np.arange(N_ROWS), np.arange(N_ROWS) // 4
    metadata = {"treatment": dose, "sample_weight": weights, "groups": groups}
    x[:, 0] = np.arange(N_ROWS)  # so that rows can be told
    for search in (
        GridSearchCV(Recorder(), {"baseline": [1.0, 2.0]}, cv=GroupKFold(2)),
        RandomizedSearchCV(Recorder(), {"baseline": [1.0]}, n_iter=1, cv=GroupKFold(2)),
        GridSearchCV(
            make_pipeline(scaler(), Recorder()),
            {"recorder__baseline": [1.0]},
            cv=GroupKFold(2),
        ),
    ):
        notes.clear()
        search.fit(x, y, **metadata)
        assert {note[0] for note in notes} == {"fit", "score"}
        for _, n_rows, own_dose, own_weights, own_groups in notes:
            rows = own_weights - 1
            assert len(rows) == n_rows
            assert np.array_equal(own_dose, dose[rows])
            assert np.array_equal(own_groups, groups[rows])
            # The splitter had the groups too: none is on both sides.
            assert n_rows == np.isin(groups, own_groups).sum()


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("run", [cross_validate, cross_val_score])
def test_cross_validation_hands_groups_to_the_splitter_and_to_fit(run, notes):
    x, y, dose = draw()
    groups = np.repeat(["a", "b", "c", "d"], N_ROWS // 4)
    run(Recorder(), x, y, params={"treatment": dose, "groups": groups}, cv=GroupKFold(4))
    fits = [note for note in notes if note[0] == "fit"]
    assert [len(np.unique(note[4])) for note in fits] == [3, 3, 3, 3]
    assert all(note[3] is None for note in notes)


@pytest.mark.usefixtures("routing")
def test_requests_can_be_changed(notes):
    x, y, dose = draw()
    weights = np.ones(N_ROWS)
    judge = Recorder().set_fit_request(sample_weight=False)
    routed = get_routing_for_object(judge)
    assert routed.fit.requests == {"treatment": True, "sample_weight": False, "groups": True}
    assert routed.score.requests == {"treatment": True, "sample_weight": True, "groups": True}
    pipeline = make_pipeline(scaler(), judge)
    search = GridSearchCV(pipeline, {"recorder__baseline": [1.0]}, cv=2)
    search.fit(x, y, treatment=dose, sample_weight=weights)
    assert all((note[3] is None) == (note[0] == "fit") for note in notes)
    renamed = Recorder().set_fit_request(treatment="discount").set_score_request(treatment="given")
    notes.clear()
    GridSearchCV(renamed, {"baseline": [1.0]}, cv=2).fit(x, y, discount=dose, given=dose)
    assert len(notes) == 5
    assert all(note[2] is not None for note in notes)


def ridge_search(n_jobs):
    x, y, dose = draw()
    search = GridSearchCV(plain(), {"outcome_model__alpha": [1.0, 1e6]}, cv=2, n_jobs=n_jobs)
    with sklearn.config_context(enable_metadata_routing=True):
        return search.fit(x, y, treatment=dose, groups=np.arange(N_ROWS) // 2)


@pytest.fixture(scope="module")
def searched():
    return ridge_search(n_jobs=1)


def test_real_searches_score_every_candidate(searched):
    assert searched.best_params_ == {"outcome_model__alpha": 1.0}  # 1e6 leaves no effect
    assert np.isfinite(searched.cv_results_["mean_test_score"]).all()


def test_processes_find_what_one_process_finds(searched):
    beside = ridge_search(n_jobs=2).cv_results_["mean_test_score"]
    assert np.array_equal(beside, searched.cv_results_["mean_test_score"])


def test_without_routing_every_way_but_one_names_the_cure():
    x, y, dose = draw()
    with pytest.raises(ValueError, match=CURE):
        plain().fit(x, y)
    pipeline = make_pipeline(StandardScaler(), plain())
    with pytest.raises(ValueError, match=CURE):
        pipeline.fit(x, y)
    # scikit-learn's own words, before the forest is asked; the way that they name works.
    with pytest.raises(ValueError, match=r"Pipeline.fit does not accept the treatment parameter"):
        pipeline.fit(x, y, treatment=dose)
    pipeline.fit(x, y, generalizedcausalforest__treatment=dose)
    with pytest.raises(ValueError, match=CURE):
        pipeline.score(x, y)
    with pytest.raises(ValueError, match=CURE):
        pipeline[-1].score(x, y)
    search = GridSearchCV(plain(), {"n_folds": [4]}, cv=2, error_score="raise")
    for given in ({}, {"treatment": dose}):  # legacy fit parameters reach fit, but never score
        with pytest.raises(ValueError, match=CURE):
            search.fit(x, y, **given)
    for run in (cross_validate, cross_val_score):
        with pytest.raises(ValueError, match=CURE):
            run(plain(), x, y, params={"treatment": dose}, cv=2, error_score="raise")


def test_without_routing_a_forgiving_search_warns_with_the_cure():
    x, y, dose = draw()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GridSearchCV(plain(), {"n_folds": [4]}, cv=2).fit(x, y, treatment=dose)
    assert any(re.search(CURE, str(warning.message)) for warning in caught)


# --- parameters ----------------------------------------------------------------------------------


def test_parameters_of_parameters_are_reached():
    forest = corrected()
    assert forest.get_params()["outcome_model__alpha"] == 1.0
    assert "outcome_model__alpha" not in forest.get_params(deep=False)
    forest.set_params(outcome_model__alpha=7.0, n_trees=5, treatment_model__fit_intercept=False)
    assert forest.outcome_model.alpha == 7.0
    assert forest.n_trees == 5
    assert not forest.treatment_model.fit_intercept
    with pytest.raises(ValueError, match="Invalid parameter 'n_tree' for estimator"):
        forest.set_params(n_tree=5)


def test_a_clone_has_equal_parameters_and_is_not_fitted():
    x, y, dose = draw()
    forest = corrected(doses=[0.5, 2.5], effect_features=[0, 1]).fit(x, y, treatment=dose)
    again = clone(forest)
    assert not hasattr(again, "model_")
    assert again.outcome_model is not forest.outcome_model
    assert repr(again) == repr(forest)
    assert again.get_params().keys() == forest.get_params().keys()


def test_the_text_of_a_forest_says_what_differs_from_the_defaults():
    assert repr(GeneralizedCausalForest()) == "GeneralizedCausalForest()"
    assert repr(GeneralizedCausalForest(n_trees=7, honesty="swap")) == (
        "GeneralizedCausalForest(honesty='swap', n_trees=7)"
    )
    assert "GeneralizedCausalForest" in GeneralizedCausalForest()._repr_html_()


def test_every_parameter_has_a_rule_and_words_in_the_docstring():
    parameters = set(inspect.signature(GeneralizedCausalForest).parameters)
    assert parameters == set(GeneralizedCausalForest._parameter_constraints)
    described = GeneralizedCausalForest.__doc__.split("Attributes")[0]
    heads = re.findall(r"^    (\w[\w, ]*)(?: :|$)", described, flags=re.MULTILINE)
    named = {name.strip() for head in heads for name in head.split(",")}
    assert parameters <= named


# --- copies --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    x, y, dose = draw()
    return corrected().fit(pd.DataFrame(x, columns=NAMES), y, treatment=dose)


def test_copies_answer_alike(fitted, tmp_path):
    x = draw(5)[0]
    joblib.dump(fitted, tmp_path / "forest.joblib")
    copies = (
        copy.deepcopy(fitted),
        copy.copy(fitted),
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "forest.joblib"),
        copy.deepcopy(fitted.model_),
        pickle.loads(pickle.dumps(fitted.model_)),
    )
    for same in copies:
        assert np.array_equal(same.dose_response(x), fitted.dose_response(x))
    assert copies[0].average_effect(2.0) == fitted.average_effect(2.0)


def test_fitting_again_forgets_the_first_fit():
    x, y, dose = draw()
    forest = corrected()
    first = forest.fit(x, y, treatment=dose).dose_response(x)
    forest.fit(x[:, :2], -y, treatment=dose)
    assert forest.n_features_in_ == 2
    assert np.array_equal(forest.fit(x, y, treatment=dose).dose_response(x), first)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_what_is_given_is_left_as_it_was(form):
    x, y, dose = draw()
    x[::9, 1] = np.nan
    weights, groups = np.linspace(1, 2, N_ROWS), np.arange(N_ROWS) // 2
    table = form(x)
    given = (table, y, dose, weights, groups)
    before = copy.deepcopy(given)
    forest = corrected(treatment_model=None, outcome_model=Filled())
    forest.fit(table, y, treatment=dose, sample_weight=weights, groups=groups)
    forest.dose_response(table)
    forest.score(table, y, treatment=dose, sample_weight=weights, groups=groups)
    for kept, own in zip(before, given, strict=True):
        np.testing.assert_array_equal(np.asarray(kept), np.asarray(own))
    for array in (x, y, dose, weights, groups):
        array.flags.writeable = False
    if form is np.asarray:
        corrected(outcome_model=Filled(), treatment_model=None).fit(
            x, y, treatment=dose, sample_weight=weights, groups=groups
        )


class Filled(RegressorMixin, BaseEstimator):
    """Least squares with zeros for missing values."""

    def fit(self, X, y, sample_weight=None):
        self.model_ = LinearRegression().fit(np.nan_to_num(X), y, sample_weight)
        return self

    def predict(self, X):
        return self.model_.predict(np.nan_to_num(X))


# --- names of features ---------------------------------------------------------------------------


def test_names_of_features_are_kept(fitted):
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.dtype == object
    assert list(fitted.feature_names_in_) == NAMES
    assert not hasattr(plain().fit(*draw()[:2], treatment=draw()[2]), "feature_names_in_")


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame])
def test_columns_are_found_by_name_in_any_order_among_others(fitted, form):
    x = draw(5)[0]
    expected = fitted.effect(x, 2.0)
    columns = dict(zip(NAMES, x.T, strict=True))
    shuffled = form({"id": np.arange(5), **{name: columns[name] for name in NAMES[::-1]}})
    assert np.array_equal(fitted.effect(shuffled, 2.0), expected)


def test_columns_that_are_missing_are_named_with_those_in_their_place(fitted):
    x = draw(5)[0]
    message = (
        r"feature names should match those that were passed during fit\. "
        r"Got a frame without \['spend'\] and with \['Spend'\], unseen at fit time, instead"
    )
    with pytest.raises(ValueError, match=message):
        fitted.effect(pd.DataFrame(x, columns=["age", "Spend", "visits"]), 2.0)
    with pytest.raises(ValueError, match=r"Got a frame without \['age', 'visits'\] instead"):
        fitted.dose_response(pd.DataFrame(x[:, 1:2], columns=["spend"]))


def test_columns_without_names_are_counted(fitted):
    x = draw(5)[0]
    with pytest.raises(ValueError, match=r"must have 3 features, as in fit: X has 4 features"):
        fitted.effect(np.column_stack([x, x[:, 0]]), 2.0)
