"""Stored outcome models: exact round trips, nothing twice, no damage that is read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import ForestFileError
from doseforest.base.container import read_container, write_container
from doseforest.nuisance.outcome.boosting import BoostingRecipe, fit_boosting
from doseforest.nuisance.outcome.outcome_models import BoostedCore, Stack
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.outcome.spline_model import CORE_ARRAYS
from doseforest.nuisance.outcome.stored_outcome_models import (
    read_outcome_model,
    store_outcome_model,
)
from doseforest.nuisance.outcome.tree_ensemble import TREE_ARRAYS


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 4)), rng.uniform(0, 10, size=n)
    x[:, 1] = rng.integers(0, 4, size=n)
    x[rng.random(x.shape) < 0.1] = np.nan
    first, second, third, _ = np.nan_to_num(x).T
    bends = 9 * np.maximum(third, 0) + 9 * (third > 1)
    bends += 3 * first**2 * (dose - 5)
    return x, dose, first * dose + second + bends + rng.normal(size=n)


def small_stack(binary=False):
    """Every kind of member, with a core and trees that several of them share."""
    x, dose, y = rows()
    y = (y > 1.0).astype(float) if binary else y
    core = fit_spline_core(x, dose, y, binary=binary)
    residual = fit_boosting(x, dose, y - core.predict(x, dose), BoostingRecipe(20, 8, linear=True))
    plain = BoostingRecipe(15, 8, linear=False)
    members = {
        "core": core,
        "boosted early": BoostedCore(core, residual.shorter(5)),
        "boosted": BoostedCore(core, residual),
        "a plain one": fit_boosting(x, dose, y, plain, binary=binary),
    }
    shares = [0.1, 0.2, 0.3, 0.4]
    return Stack(members, dict(zip(members, shares, strict=True)))


@pytest.fixture(scope="module", name="stack")
def _stack():
    return small_stack()


@pytest.fixture(name="stored")
def _stored(stack):
    """Metadata that has been JSON, and arrays that may be changed."""
    metadata, arrays = store_outcome_model(stack)
    return json.loads(json.dumps(metadata)), {name: own.copy() for name, own in arrays.items()}


def through_a_file(model, path):
    write_container(path, *store_outcome_model(model))
    container = read_container(path)
    return read_outcome_model(container.metadata, container.arrays)


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("binary", [False, True])
def test_a_stack_answers_to_the_last_bit_as_before_it_was_stored(tmp_path, binary):
    stack = small_stack(binary)
    read = through_a_file(stack, tmp_path / "model.dose")
    x, dose, _ = rows(n=500, seed=1)
    own = np.column_stack([dose, 2 * dose - 7])
    np.testing.assert_array_equal(read.predict(x, dose), stack.predict(x, dose))
    np.testing.assert_array_equal(read.curves(x, dose[:9]), stack.curves(x, dose[:9]))
    np.testing.assert_array_equal(read.curves(x, own), stack.curves(x, own))


def test_each_kind_of_model_is_stored_on_its_own(stack, tmp_path):
    x, dose, _ = rows(n=50, seed=1)
    for name, member in stack.members.items():
        read = through_a_file(member, tmp_path / "model.dose")
        assert type(read) is type(member), name
        np.testing.assert_array_equal(read.predict(x, dose), member.predict(x, dose))


def test_what_members_share_is_stored_once_and_shared_again(stack, stored):
    metadata, arrays = stored
    kinds = [description["kind"] for description in metadata["models"]]
    assert sorted(kinds) == sorted(
        ["spline_core", *["tree_ensemble"] * 3, *["boosted_core"] * 2, "stack"]
    )
    # One core, and trees twice: the early ones are the first of the others.
    assert sum(name.endswith("/knots") for name in arrays) == 1
    assert sum(name.endswith("/nodes") for name in arrays) == 2
    read = read_outcome_model(metadata, arrays)
    early, late = read.members["boosted early"], read.members["boosted"]
    assert early.core is late.core is read.members["core"]
    assert early.rest.nodes is late.rest.nodes
    assert (early.rest.n_trees, late.rest.n_trees) == (5, 20)
    assert list(read.weights) == list(stack.weights)


def test_models_of_other_prefixes_live_in_one_file(stack):
    (first, own), (second, others) = (
        store_outcome_model(stack.members["core"], prefix) for prefix in ("effect", "cost")
    )
    both = {**own, **others}
    assert len(both) == len(own) + len(others)
    x, dose, _ = rows(n=20)
    expected = stack.members["core"].predict(x, dose)
    for metadata in (first, second):
        np.testing.assert_array_equal(read_outcome_model(metadata, both).predict(x, dose), expected)


def test_reading_and_predicting_import_nothing_that_fits(stack, tmp_path):
    write_container(tmp_path / "model.dose", *store_outcome_model(stack))
    code = (
        "import sys, numpy as np\n"
        "from doseforest.nuisance.outcome.stored_outcome_models import read_outcome_model\n"
        "from doseforest.base.container import read_container\n"
        f"container = read_container({str(tmp_path / 'model.dose')!r})\n"
        "model = read_outcome_model(container.metadata, container.arrays)\n"
        "print(model.curves(np.zeros((2, 4)), np.array([1.0, 2.0, 3.0])).shape)\n"
        "heavy = {'lightgbm', 'sklearn', 'pandas', 'polars', 'narwhals', 'tqdm'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["(2, 3)", "[]"]


# --- what cannot be stored -----------------------------------------------------------------------


def test_a_foreign_regressor_is_refused_with_the_reason(stack):
    message = "outcome model cannot be saved: a file holds numbers, not code.*how a LinearRegr"
    with pytest.raises(TypeError, match=message):
        store_outcome_model(LinearRegression())
    members = {**stack.members, "core": LinearRegression()}
    with pytest.raises(TypeError, match=message):
        store_outcome_model(replace(stack, members=members))


def test_a_subclass_is_foreign_too(stack):
    class Doubled(Stack):
        pass

    with pytest.raises(TypeError, match="how a Doubled becomes"):
        store_outcome_model(Doubled(stack.members, stack.weights))


def test_members_of_different_covariates_are_refused(stack):
    x, dose, y = rows()
    other = fit_spline_core(x[:, :2], dose, y)
    with pytest.raises(ValueError, match=r"same number of covariates. Got \[2, 4\]"):
        store_outcome_model(replace(stack, members={**stack.members, "core": other}))


# --- what is not read ----------------------------------------------------------------------------


def described(metadata, kind):
    return next(own for own in metadata["models"] if own["kind"] == kind)


def array_of(metadata, arrays, kind, name):
    return arrays[described(metadata, kind)["arrays"][name]]


def set_value(kind, name, place, value):
    def damage(metadata, arrays):
        array_of(metadata, arrays, kind, name)[place] = value

    return damage


def set_array(kind, name, change):
    def damage(metadata, arrays):
        stored = described(metadata, kind)["arrays"][name]
        arrays[stored] = change(arrays[stored])

    return damage


def set_node(name, place, value):
    def damage(metadata, arrays):
        array_of(metadata, arrays, "tree_ensemble", "nodes")[name][place] = value

    return damage


def set_entry(kind, name, value):
    def damage(metadata, arrays):
        described(metadata, kind)[name] = value

    return damage


def set_member(place, value):
    def damage(metadata, arrays):
        described(metadata, "stack")["members"][0][place] = value

    return damage


def shorten(array):
    return array[:-1]


CORE, TREES = "spline_core", "tree_ensemble"

DAMAGE = {
    "a loop": set_node("left", 0, 0),
    "a link out of the file": set_node("left", 0, 10**6),
    "a negative link": set_node("left", 0, -5),
    "a link into another tree": set_node("left", 0, 3),
    "a leaf out of range": set_node("left", -1, 10**6),
    "a NaN threshold": set_node("threshold", 0, np.nan),
    "a split behind the dose": set_node("feature", 0, 5),
    "an unknown flag": set_node("flags", 0, 64),
    "a leaf turned into a split": set_node("flags", -1, 0),
    "a root beyond the nodes": set_value(TREES, "roots", -1, 10**6),
    "roots out of order": set_value(TREES, "roots", 1, 0),
    "terms before the first": set_value(TREES, "term_starts", 0, -1),
    "terms beyond the last": set_value(TREES, "term_starts", 1, 10**6),
    "terms after the end": set_value(TREES, "term_starts", -1, 10**6),
    "a term of the dose": set_value(TREES, "term_features", 0, 4),
    "a term of no covariate": set_value(TREES, "term_features", 0, -1),
    "more trees than there are": set_entry(TREES, "n_trees", 21),
    "no trees": set_entry(TREES, "n_trees", 0),
    "a true number of trees": set_entry(TREES, "n_trees", True),
    "an unknown link": set_entry(TREES, "link", "os.system"),
    "a power of no covariate": set_value(CORE, "power_feature", 0, 4),
    "a power of another degree": set_value(CORE, "power_degree", 0, 4),
    "fences out of order": set_value(CORE, "power_low", 0, 1e5),
    "fences out of reach": set_value(CORE, "power_high", 0, 1e9),
    "a hinge of no covariate": set_value(CORE, "hinge_feature", 0, 4),
    "a step of no covariate": set_value(CORE, "step_feature", 0, -1),
    "a gap of no covariate": set_value(CORE, "gappy", 0, 4),
    "a scale of zero": set_value(CORE, "scale", 0, 0.0),
    "an empty range of doses": set_value(CORE, "dose_range", 1, -1e9),
    "knots out of order": set_value(CORE, "knots", 1, 0.999),
    "knots that begin late": set_value(CORE, "knots", 0, 0.001),
    "neither binary nor not": set_entry(CORE, "binary", 1),
    "too many products": set_array(CORE, "term_coefficients", lambda own: np.tile(own, (1, 9))),
    "a core that is trees": lambda metadata, arrays: described(metadata, "boosted_core").update(
        core=described(metadata, "boosted_core")["trees"]
    ),
    "a part that comes later": set_entry("boosted_core", "trees", 99),
    "a part before the first": set_entry("boosted_core", "trees", -1),
    "an unknown kind": set_entry(TREES, "kind", "pickle"),
    "a kind that is no name": set_entry(TREES, "kind", []),
    "arrays that are no names": set_entry(TREES, "arrays", 3),
    "an array that is not there": set_entry(CORE, "arrays", {"median": "elsewhere"}),
    "a member without a name": set_member(0, 7),
    "two members of one name": set_member(0, "boosted"),
    "a member that is not there": set_member(1, 99),
    "a negative share": set_member(2, -0.1),
    "a NaN share": set_member(2, float("nan")),
    "shares that exceed 1": set_member(2, 0.2),
    "members that are no list": set_entry("stack", "members", 5),
    "a stack in a stack": lambda metadata, arrays: metadata["models"].append(
        {"kind": "stack", "members": [["inner", len(metadata["models"]) - 1, 1.0]]}
    ),
    "no models": lambda metadata, arrays: metadata.update(models=[]),
    "models that are no list": lambda metadata, arrays: metadata.update(models=3),
    "no description": lambda metadata, arrays: metadata.pop("models"),
    "another number of covariates": lambda metadata, arrays: metadata.update(n_features=5),
    "a negative number of covariates": lambda metadata, arrays: metadata.update(n_features=-1),
    **{f"too few {name}": set_array(CORE, name, shorten) for name in CORE_ARRAYS},
    **{f"too few {name} in trees": set_array(TREES, name, shorten) for name in TREE_ARRAYS},
    **{
        f"{name} of another type": set_array(TREES, name, lambda own: own.astype("<f4"))
        for name in TREE_ARRAYS
        if name != "nodes"
    },
    **{
        f"a NaN in {name}": set_value(CORE, name, (0,), np.nan)
        for name, (dtype, _) in CORE_ARRAYS.items()
        if dtype.kind == "f"
    },
    **{
        f"an infinity in {name}": set_value(TREES, name, 0, np.inf)
        for name, (dtype, _) in TREE_ARRAYS.items()
        if dtype.kind == "f"
    },
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_model_is_refused(stored, damage):
    metadata, arrays = stored
    read_outcome_model(metadata, arrays)
    DAMAGE[damage](metadata, arrays)
    with pytest.raises(ForestFileError):
        read_outcome_model(metadata, arrays)


def test_no_change_of_a_link_reaches_the_kernel(stored):
    metadata, arrays = stored
    nodes = array_of(metadata, arrays, TREES, "nodes")
    rng = np.random.default_rng(0)
    for place in rng.choice(len(nodes), size=60, replace=False):
        kept = nodes[place].copy()
        nodes["left"][place] += rng.choice([-2, -1, 1, 2])
        with pytest.raises(ForestFileError, match=r"links|leaves out of order"):
            read_outcome_model(metadata, arrays)
        nodes[place] = kept
    read_outcome_model(metadata, arrays)
