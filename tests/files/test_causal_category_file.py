"""Files of effect forests with categories: exact round trips, and nothing false that loads."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from causal_tables import Blind, Table, small
from doseforest import EffectForest, ForestFileError, load_forest
from doseforest.base.container import Container, read_container
from doseforest.estimator.corrections.stored_corrections import STORED_CORRECTIONS
from doseforest.estimator.effect_forest import CorrectedOutcome
from doseforest.estimator.training_rows import check_training
from doseforest.files import forest_file
from doseforest.nuisance.outcome.boosting import BoostingRecipe, fit_boosting
from doseforest.nuisance.outcome.encoded_models import EncodedFit, EncodedModel
from doseforest.results import DistilledForest
from recipes import recipe

DATA = Table(n=200, n_levels=30)
CORRECTIONS = ["orthogonal", "stabilized", "kernel", "none"]


def few_trees(X, dose, y, **ignored):
    """Members of a storable outcome model that takes no time to fit."""
    return {"trees": fit_boosting(X, dose, y, BoostingRecipe(8, 4, linear=True))}


def storable(model):
    """The model with small trees behind an encoder in place of the tests' regressor."""
    rows = check_training(DATA.frame, DATA.y, DATA.dose)
    fit = EncodedFit(few_trees, rows.category_counts())
    outcome = fit(rows.X, rows.dose.values, rows.y)["trees"]
    parts = tuple(CorrectedOutcome(outcome, part.correction) for part in model.parts)
    return replace(model, parts=parts)


@pytest.fixture(scope="module", name="models")
def _models():
    models = {}
    for correction in CORRECTIONS:
        settings = {"correction": recipe(correction, n_rounds=1, leaves=(5, 20))}
        forest = small(outcome_model=Blind(), density="gaussian", random_state=2, **settings)
        forest.fit(DATA.frame, DATA.y, treatment=DATA.dose)
        models[correction] = storable(forest.model_)
    models["distilled"] = forest.distill(n_trees=3, verbose=False)
    return models


