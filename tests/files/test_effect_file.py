"""Files of effect forests: exact round trips, no damage that loads, nothing that fits to serve."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import (
    CurveForest,
    EffectForest,
    ForestFileError,
    GeneralizedCausalForest,
    load_forest,
)
from doseforest.base.container import Container, read_container
from doseforest.doses.bases.dose_basis import BASES, UserFunctions, read_basis, stored_bases
from doseforest.doses.bases.polynomials import Legendre
from doseforest.doses.dose_values import Doses
from doseforest.estimator.corrections import orthogonal_recipe
from doseforest.estimator.corrections.kernel_curves import KernelForest, StabilizedCorrection
from doseforest.estimator.corrections.orthogonal import OrthogonalSettings
from doseforest.estimator.corrections.shape_stack import ShapeStack
from doseforest.estimator.corrections.stored_corrections import STORED_CORRECTIONS
from doseforest.estimator.effect_forest import CorrectedOutcome, NoCorrection
from doseforest.files import forest_file
from doseforest.results import DistilledForest
from recipes import recipe

STORED = Path(__file__).parents[1] / "stored_forests"
NAMES = ["income", "age", "visits"]
HEAVY = {"sklearn", "lightgbm", "pandas", "polars", "narwhals", "tqdm", "matplotlib"}


def draw(n=120, seed=0):
    rng = np.random.default_rng(seed)
    x, dose = rng.normal(size=(n, 3)), rng.uniform(0, 4, size=n)
    return x, dose, 10 + x[:, 0] + dose * (1 + 0.5 * x[:, 1]) + 0.5 * rng.normal(size=n)


def small(**parameters):
    settings = {"n_trees": 12, "baseline": 1.0, "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest(**{**settings, **parameters})


def with_all_readings(forest, *data, **named):
    """Fit with the same share for every reading: so little data would leave none with any."""

    def equal_shares(shapes, target, **ignored):
        n_candidates = shapes.shape[1]
        return ShapeStack(np.full(n_candidates, 0.9 / n_candidates), 0.9, 3.0, 1.0, 0.9)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            orthogonal_recipe, "OrthogonalSettings", partial(OrthogonalSettings, stack=equal_shares)
        )
        return forest.fit(*data, **named)


@pytest.fixture(scope="module", name="swapped")
def _swapped():
    """Two parts, with offsets and means among the readings, and named features."""
    x, dose, y = draw()
    table = pd.DataFrame(x, columns=NAMES)
    fitted = with_all_readings(small(honesty="swap"), table, y, treatment=dose)
    readings = [
        reading
        for part in fitted.model_.parts
        for own in part.correction.rounds
        for forest in own.forests
        for reading in forest.readings
    ]
    assert {reading.penalty is None for reading in readings} == {True, False}
    return fitted


@pytest.fixture(scope="module", name="kernel")
def _kernel():
    x, dose, y = draw()
    return small(correction="kernel", controls=[2]).fit(x, y, treatment=dose)


@pytest.fixture(scope="module", name="paper")
def _paper():
    x, dose, y = draw()
    settings = {"n_trees": 6, "baseline": 1.0, "n_folds": 2, "random_state": 0, "n_jobs": 1}
    return GeneralizedCausalForest.paper(**settings).fit(x, y, treatment=dose)


@pytest.fixture(scope="module", name="levels")
def _levels():
    """A binary outcome of a dose of three levels."""
    x, dose, y = draw()
    bought, level = (y > 12).astype(float), dose.astype(int) % 3
    return with_all_readings(
        small(correction=recipe("orthogonal", leaves=(5,))), x, bought, treatment=level
    )


@pytest.fixture(scope="module", name="models")
def _models(swapped, kernel, paper, levels):
    """An effect forest of each kind; forests of the stabilised one have a share for certain."""
    x, _, _ = draw()
    published = kernel.model_
    grid, outcome = published.doses, published.parts[0].outcome
    curves = x[:, :1] * grid
    grown = CurveForest(4, min_node_size=5, random_state=0, n_jobs=1).fit(
        x[:, :2], curves, leaf_channels=np.hstack([curves, 1 + curves**2])
    )
    stabilized = StabilizedCorrection(
        grid, tuple(KernelForest(grown.forest_, 0.25, share) for share in (0.5, 0.3)), 0.1 * grid
    )
    return {
        "orthogonal, swapped": swapped.model_,
        "orthogonal, levels of a binary outcome": levels.model_,
        "stabilized": replace(published, parts=(CorrectedOutcome(outcome, stabilized),)),
        "kernel": published,
        "paper": paper.model_,
        "none": kernel.outcome_model_,
        "none, levels": replace(
            kernel.outcome_model_,
            doses=np.arange(3.0),
            baseline=1.0,
            component_levels=((0.0, 1.0, 2.0),),
        ),
    }


KINDS = [
    "orthogonal, swapped",
    "orthogonal, levels of a binary outcome",
    "stabilized",
    "kernel",
    "paper",
    "none",
    "none, levels",
]


def assert_same_answers(first, second, levels=False):
    x, _, _ = draw(40, seed=1)
    x[::7, 0] = np.nan
    rng = np.random.default_rng(2)
    own = rng.choice([0.0, 1.0, 2.0], (40, 3)) if levels else rng.uniform(0, 4, (40, 3))
    pairs = [
        (first.dose_response(x), second.dose_response(x)),
        (first.dose_response(x, [1.0, 2.0]), second.dose_response(x, [1.0, 2.0])),
        (first.dose_response(x, own), second.dose_response(x, own)),
        (first.effect(x, own[:, 0]), second.effect(x, own[:, 0])),
        (first.partial_effect(x, 1.0, 2.0), second.partial_effect(x, 1.0, 2.0)),
    ]
    if isinstance(first, EffectForest) and not levels:
        pairs.append((first.elasticity(x, 2.0), second.elasticity(x, 2.0)))
    for expected, answer in pairs:
        assert np.isfinite(answer).all()
        np.testing.assert_array_equal(answer, expected)


# --- round trips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_forest_answers_to_the_last_bit_as_before(models, tmp_path, kind, memory_map):
    model = models[kind]
    model.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose", memory_map=memory_map)
    assert type(loaded) is EffectForest
    assert_same_answers(model, loaded, levels="levels" in kind)
    assert loaded.baseline == model.baseline
    assert loaded.support == model.support
    assert loaded.bounded == model.bounded
    assert loaded.n_jobs is None


def test_every_kind_of_correction_is_tried(models):
    tried = {type(part.correction) for model in models.values() for part in model.parts}
    assert tried == {stored.type for stored in STORED_CORRECTIONS.values()}
    assert len(models["orthogonal, swapped"].parts) == 2
    assert models["orthogonal, levels of a binary outcome"].bounded


def test_what_is_saved_again_is_the_same_file(models, tmp_path):
    for model in models.values():
        model.save(tmp_path / "first.dose")
        load_forest(tmp_path / "first.dose").save(tmp_path / "second.dose")
        first, second = ((tmp_path / f"{name}.dose").read_bytes() for name in ("first", "second"))
        assert first == second


def test_the_estimator_saves_its_model_and_the_reports_of_its_rounds(swapped, tmp_path):
    swapped.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    assert_same_answers(swapped, loaded)
    rounds = [
        {"half": half, **own.report()}
        for half, part in enumerate(loaded.parts)
        for own in part.correction.rounds
    ]
    assert rounds == list(swapped.rounds_)


def test_names_of_features_survive_and_order_the_columns(swapped, tmp_path):
    swapped.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    assert loaded.feature_names == tuple(NAMES)
    frame = pd.DataFrame(draw(20, seed=1)[0], columns=NAMES)
    turned = loaded.effect(frame[NAMES[::-1]], 3.0)
    np.testing.assert_array_equal(turned, swapped.effect(frame, 3.0))
    with pytest.raises(ValueError, match=r"without \['age'\]"):
        loaded.effect(frame[["income", "visits"]], 3.0)


def test_a_distilled_forest_answers_to_the_last_bit_as_before(swapped, tmp_path):
    compact = swapped.distill(n_trees=5, verbose=False)
    compact.save(tmp_path / "model.dose")
    for memory_map in (False, True):
        loaded = load_forest(tmp_path / "model.dose", memory_map=memory_map)
        assert type(loaded) is DistilledForest
        assert_same_answers(compact, loaded)
        assert (loaded.error, loaded.spread) == (compact.error, compact.spread)
        assert loaded.baseline == compact.baseline


@pytest.mark.parametrize("recipe", sorted(BASES))
def test_every_basis_is_read_as_it_was_written(recipe):
    dose = np.append(np.zeros(30), np.linspace(0.1, 9, 70))
    dose = dose.round() if recipe == "indicators" else dose
    if recipe in ("tensor", "arms"):
        dose = Doses.of_table(np.column_stack([dose > 0, dose])).values
    basis = BASES[recipe]().fit(dose)
    assert read_basis(json.loads(json.dumps(basis.to_json()))) == basis


def test_every_basis_that_a_file_holds_has_its_check():
    assert all(hasattr(own, "check") for own in stored_bases().values())


def test_serving_imports_nothing_that_fits(swapped, kernel, tmp_path):
    swapped.save(tmp_path / "swapped.dose")
    kernel.save(tmp_path / "kernel.dose")
    swapped.distill(n_trees=3, verbose=False).save(tmp_path / "compact.dose")
    code = (
        "import sys, doseforest\n"
        "for name in ('compact', 'swapped', 'kernel'):\n"
        f"    forest = doseforest.load_forest(f'{tmp_path}/{{name}}.dose')\n"
        "    forest.effect([[0.0, 1.0, 2.0]], 2.0)\n"
        f"    print(sorted({HEAVY | {'scipy'}} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['scipy']", "['scipy']"]


def test_stored_effect_forests_of_released_formats_hold_every_correction():
    """Of tests/stored_forests/write.py; that they answer as ever is in test_forest_file.py."""
    held, plain = set(), set()
    for path in STORED.glob("effect_forest_*format_*.dose"):
        for part in load_forest(path).parts:
            held.add(type(part.correction))
            for own in getattr(part.correction, "rounds", ()):
                plain |= {read.penalty is None for grown in own.forests for read in grown.readings}
    assert held >= {stored.type for stored in STORED_CORRECTIONS.values()} - {NoCorrection}
    assert plain == {True, False}


def test_stored_effect_forests_of_released_formats_hold_every_basis():
    """Of tests/stored_forests/write.py too."""
    bases = set()
    for path in STORED.glob("effect_forest_*format_*.dose"):
        for part in load_forest(path).parts:
            bases.add(getattr(getattr(part.correction, "basis", None), "kind", None))
    assert bases >= {"arms", "indicators", "legendre", "spline", "tensor"}


# --- what cannot be stored -----------------------------------------------------------------------


def test_a_foreign_regressor_is_refused_with_the_cure_and_leaves_no_file(tmp_path):
    x, dose, y = draw()
    fitted = small(outcome_model=LinearRegression(), n_trees=4).fit(x, y, treatment=dose)
    with pytest.raises(
        TypeError, match=r"member .regressor. of the.*cannot be saved.*distill\(\) returns can be"
    ):
        fitted.save(tmp_path / "model.dose")
    assert not list(tmp_path.iterdir())
    compact = fitted.distill(n_trees=3, verbose=False)
    compact.save(tmp_path / "model.dose")
    assert_same_answers(compact, load_forest(tmp_path / "model.dose"))


def test_functions_of_the_user_are_refused_and_the_file_before_stays(swapped, tmp_path):
    model = swapped.model_
    model.save(tmp_path / "model.dose")
    before = (tmp_path / "model.dose").read_bytes()
    part = model.parts[0]
    own = UserFunctions([np.log1p] * 6).fit(draw()[1])
    foreign = replace(part, correction=replace(part.correction, basis=own))
    with pytest.raises(TypeError, match=r"user's functions cannot be stored.*distill\(\)"):
        replace(model, parts=(foreign, model.parts[1])).save(tmp_path / "model.dose")
    assert [path.name for path in tmp_path.iterdir()] == ["model.dose"]
    assert (tmp_path / "model.dose").read_bytes() == before


def test_a_foreign_correction_is_refused(swapped, tmp_path):
    class Doubled(NoCorrection):
        pass

    foreign = replace(swapped.model_.parts[0], correction=Doubled())
    with pytest.raises(TypeError, match=r"Got Doubled instead\..*distill\(\)"):
        replace(swapped.model_, parts=(foreign,)).save(tmp_path / "model.dose")
    assert not list(tmp_path.iterdir())


# --- what is not read ----------------------------------------------------------------------------


@pytest.fixture(scope="module", name="files")
def _files(models, swapped, tmp_path_factory):
    """A file of each kind; the swapped one's first part alone, for speed."""
    folder = tmp_path_factory.mktemp("files")
    some = {
        **models,
        "orthogonal, swapped": replace(swapped.model_, parts=swapped.model_.parts[:1]),
        "distilled": swapped.distill(n_trees=3, verbose=False),
    }
    for kind, model in some.items():
        model.save(folder / f"{kind}.dose")
    return folder


