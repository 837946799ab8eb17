"""The forest file: exact round trips, and no damage that loads."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from doseforest import CurveForest, EffectForest, ForestFileError, load_forest
from doseforest.base.container import read_container, write_container
from doseforest.base.dtypes import CATEGORICAL, LEAF
from doseforest.engine import Forest, MeanCurve, RatioCurve, RidgeMoments
from doseforest.files import forest_file
from forests import assert_same_bits, wavy_data

STORED = Path(__file__).parents[1] / "stored_forests"


@pytest.fixture(scope="module", name="forest")
def _forest():
    x, y, doses = wavy_data(n=300, p=3, k=4)
    return CurveForest(3, min_node_size=20, random_state=0).fit(x, y, doses=doses).forest_


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("leaf_curve", [None, RatioCurve(0.25), RidgeMoments((0.0, 1.5))])
def test_a_round_trip_is_exact(tmp_path, memory_map, leaf_curve):
    x, y, doses = wavy_data(n=300, p=3, k=4)
    channels = np.hstack([y, y[:, :1]]) if isinstance(leaf_curve, RidgeMoments) else y
    fitted = CurveForest(4, leaf_curve=leaf_curve, random_state=0)
    fitted.fit(x, y, doses=doses, leaf_channels=channels)
    fitted.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose", memory_map=memory_map)
    assert_same_bits(fitted.forest_, loaded)
    assert loaded.plan == fitted.forest_.plan
    assert loaded.leaf_curve == fitted.forest_.leaf_curve
    assert loaded.doses == tuple(doses)
    np.testing.assert_array_equal(loaded.predict(x), fitted.predict(x))
    np.testing.assert_array_equal(loaded.predict_oob(x), fitted.predict_oob(x))
    np.testing.assert_array_equal(loaded.apply(x), fitted.apply(x))


def test_names_of_features_survive_and_order_the_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    x, y, _ = wavy_data(n=200, p=3, k=2)
    frame = pandas.DataFrame(x, columns=["fare", "hour", "distance"])
    fitted = CurveForest(4, random_state=0).fit(frame, y)
    fitted.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    assert loaded.feature_names == ("fare", "hour", "distance")
    expected = fitted.predict(frame)
    np.testing.assert_array_equal(loaded.predict(frame[["hour", "distance", "fare"]]), expected)
    with pytest.raises(ValueError, match=r"without \['hour'\]"):
        loaded.predict(frame[["distance", "fare"]])


def test_every_flipped_byte_is_an_error(forest, tmp_path):
    path = tmp_path / "model.dose"
    forest.save(path)
    original = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(len(original), size=400, replace=False):
        damaged = bytearray(original)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(ForestFileError, match=r"model\.dose"):
            load_forest(path)


def broken_node(field, number, value):
    def break_it(arrays):
        arrays["nodes"] = arrays["nodes"].copy()
        arrays["nodes"][field][number] = value

    return break_it


def set_value(name, place, value):
    def break_it(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return break_it


FORGERIES = {
    "a loop": broken_node("left", 0, 0),
    "a link out of the file": broken_node("left", 0, 10**6),
    "a negative link": broken_node("left", 0, -5),
    "a link into another tree": broken_node("left", 0, 3),
    "a leaf out of range": broken_node("left", -1, 10**6),
    "a NaN threshold": broken_node("threshold", 0, np.nan),
    "a feature out of range": broken_node("feature", 0, 3),
    "an unknown flag": broken_node("flags", 0, 64),
    "a leaf turned into a split": broken_node("flags", -1, 0),
    "roots out of order": set_value("roots", 1, 0),
    "a root beyond the nodes": set_value("roots", -1, 10**6),
    "roots whose difference overflows": set_value("roots", [1, 2], [2**63 - 1, -(2**63)]),
    "a NaN in a leaf": set_value("leaf_sums", (0, 0), np.nan),
    "an infinite weight": set_value("leaf_weights", 0, np.inf),
    "a negative weight": set_value("leaf_weights", 0, -1.0),
    "a NaN in the fallback": set_value("fallback", 0, np.nan),
    "a missing array": lambda arrays: arrays.pop("gains"),
    "an array of another type": lambda arrays: arrays.update(roots=arrays["roots"].astype("<i4")),
    "too few leaf sums": lambda arrays: arrays.update(leaf_sums=arrays["leaf_sums"][:-1]),
    "no trees": lambda arrays: arrays.update(roots=arrays["roots"][:0]),
    "too few gains": lambda arrays: arrays.update(gains=arrays["gains"][:-1]),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_forest_with_right_checksums_is_refused(forest, tmp_path, forgery):
    path = tmp_path / "model.dose"
    forest.save(path)
    container = read_container(path)
    arrays = dict(container.arrays)
    FORGERIES[forgery](arrays)
    write_container(path, container.metadata, arrays)
    with pytest.raises(ForestFileError, match=r"model\.dose"):
        load_forest(path)


@pytest.fixture(scope="module", name="categorical_forest")
def _categorical_forest():
    x, y, _ = wavy_data(n=300, p=3, k=4)
    rng = np.random.default_rng(1)
    x[:, 0] = rng.integers(0, 3, 300)
    x[:, 1] = rng.integers(0, 100, 300)
    y += 10 * x[:, :1] + (x[:, 1:2] > 40) + 3 * (x[:, 2:] > 0)
    fitted = CurveForest(3, min_node_size=10, random_state=0, categorical_features=[0, 1])
    forest = fitted.fit(x, y).forest_
    by_set = (forest.nodes["flags"] & CATEGORICAL) > 0
    # The first set is of feature 0; the forgeries below count on it.
    assert forest.nodes["feature"][by_set][0] == 0
    assert set(forest.nodes["feature"]) == {0, 1, 2}
    return forest


def first_node(kind, feature):
    """Number of the first node with a flag and a feature."""

    def number(nodes):
        return np.flatnonzero(((nodes["flags"] & kind) > 0) & (nodes["feature"] == feature))[0]

    return number


def broken_split(field, feature, value):
    """Break a field of the first categorical node on a feature."""

    def break_it(arrays):
        number = first_node(CATEGORICAL, feature)(arrays["nodes"])
        broken_node(field, number, value)(arrays)

    return break_it


def flag_a_number(arrays):
    nodes = arrays["nodes"]
    numeric = np.flatnonzero((nodes["flags"] & (LEAF | CATEGORICAL)) == 0)[0]
    broken_node("flags", numeric, CATEGORICAL)(arrays)


SET_FORGERIES = {
    "a set that there is not": broken_split("threshold", 0, 10**6),
    "a negative set": broken_split("threshold", 0, -1.0),
    "half a set": broken_split("threshold", 0, 0.5),
    "another node's set": broken_split("threshold", 0, 1.0),
    "a set of numbers": broken_split("feature", 0, 2),
    "a threshold on categories": broken_split("flags", 0, 0),
    "a number by a set": flag_a_number,
    "a leaf by a set": broken_node("flags", -1, LEAF | CATEGORICAL),
    "a bin beyond the labels": set_value("category_sets", (0, 0), 8),
    "a bin of the missing values": set_value("category_sets", (0, 3), 2**63),
    "no sets": lambda arrays: arrays.pop("category_sets"),
    "a set too few": lambda arrays: arrays.update(category_sets=arrays["category_sets"][:-1]),
    "a set too many": lambda arrays: arrays.update(
        category_sets=np.concatenate([arrays["category_sets"], arrays["category_sets"][:1]])
    ),
    "sets of three words": lambda arrays: arrays.update(
        category_sets=np.ascontiguousarray(arrays["category_sets"][:, :3])
    ),
    "sets of another type": lambda arrays: arrays.update(
        category_sets=arrays["category_sets"].astype("<i8")
    ),
}


@pytest.mark.parametrize("forgery", SET_FORGERIES)
def test_forged_sets_of_categories_are_refused(categorical_forest, tmp_path, forgery):
    path = tmp_path / "model.dose"
    categorical_forest.save(path)
    container = read_container(path)
    arrays = dict(container.arrays)
    SET_FORGERIES[forgery](arrays)
    write_container(path, container.metadata, arrays)
    with pytest.raises(ForestFileError, match=r"model\.dose"):
        load_forest(path)


def entries(first=(0, 1, 2), second=tuple(range(100)), features=(0, 1)):
    return [
        {"feature": features[0], "labels": list(first)},
        {"feature": features[1], "labels": list(second)},
    ]


@pytest.mark.parametrize(
    "categories",
    [
        None,
        [],
        {},
        "abc",
        [1, 2],
        [{"feature": 0}, {"feature": 1}],
        [{**entry, "code": 1} for entry in entries()],
        entries()[:1],
        entries()[::-1],
        entries(features=(0, 0)),
        entries(features=(-1, 1)),
        entries(features=(0, 3)),
        entries(features=(False, True)),
        [{"feature": 0, "labels": "abc"}, *entries()[1:]],
        entries(first=(0, 1, "2")),
        entries(first=(0, 1, 1)),
        entries(first=(0, 1, 1.0)),
        entries(first=(0, 1, None)),
        entries(first=(0, 1, True)),
        entries(first=(0, 1, [2])),
        entries(first=(0, 1, 2**60)),
        entries(first=(0, 1)),
    ],
)
def test_forged_categories_are_refused(categorical_forest, tmp_path, categories):
    path = tmp_path / "model.dose"
    categorical_forest.save(path)
    container = read_container(path)
    assert container.metadata["categories"][0] == {
        "feature": 0,
        "labels": list(categorical_forest.categories[0]),
    }
    write_container(path, {**container.metadata, "categories": categories}, container.arrays)
    with pytest.raises(ForestFileError, match=r"model\.dose"):
        load_forest(path)


def test_a_forest_whose_categories_were_dropped_is_refused(categorical_forest, tmp_path):
    path = tmp_path / "model.dose"
    categorical_forest.save(path)
    container = read_container(path)
    rest = {key: value for key, value in container.metadata.items() if key != "categories"}
    write_container(path, rest, container.arrays)
    with pytest.raises(ForestFileError, match="unknown node flags"):
        load_forest(path)


def test_a_forest_without_categories_is_stored_as_if_there_were_none(forest, tmp_path):
    forest.save(tmp_path / "model.dose")
    container = read_container(tmp_path / "model.dose")
    assert "categories" not in container.metadata
    assert "category_sets" not in container.arrays


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kind", "policy"),
        ("format_version", 99),
        ("format_version", "1"),
        ("n_features", 0),
        ("n_features", True),
        ("n_training_rows", -1),
        ("feature_names", ["a"]),
        ("doses", "many"),
        ("leaf_curve", {"kind": "os.system"}),
        ("leaf_curve", {"kind": "ridge", "penalty": [1.0]}),
        ("leaf_curve", {"kind": "mean", "code": 1}),
        ("plan", {"seed": -1}),
        ("plan", {"seed": 1, "bag_size": 0}),
        ("plan", {"seed": 1, "honesty": "never"}),
        ("plan", {"unknown": 1}),
        ("plan", None),
    ],
)
def test_a_description_out_of_range_is_refused(forest, tmp_path, key, value):
    path = tmp_path / "model.dose"
    forest.save(path)
    container = read_container(path)
    write_container(path, {**container.metadata, key: value}, container.arrays)
    with pytest.raises(ForestFileError, match=r"model\.dose"):
        load_forest(path)


def test_a_missing_description_is_refused(forest, tmp_path):
    path = tmp_path / "model.dose"
    forest.save(path)
    container = read_container(path)
    for key in container.metadata:
        rest = {name: value for name, value in container.metadata.items() if name != key}
        write_container(path, rest, container.arrays)
        with pytest.raises(ForestFileError, match=r"model\.dose"):
            load_forest(path)


def test_a_newer_format_asks_for_an_upgrade(forest, tmp_path, monkeypatch):
    path = tmp_path / "model.dose"
    monkeypatch.setattr(forest_file, "FORMAT_VERSION", forest_file.FORMAT_VERSION + 1)
    forest.save(path)
    monkeypatch.undo()
    with pytest.raises(ForestFileError, match="upgrade doseforest"):
        load_forest(path)


def test_saving_over_a_forest_that_is_in_use_keeps_the_old_pages(forest, tmp_path):
    path = tmp_path / "model.dose"
    forest.save(path)
    mapped = load_forest(path, memory_map=True)
    replace(forest, leaf_sums=forest.leaf_sums * 2).save(path)
    assert_same_bits(mapped, forest)


def test_loading_and_predicting_need_numpy_and_the_extension_only(forest, tmp_path):
    forest.save(tmp_path / "model.dose")
    code = (
        "import sys, doseforest\n"
        f"forest = doseforest.load_forest({str(tmp_path / 'model.dose')!r})\n"
        "forest.predict([[0.0, 1.0, 2.0]])\n"
        "heavy = {'scipy', 'sklearn', 'pandas', 'polars', 'narwhals', 'tqdm', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", sorted(STORED.glob("*.dose")), ids=lambda path: path.name)
def test_forests_of_every_released_format_stay_loadable(path):
    """Written by tests/stored_forests/write.py at each release that changes the format."""
    queries = np.load(path.with_suffix(".queries.npy"))
    expected = np.load(path.with_suffix(".curves.npy"))
    loaded = load_forest(path)
    if isinstance(loaded, EffectForest):
        # Matrix products are the linear algebra library's: their last bits differ by machine.
        np.testing.assert_allclose(loaded.dose_response(queries), expected, rtol=1e-9)
    else:
        answer = loaded.predict if isinstance(loaded, Forest) else loaded.dose_response
        np.testing.assert_array_equal(answer(queries), expected)


def test_a_stored_forest_in_bags_has_the_intervals_that_it_had():
    path = STORED / "effect_forest_bags_format_1.dose"
    units = np.load(path.with_suffix(".queries.npy"))
    found = load_forest(path).effect_interval(units, dose=2.0)
    np.testing.assert_allclose(found, np.load(path.with_suffix(".intervals.npy")), rtol=1e-9)


WRITTEN_AGAIN = sorted([*STORED.glob("format_*.dose"), *STORED.glob("categorical_*.dose")])


@pytest.mark.parametrize("path", WRITTEN_AGAIN, ids=lambda path: path.name)
def test_a_stored_forest_is_written_again_byte_for_byte(path, tmp_path):
    load_forest(path).save(tmp_path / "again.dose")
    assert (tmp_path / "again.dose").read_bytes() == path.read_bytes()


def test_a_form_of_curve_that_no_file_can_hold_is_refused_when_saved(forest, tmp_path):
    class Doubled(MeanCurve):
        pass

    with pytest.raises(TypeError, match="'leaf_curve' parameter must be one of"):
        replace(forest, leaf_curve=Doubled()).save(tmp_path / "model.dose")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", sorted(forest_file.READERS))
def test_there_is_a_stored_forest_of_each_kind_in_the_current_format(kind):
    start = "" if kind == "forest" else f"{kind}_"
    path = STORED / f"{start}format_{forest_file.FORMAT_VERSION}.dose"
    assert read_container(path).metadata["kind"] == kind
    assert path.stat().st_size < 100_000