@pytest.fixture(scope="module", name="files")
def _files(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for kind, model in models.items():
        model.save(folder / f"{kind}.dose")
    return folder


def queries():
    """Known labels, an unknown one, and none."""
    frame = Table(n=50, n_levels=40, seed=5).frame
    return pd.concat([frame, frame[:3].assign(city=[None, "nowhere", "level 001"])])


KINDS = [*CORRECTIONS, "distilled"]


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_forest_answers_to_the_last_bit_as_before(models, files, kind, memory_map):
    loaded = load_forest(files / f"{kind}.dose", memory_map=memory_map)
    assert isinstance(loaded, DistilledForest if kind == "distilled" else EffectForest)
    frame = queries()
    for own in (frame, frame[["income", "city", "age"]]):
        np.testing.assert_array_equal(loaded.dose_response(own), models[kind].dose_response(frame))
    known = loaded.forest if kind == "distilled" else loaded
    assert set(known.categories[1]) == {*DATA.labels} - {None}


def test_the_forests_in_question_split_on_categories(models):
    for kind in CORRECTIONS[:-1]:
        stored = STORED_CORRECTIONS[kind]
        forests = stored.forests(models[kind].parts[0].correction)
        assert sum(len(own.category_sets) for own in forests) > 0, kind


def test_what_is_saved_again_is_the_same_file(files, tmp_path):
    for kind in KINDS:
        load_forest(files / f"{kind}.dose").save(tmp_path / "again.dose")
        assert (tmp_path / "again.dose").read_bytes() == (files / f"{kind}.dose").read_bytes()


def test_serving_text_imports_nothing_that_fits(files):
    code = (
        "import sys, doseforest\n"
        "from doseforest.data.feature_table import ArrayTable\n"
        "import numpy as np\n"
        "X = ArrayTable(np.array([[0.0, 0.0, 1.0]]), None, categories={1: ('level 003',)})\n"
        f"print(doseforest.load_forest('{files}/kernel.dose').dose_response(X, 3.0).shape)\n"
        "print(sorted({'sklearn', 'lightgbm', 'pandas', 'narwhals'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(1, 1)", "[]"]


# --- what is not read ----------------------------------------------------------------------------


@pytest.fixture(name="load")
def _load(monkeypatch):
    """Load metadata and arrays as though a file with right checksums held them."""

    def load(metadata, arrays):
        found = Container(metadata, arrays, 1)
        monkeypatch.setattr(forest_file, "read_container", lambda path, **options: found)
        return load_forest("forged.dose")

    return load


def contents(path):
    container = read_container(path)
    arrays = {name: own.copy() for name, own in container.arrays.items()}
    return copy.deepcopy(container.metadata), arrays


ENCODER = "parts/0/outcome/encoder/1"
LABELS = sorted({*DATA.labels} - {None})


def described(metadata):
    """The description of the one encoded column."""
    return metadata["parts"][0]["outcome"]["encoder"][0]


def grown(metadata):
    return metadata["parts"][0]["correction"]["forest"]


FORGERIES = {
    "another feature": (lambda m, a: described(m).update(feature=0), "lacks the array"),
    "no feature": (lambda m, a: described(m).update(feature=3), "feature out of range"),
    "a true feature": (lambda m, a: described(m).update(feature=True), "feature out of range"),
    "more codes": (lambda m, a: described(m).update(n_codes=31), "not one number per code"),
    "as many codes as memory": (
        lambda m, a: described(m).update(n_codes=2**60),
        "n_codes out of range",
    ),
    "an indicator of no code": (
        lambda m, a: described(m).update(indicators=[99]),
        "indicators of codes that there are not",
    ),
    "a negative indicator": (
        lambda m, a: described(m).update(indicators=[-1]),
        "indicators of codes that there are not",
    ),
    "an indicator twice": (
        lambda m, a: described(m).update(indicators=[1, 1]),
        "indicators of codes that there are not",
    ),
    "indicators of truths": (
        lambda m, a: described(m).update(indicators=[True]),
        "indicators of codes that there are not",
    ),
    "an indicator more": (
        lambda m, a: described(m)["indicators"].append(30),
        "n_features out of range",
    ),
    "the column twice": (
        lambda m, a: m["parts"][0]["outcome"]["encoder"].append(described(m)),
        "feature out of range",
    ),
    "an empty encoder": (
        lambda m, a: m["parts"][0]["outcome"].update(encoder=[]),
        "empty encoder",
    ),
    "no encoder": (
        lambda m, a: m["parts"][0].update(outcome=m["parts"][0]["outcome"]["encoded"]),
        "outcome model of other features",
    ),
    "an encoder in an encoder": (
        lambda m, a: m["parts"][0]["outcome"].update(encoded=dict(m["parts"][0]["outcome"])),
        "not valid|out of range",
    ),
    "numbers that are not finite": (
        lambda m, a: a[ENCODER].__setitem__((3, 0), np.nan),
        "non-finite number",
    ),
    "numbers too large": (lambda m, a: a[ENCODER].__setitem__((3, 0), 1e200), "too large a number"),
    "numbers of too few codes": (
        lambda m, a: a.update({ENCODER: a[ENCODER][:-1]}),
        "not one number per code",
    ),
    "numbers of whole type": (
        lambda m, a: a.update({ENCODER: a[ENCODER].astype(np.int64)}),
        "wrong type or shape",
    ),
    "another width of numbers": (
        lambda m, a: a.update({ENCODER: a[ENCODER][:, :-1]}),
        "n_features out of range",
    ),
    "no labels": (lambda m, a: m.pop("categories"), "outcome model of other categories"),
    "a label less": (
        lambda m, a: m["categories"][0]["labels"].pop(),
        "outcome model of other categories",
    ),
    "labels of another feature": (
        lambda m, a: m["categories"][0].update(feature=2),
        "outcome model of other categories",
    ),
    "a label twice": (
        lambda m, a: m["categories"][0]["labels"].__setitem__(0, LABELS[1]),
        "has a label twice|neither",
    ),
    "a forest without categories": (
        lambda m, a: grown(m).pop("categories"),
        "categorical nodes|flags|other categories",
    ),
    "a forest of other labels": (
        lambda m, a: grown(m)["categories"][0]["labels"].reverse(),
        "forest of other categories",
    ),
    "a forest of fewer labels": (
        lambda m, a: grown(m)["categories"][0]["labels"].pop(),
        "bin that there is not|other categories",
    ),
    "a forest of text": (
        lambda m, a: grown(m)["categories"][0].update(labels=LABELS),
        "forest of other categories",
    ),
    "another split column": (
        lambda m, a: a.update(effect_columns=a["effect_columns"][:2]),
        "does not fit",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_file_is_refused(files, load, forgery):
    metadata, arrays = contents(files / "kernel.dose")
    load(metadata, arrays)
    forge, said = FORGERIES[forgery]
    forge(metadata, arrays)
    with pytest.raises(ForestFileError, match=said):
        load(metadata, arrays)


def test_categories_of_a_forest_without_any_are_refused(files, load):
    metadata, arrays = contents(files / "none.dose")
    assert isinstance(load(metadata, arrays).parts[0].outcome, EncodedModel)
    inner = metadata["parts"][0]["outcome"]["encoded"]
    metadata["parts"][0]["outcome"] = inner
    metadata["n_features"] = inner["n_features"]
    metadata["feature_names"] = None
    with pytest.raises(ForestFileError, match="outcome model of other categories"):
        load(metadata, arrays)
    del metadata["categories"]
    assert load(metadata, arrays).categories == {}