@pytest.fixture(name="load")
def _load(monkeypatch):
    """Load metadata and arrays as though a file with right checksums held them."""

    def load(metadata, arrays):
        found = Container(metadata, arrays, 1)
        monkeypatch.setattr(forest_file, "read_container", lambda path, **options: found)
        return load_forest("forged.dose")

    return load


def contents(path):
    """Metadata and arrays of a file, to be changed."""
    container = read_container(path)
    return container.metadata, {name: own.copy() for name, own in container.arrays.items()}


ALL_KINDS = [*KINDS, "distilled"]


@pytest.mark.parametrize("kind", ["orthogonal, swapped", "distilled"])
def test_every_flipped_byte_is_an_error(files, tmp_path, kind):
    original = (files / f"{kind}.dose").read_bytes()
    path = tmp_path / "model.dose"
    rng = np.random.default_rng(0)
    for place in rng.choice(len(original), size=100, replace=False):
        damaged = bytearray(original)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(ForestFileError, match=r"model\.dose"):
            load_forest(path)
    path.write_bytes(original[:-64])
    with pytest.raises(ForestFileError, match="truncated"):
        load_forest(path)


def with_nan(array):
    changed = array.copy()
    changed.flat[array.size // 2] = np.nan
    return changed


CHANGES = {
    "of another type": lambda array: array["left"] if array.dtype.names else array > 0,
    "of another dimension": lambda array: array[None],
    "too short": lambda array: array[:-1],
    "with a NaN": with_nan,
}


def damaged(arrays, change):
    """Name and arrays, with each array changed or left out in turn, where that can be."""
    for name, array in arrays.items():
        others = {other: own for other, own in arrays.items() if other != name}
        if change == "absent":
            yield name, others
        elif array.size and (change != "with a NaN" or array.dtype.kind == "f"):
            yield name, {**others, name: CHANGES[change](array)}


@pytest.mark.parametrize("change", ["absent", *CHANGES])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_array_that_does_not_fit_is_refused(files, load, kind, change):
    metadata, arrays = contents(files / f"{kind}.dose")
    load(metadata, arrays)
    # A shorter grid of default doses is a grid, and without trees nobody misses a column.
    free = {"doses", "effect_columns"} if kind.startswith("none") else {"doses"}
    for name, forged in damaged(arrays, change):
        if change == "too short" and name in free:
            continue
        with pytest.raises(ForestFileError, match=r"forged\.dose"):
            load(metadata, forged)


def leaves_of(value, path=()):
    """Paths to everything in a description, lists and objects included."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, own in items:
        if isinstance(own, dict | list):
            yield from leaves_of(own, (*path, key))
        else:
            yield (*path, key)


def put(metadata, path, value):
    changed = copy.deepcopy(metadata)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


ABSENT = object()
DEEP = [[]]
for _ in range(3000):
    DEEP = [DEEP]
HOSTILE = [
    *(None, True, "x", "", [], {}, [1.0], [None], {"kind": "none"}, ABSENT, 0, -1, 10**400, 2**70),
    *(0.5, -0.5, 1e-320, 1e308, float("inf"), float("nan")),
]


@pytest.mark.filterwarnings("ignore::doseforest.doses.levels.OverlapWarning")
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_hostile_description_is_refused_or_answers_with_numbers(files, load, kind):
    """One value anywhere in the description is replaced, at random; fixed seed."""
    metadata, arrays = contents(files / f"{kind}.dose")
    paths = [path for path in leaves_of(metadata) if path]
    rng = np.random.default_rng(0)
    x, _, _ = draw(5, seed=1)
    n_refused = 0
    for _ in range(500):
        path = paths[rng.integers(len(paths))]
        forged = put(metadata, path, HOSTILE[rng.integers(len(HOSTILE))])
        try:
            loaded = load(forged, arrays)
        except ForestFileError as error:
            assert "forged.dose" in str(error)  # noqa: PT017
            n_refused += 1
        else:
            with np.errstate(over="ignore"):
                assert np.isfinite(loaded.dose_response(x)).all(), path
                assert np.isfinite(loaded.effect(x, 2.0, 1.0)).all(), path
    # Names, counts of rows and what is merely reported may be anything of their type.
    assert n_refused > 300


@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        [0.0, 1.0],
        [[1.0]],
        [[2.0, 1.0]],
        [[1.0, 1.0]],
        [["a", "b"]],
        [[], []],
        [[0.0, 1e308]],
    ],
)
def test_levels_that_do_not_fit_are_refused(files, load, forged):
    metadata, arrays = contents(files / "none, levels.dose")
    assert metadata["levels"] == [[0.0, 1.0, 2.0]]
    with pytest.raises(ForestFileError, match=r"levels|something else than finite numbers"):
        load({**metadata, "levels": forged}, arrays)
    metadata, arrays = contents(files / f"{LEVELS}.dose")
    assert "levels" not in metadata  # the basis of its correction has them
    with pytest.raises(ForestFileError, match="levels twice"):
        load({**metadata, "levels": [[0.0, 1.0, 2.0]]}, arrays)


def test_lists_without_end_are_refused(files, load):
    metadata, arrays = contents(files / "orthogonal, swapped.dose")
    for path in [("parts",), ("parts", 0, "correction", "basis", "recurrence"), ("baseline",)]:
        with pytest.raises(ForestFileError, match=r"forged\.dose"):
            load(put_shallow(metadata, path, DEEP), arrays)


def put_shallow(metadata, path, value):
    """The same as `put`, without a copy that would follow the value down."""
    if not path:
        return value
    changed = metadata.copy()
    changed[path[0]] = put_shallow(metadata[path[0]], path[1:], value)
    return changed


CORRECTION = ("parts", 0, "correction")
ROUND = (*CORRECTION, "rounds", 0)
FOREST = (*ROUND, "forests", 0)
READING = (*FOREST, "readings", 0)
BASIS = (*CORRECTION, "basis")
SWAPPED, STABILIZED, LEVELS = KINDS[0], KINDS[2], KINDS[1]

MISFITS = {
    "another kind of model": (SWAPPED, ("kind",), "policy"),
    "a distilled forest by name only": (SWAPPED, ("kind",), "distilled_forest"),
    "a forest by name only": (SWAPPED, ("kind",), "forest"),
    "an effect forest by name only": ("distilled", ("kind",), "effect_forest"),
    "a version before the first": (SWAPPED, ("format_version",), 0),
    "a true version": (SWAPPED, ("format_version",), True),
    "fewer features": (SWAPPED, ("n_features",), 2),
    "more features": (SWAPPED, ("n_features",), 4),
    "more features than the outcome model has": ("none", ("n_features",), 4),
    "too few names": (SWAPPED, ("feature_names",), ["a", "b"]),
    "names that are one text": (SWAPPED, ("feature_names",), "abc"),
    "names that are no text": (SWAPPED, ("feature_names",), ["a", "b", 3]),
    "a support of one dose": (SWAPPED, ("support", "high"), 0.0),
    "a support elsewhere": (SWAPPED, ("support",), {"low": 100.0, "high": 101.0}),
    "a support too large to subtract": (SWAPPED, ("support", "high"), 1e308),
    "an infinite baseline": (SWAPPED, ("baseline",), float("inf")),
    "a baseline beyond the support": (SWAPPED, ("baseline",), 9.0),
    "a baseline beyond a float": (SWAPPED, ("baseline",), 10**400),
    "a bound that is a number": (SWAPPED, ("bounded",), 1),
    "no parts": (SWAPPED, ("parts",), []),
    "parts that are none": (SWAPPED, ("parts",), {"outcome": {}}),
    "an outcome model of other features": (SWAPPED, ("parts", 0, "outcome", "n_features"), 4),
    "an unknown correction": (SWAPPED, (*CORRECTION, "kind"), "os.system"),
    "a correction of another kind": (SWAPPED, (*CORRECTION, "kind"), "stabilized"),
    "an unknown basis": (SWAPPED, (*BASIS, "kind"), "pickle"),
    "a basis of user functions": (SWAPPED, BASIS, {"kind": "user", "functions": "os.system"}),
    "a basis of other functions": (SWAPPED, BASIS, Legendre(3).fit(draw()[1]).to_json()),
    "a constant basis": (SWAPPED, BASIS, Legendre(1).fit(draw()[1]).to_json()),
    "a scale of zero": (SWAPPED, (*BASIS, "recurrence", 0), [0.0, 0.0]),
    "a negative scale": (SWAPPED, (*BASIS, "recurrence", 0), [0.0, -1.0]),
    "a scale next to zero": (SWAPPED, (*BASIS, "recurrence", 0), [0.0, 1e-320]),
    "a recurrence too short": (SWAPPED, (*BASIS, "recurrence", 1), [0.0, 1.0]),
    "a recurrence with a list": (SWAPPED, (*BASIS, "recurrence", 0), [[0.0], 1.0]),
    "an infinite recurrence": (SWAPPED, (*BASIS, "recurrence", 0), [float("inf"), 1.0]),
    "a range that ends before it begins": (SWAPPED, (*BASIS, "low"), 9.0),
    "masses that are text": (SWAPPED, (*BASIS, "masses"), ""),
    "masses out of order": (SWAPPED, (*BASIS, "masses"), [1.0, 1.0]),
    "levels out of order": (LEVELS, (*BASIS, "levels"), [1.0, 0.0, 2.0]),
    "a reference that is no level": (LEVELS, (*BASIS, "reference"), 7.0),
    "a level that is text": (LEVELS, (*BASIS, "levels"), ["0", "1", "2"]),
    "nodes that are no levels": (LEVELS, (*BASIS, "levels"), [0.0, 1.0, 3.0]),
    "too few names of candidates": (SWAPPED, (*ROUND, "names"), ["one"]),
    "an infinite risk": (SWAPPED, (*ROUND, "risk"), float("inf")),
    "no functions used": (SWAPPED, (*READING, "n_used"), 0),
    "more functions than there are": (SWAPPED, (*READING, "n_used"), 7),
    "a penalty too short": (SWAPPED, (*READING, "penalty"), []),
    "a negative penalty": (SWAPPED, (*READING, "penalty"), [-1.0]),
    "a NaN penalty": (SWAPPED, (*READING, "penalty"), [float("nan")]),
    "a negative share": (SWAPPED, (*READING, "share"), -0.1),
    "shares above 1": (SWAPPED, (*READING, "share"), 0.95),
    "a forest of more features": (SWAPPED, (*FOREST, "forest", "n_features"), 4),
    "a forest of no plan": (SWAPPED, (*FOREST, "forest", "plan"), None),
    "a forest of another leaf": (SWAPPED, (*FOREST, "forest", "leaf_curve"), {"kind": "code"}),
    "a negative shrinkage": (STABILIZED, (*CORRECTION, "forests", 0, "shrinkage"), -1.0),
    "a shrinkage that overflows": (STABILIZED, (*CORRECTION, "forests", 0, "shrinkage"), 1e308),
    "an infinite shrinkage": (STABILIZED, (*CORRECTION, "forests", 0, "shrinkage"), float("inf")),
    "kernel shares above 1": (STABILIZED, (*CORRECTION, "forests", 0, "share"), 0.9),
    "one forest less": (STABILIZED, (*CORRECTION, "forests", 0), None),
    "a ratio of a mean's leaves": (
        "kernel",
        (*CORRECTION, "forest", "leaf_curve"),
        {"kind": "ratio", "shrinkage": 0.0},
    ),
    "a distilled forest without doses": ("distilled", ("forest", "doses"), None),
    "a distilled forest of one dose": ("distilled", ("forest", "doses"), [1.0]),
    "doses that are text": ("distilled", ("forest", "doses"), "many"),
    "a negative error": ("distilled", ("error",), -1.0),
    "a NaN spread": ("distilled", ("spread",), float("nan")),
    "a baseline beyond the doses": ("distilled", ("baseline",), 1e6),
    "a baseline that is text": ("distilled", ("baseline",), "1.0"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_a_description_that_does_not_fit_is_refused(files, load, misfit):
    kind, path, value = MISFITS[misfit]
    metadata, arrays = contents(files / f"{kind}.dose")
    with pytest.raises(ForestFileError, match=r"forged\.dose"):
        load(put(metadata, path, value), arrays)


def set_value(name, place, value):
    def forge(arrays):
        arrays[name][place] = value

    return forge


def reverse(name):
    def forge(arrays):
        arrays[name] = arrays[name][::-1].copy()

    return forge


def loop(name):
    def forge(arrays):
        assert arrays[name]["left"][0] == 1  # the root is a split
        arrays[name]["left"][0] = 0

    return forge


def shorten(*names):
    def forge(arrays):
        for name in names:
            arrays[name] = arrays[name][:-1]

    return forge


PLACE = "parts/0/correction"
FORGERIES = {
    "a loop in a tree of a round": (SWAPPED, loop(f"{PLACE}/rounds/0/forests/0/nodes")),
    "a loop in a tree of a kernel": (STABILIZED, loop(f"{PLACE}/forests/1/nodes")),
    "a loop in the published tree": ("kernel", loop(f"{PLACE}/forest/nodes")),
    "a loop in a distilled tree": ("distilled", loop("forest/nodes")),
    "effect columns beyond the features": (SWAPPED, set_value("effect_columns", -1, 3)),
    "an effect column before the first": (SWAPPED, set_value("effect_columns", 0, -1)),
    "an effect column twice": (SWAPPED, set_value("effect_columns", 1, 0)),
    "doses that descend": (SWAPPED, reverse("doses")),
    "a dose beyond the support": (SWAPPED, set_value("doses", -1, 9.0)),
    "nodes that descend": (SWAPPED, reverse(f"{PLACE}/projection_nodes")),
    "a negative share of a candidate": (SWAPPED, set_value(f"{PLACE}/rounds/0/shares", 0, -0.1)),
    "too large a share of a candidate": (SWAPPED, set_value(f"{PLACE}/rounds/0/shares", 0, 2.0)),
    "a constant that overflows": (SWAPPED, set_value(f"{PLACE}/rounds/0/constant", 0, 1e308)),
    "a projection that overflows": (SWAPPED, set_value(f"{PLACE}/projection_matrix", 0, -1e308)),
    "a kernel grid that descends": (STABILIZED, reverse(f"{PLACE}/grid")),
    "forests of a longer grid": (STABILIZED, shorten(f"{PLACE}/grid", f"{PLACE}/constant")),
    "a published grid with a dose twice": ("kernel", set_value(f"{PLACE}/grid", [0, 1], 1.0)),
    "a kernel grid too large to subtract": (STABILIZED, set_value(f"{PLACE}/grid", -1, 1e308)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_arrays_with_right_checksums_are_refused(files, load, forgery):
    kind, forge = FORGERIES[forgery]
    metadata, arrays = contents(files / f"{kind}.dose")
    forge(arrays)
    with pytest.raises(ForestFileError, match=r"forged\.dose"):
        load(metadata, arrays)


def test_a_support_of_one_dose_is_refused(files, load):
    metadata, arrays = contents(files / "none.dose")
    arrays["doses"] = np.array([1.0])
    load(metadata, arrays)
    with pytest.raises(ForestFileError, match="no range of doses"):
        load({**metadata, "support": {"low": 1.0, "high": 1.0}}, arrays)


def test_a_newer_format_asks_for_an_upgrade(files, load):
    for kind in ALL_KINDS:
        metadata, arrays = contents(files / f"{kind}.dose")
        newer = {**metadata, "format_version": forest_file.FORMAT_VERSION + 1}
        with pytest.raises(ForestFileError, match="upgrade doseforest"):
            load(newer, arrays)
