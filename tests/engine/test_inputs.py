"""Inputs of a forest: any sane one is answered sanely, any other is refused by name."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from doseforest import CurveForest
from doseforest.data.checks import LARGEST_VALUE
from doseforest.engine import MeanCurve
from doseforest.engine.splits.distances import CURVE_DISTANCES, l1

_RNG = np.random.default_rng(0)
N_ROWS, N_FEATURES, N_DOSES = 60, 3, 4
X = _RNG.normal(size=(N_ROWS, N_FEATURES))
Y = np.where(X[:, :1] > 0, 2.0, 1.0) + 0.1 * _RNG.normal(size=(N_ROWS, N_DOSES))
ONES = np.ones(N_ROWS)
WEIGHTS = _RNG.uniform(0.5, 2, N_ROWS)


def forest(**changes: Any) -> CurveForest:
    """Describe a small forest that does split."""
    options = {"n_trees": 5, "min_node_size": 3, "n_jobs": 1, "random_state": 0}
    return CurveForest(**(options | changes))


def changed(values: NDArray[Any], place: Any, value: Any) -> NDArray[Any]:
    copy = values.astype(float)
    copy[place] = value
    return copy


# --- any sane input is answered ----------------------------------------------------------------


@dataclass
class Case:
    """A forest and what it is fitted on."""

    features: NDArray[np.float64] = field(repr=False)
    table: Any = field(repr=False)
    curves: NDArray[np.float64] = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict)
    fit_options: dict[str, Any] = field(default_factory=dict)

    def fit(self) -> CurveForest:
        return CurveForest(**self.options).fit(self.table, self.curves, **self.fit_options)


def frame_of(kind: Callable[[Any], Any]) -> Callable[[NDArray[Any]], Any]:
    return lambda values: kind({f"x{j}": values[:, j] for j in range(values.shape[1])})


COLUMN_KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[Any]]] = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "with gaps": lambda rng, n: np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n)),
    "few values": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "constant": lambda rng, n: np.full(n, 3.5),
    "empty": lambda rng, n: np.full(n, np.nan),
    "huge": lambda rng, n: rng.choice([-1e308, 1e308, 5e-324, 0.0], n),
}
TABLE_FORMS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "C order": np.ascontiguousarray,
    "F order": np.asfortranarray,
    "a view": lambda values: np.repeat(values, 2, axis=1)[:, ::2],
    "lists": lambda values: values.tolist(),
    "pandas": frame_of(pd.DataFrame),
    "polars": frame_of(pl.DataFrame),
}
NARROW_TYPES = ["float32", "int16", "bool"]


class Dice:
    """Picks the parts of a case. A seed is all that is drawn: its cases have little in common."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, *usual: Any, rarely: tuple[Any, ...] = ()) -> Any:
        """Pick a usual value, one time in twenty one of the limits that keep a forest small."""
        values = rarely if rarely and self.rng.random() < 0.05 else usual
        return values[self.rng.integers(len(values))]

    def table(self, n_rows: int) -> tuple[NDArray[np.float64], Any]:
        """Return the features as float64 and the same in some form."""
        kinds = [self.pick("continuous", "with gaps", "few values", rarely=("constant",))]
        kinds += [self.pick(*COLUMN_KINDS) for _ in range(self.pick(0, 1, 3))]
        columns = [COLUMN_KINDS[kind](self.rng, n_rows) for kind in kinds]
        if self.pick(True, False):
            columns.append(columns[0])
        features = np.stack(columns, axis=1)
        form = TABLE_FORMS[self.pick(*TABLE_FORMS)]
        if self.pick(True, True, False):
            return features, form(features)
        narrow = self.rng.integers(0, 5, features.shape).astype(self.pick(*NARROW_TYPES))
        return narrow.astype(np.float64), form(narrow)

    def row_options(self, n_rows: int) -> dict[str, Any]:
        """Return what may come beside the features and the curves of each row."""
        options: dict[str, Any] = {}
        weights = self.pick(None, "varied", "some zero", rarely=("one",))
        if weights is not None:
            options["sample_weight"] = self.rng.uniform(0.5, 4, n_rows)
        if weights in ("some zero", "one"):
            share = 0.5 if weights == "some zero" else 0.0
            options["sample_weight"][1:] *= self.rng.random(n_rows - 1) < share
        groups = self.pick(None, None, "numbers", "text", "frame")
        if groups is not None:
            codes = self.rng.integers(0, 30, n_rows)
            names = np.char.add("group ", codes.astype(str))
            forms = {"numbers": codes, "text": names.tolist(), "frame": pd.Series(names)}
            options["groups"] = forms[groups]
        if self.pick(True, False):
            options["row_ids"] = self.rng.permutation(10 * n_rows)[:n_rows] - 5 * n_rows
        return options


def case_of(seed: int) -> Case:
    dice = Dice(seed)
    n_rows = dice.pick(60, 150, rarely=(1, 2, 3, 8))
    features, table = dice.table(n_rows)
    n_doses = dice.pick(1, 2, 3, 4, 5, 9, 40)
    curves = dice.rng.normal(dice.pick(0, 5), 1, (n_rows, n_doses))
    curves *= dice.pick(1.0, 1e-10, 1e25, rarely=(0.0, 1e-30))
    fit_options = dice.row_options(n_rows)
    if dice.pick(True, False):
        fit_options["doses"] = np.cumsum(dice.rng.uniform(0.1, 1, n_doses))
    if dice.pick(True, False):
        fit_options["quadrature"] = np.append(dice.rng.uniform(0, 1, n_doses - 1), 1.0)
    zeta, positivity = dice.pick(0.0, 0.0, 0.5), dice.pick("conditional", "mixture")
    if zeta > 0:
        fit_options["spread"] = dice.rng.uniform(size=(n_rows, 1 + (positivity == "mixture")))
    bag_size = dice.pick(1, 2, 3)
    options = {
        "n_trees": dice.pick(1, 2, 6),
        "distance": dice.pick(*CURVE_DISTANCES, l1),
        "min_node_size": dice.pick(1, 2, 5, rarely=(100,)),
        "max_depth": dice.pick(None, None, 3, rarely=(0, 1)),
        "min_info_gain": dice.pick(0.0, rarely=(0.1,)),
        "min_child_fraction": dice.pick(0.0, 0.1, rarely=(0.5,)),
        "mtry": dice.pick(None, 1, features.shape[1], 0.5, "sqrt"),
        "mtry_scope": dice.pick("node", "tree"),
        "sampling": dice.pick("subsample", "bootstrap"),
        "sample_fraction": dice.pick(0.5, 0.4 if bag_size > 1 else 1.0, rarely=(0.02,)),
        "bag_size": bag_size,
        "honesty": dice.pick("tree", "forest", "none"),
        "honesty_fraction": dice.pick(0.5, 0.3, rarely=(0.05, 0.95)),
        "zeta": zeta,
        "positivity": positivity,
        "max_bins": dice.pick(2, 5, 64, 255),
        "n_jobs": dice.pick(1, 2),
        "random_state": int(dice.rng.integers(2**32)),
    }
    if n_doses == 1 and dice.pick(True, False):
        curves = curves[:, 0]
    return Case(features, table, curves, options, fit_options)


CASES = st.integers(0, 2**32 - 1).map(case_of)


def assert_inside_the_curves(predicted: NDArray[np.float64], curves: NDArray[np.float64]) -> None:
    """Every point lies between the least and the greatest training value at its dose."""
    assert predicted.shape == curves.shape
    assert np.isfinite(predicted).all()
    tolerance = 1e-5 * np.abs(curves).max(axis=0)  # channels have 24 bits, times a weight
    assert (predicted >= curves.min(axis=0) - tolerance).all()
    assert (predicted <= curves.max(axis=0) + tolerance).all()


@given(case=CASES)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_predictions_are_finite_and_inside_the_training_curves(case: Case) -> None:
    model = case.fit()
    assert_inside_the_curves(model.predict(case.table), case.curves)
    assert_inside_the_curves(model.predict_oob(case.table), case.curves)
    unseen = np.random.default_rng(0).choice([np.nan, -1e308, 0.3, 1e308], case.features.shape)
    assert_inside_the_curves(model.predict(unseen), case.curves)
    assert model.n_features_in_ == case.features.shape[1]


@given(case=CASES)
@settings(derandomize=True, deadline=None, max_examples=150)
def test_forest_weights_are_shares_of_one_that_give_the_predictions_back(case: Case) -> None:
    model = case.fit()
    weights = model.forest_weights(case.table).toarray()
    assert weights.shape == (len(case.curves), len(case.curves))
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    largest = np.abs(case.curves).max()
    np.testing.assert_allclose(
        weights @ case.curves, model.predict(case.table), rtol=0, atol=1e-5 * largest + 1e-44
    )


@given(case=CASES)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_the_form_of_the_table_changes_no_prediction(case: Case) -> None:
    predicted = case.fit().predict(case.table)
    for form in (np.asarray, np.asfortranarray, frame_of(pd.DataFrame), frame_of(pl.DataFrame)):
        case.table = form(case.features)
        np.testing.assert_array_equal(case.fit().predict(case.table), predicted)


@pytest.fixture(params=[False, True], ids=["bins from all rows", "bins from a sample"])
def binning_sample(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr("doseforest.data.binning.SAMPLE_ROWS", 20)


@pytest.mark.usefixtures("binning_sample")
@given(case=CASES)
@settings(
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_permuted_rows_with_their_ids_grow_the_same_forest(case: Case) -> None:
    n_rows = len(case.curves)
    case.table = case.features
    case.fit_options.setdefault("row_ids", np.arange(n_rows))
    first = case.fit()
    order = np.random.default_rng(1).permutation(n_rows)
    for name in {"row_ids", "sample_weight", "groups", "spread"} & set(case.fit_options):
        case.fit_options[name] = np.asarray(case.fit_options[name])[order]
    case.table, case.curves = case.features[order], case.curves[order]
    second = case.fit()
    np.testing.assert_array_equal(first.predict(case.features), second.predict(case.features))
    np.testing.assert_array_equal(
        first.predict_oob(case.features)[order], second.predict_oob(case.table)
    )


Y_FORMS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "lists": lambda y: y.tolist(),
    "float32": lambda y: y.astype(np.float32),
    "float16": lambda y: y.astype(np.float16),
    "F order": np.asfortranarray,
    "objects": lambda y: y.astype(object),
    "pandas": pd.DataFrame,
    "pandas nullable": lambda y: pd.DataFrame(y).astype("Float64"),
    "polars": frame_of(pl.DataFrame),
}


@pytest.mark.parametrize("form", Y_FORMS.values(), ids=Y_FORMS.keys())
def test_every_form_of_the_curves_gives_the_same_forest(
    form: Callable[[NDArray[np.float64]], Any],
) -> None:
    curves = Y.astype(np.float16).astype(np.float64)
    expected = forest().fit(X, curves).predict(X)
    np.testing.assert_array_equal(forest().fit(X, form(curves)).predict(X), expected)


@pytest.mark.parametrize("form", [list, np.asarray, pd.Series, pl.Series])
def test_curves_of_one_point_may_be_one_dimensional(form: Callable[[Any], Any]) -> None:
    flat, column = forest().fit(X, form(Y[:, 0])), forest().fit(X, Y[:, :1])
    for method in ("predict", "predict_oob"):
        assert getattr(flat, method)(X).shape == (N_ROWS,)
        assert getattr(column, method)(X).shape == (N_ROWS, 1)
        np.testing.assert_array_equal(getattr(flat, method)(X), getattr(column, method)(X)[:, 0])


def test_all_features_may_be_given_as_a_share() -> None:
    every, share = forest(mtry=3).fit(X, Y), forest(mtry=1.0).fit(X, Y)
    np.testing.assert_array_equal(every.predict(X), share.predict(X))


# --- rows that must not speak ------------------------------------------------------------------


@pytest.mark.parametrize("honesty", ["tree", "forest", "none"])
def test_curves_of_rows_without_weight_change_nothing(honesty: str) -> None:
    weights = WEIGHTS * (np.arange(N_ROWS) % 3 > 0)
    other = np.where(weights[:, None] > 0, Y, 1e6)
    first, second = (
        forest(honesty=honesty).fit(X, curves, sample_weight=weights) for curves in (Y, other)
    )
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("sampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("honesty", ["tree", "forest", "none"])
@pytest.mark.parametrize("bag_size", [1, 2])
def test_out_of_bag_curves_of_a_group_are_made_without_the_group(
    sampling: str, honesty: str, bag_size: int
) -> None:
    groups = np.arange(N_ROWS) % 10
    curves = np.where(groups == 4, 1.0, 0.0)
    model = forest(sampling=sampling, honesty=honesty, bag_size=bag_size, n_trees=40)
    model.fit(X, curves, groups=groups)
    assert not model.predict_oob(X)[groups == 4].any()
    assert model.predict(X)[groups == 4].any()


@pytest.mark.parametrize("distance", ["l1", l1], ids=["compiled", "callable"])
@pytest.mark.parametrize("honesty", ["tree", "none"])
def test_trees_of_rows_without_weight_leave_the_only_curve_with_weight(
    distance: Any, honesty: str
) -> None:
    model = forest(distance=distance, honesty=honesty, n_trees=20)
    model.fit(X, Y, sample_weight=np.arange(N_ROWS) == 17)
    np.testing.assert_allclose(model.predict(X), np.tile(Y[17], (N_ROWS, 1)), rtol=1e-6)


def test_a_tree_that_no_row_fills_leaves_the_mean_of_all_rows() -> None:
    model = forest(sample_fraction=1e-12).fit(X, Y)
    for predicted in (model.predict(X), model.predict_oob(X)):
        np.testing.assert_allclose(predicted, np.tile(Y.mean(axis=0), (N_ROWS, 1)), rtol=1e-6)


def test_a_forest_that_no_row_fills_weighs_the_rows_by_their_own_weights() -> None:
    model = forest(sample_fraction=1e-12).fit(X, Y, sample_weight=np.arange(N_ROWS))
    expected = np.tile(np.arange(N_ROWS) / np.arange(N_ROWS).sum(), (N_ROWS, 1))
    np.testing.assert_allclose(model.forest_weights(X).toarray(), expected, rtol=1e-5, atol=1e-6)


# --- extreme numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("honesty", ["tree", "none"])
def test_the_largest_curves_allowed_are_predicted(honesty: str) -> None:
    curves = np.full((N_ROWS, 2), [LARGEST_VALUE, -LARGEST_VALUE])
    model = forest(honesty=honesty, min_node_size=10).fit(X, curves)
    np.testing.assert_allclose(model.predict(X), curves, rtol=1e-6)


def test_the_largest_curves_allowed_may_have_very_uneven_weights() -> None:
    curves = np.full((N_ROWS, 1), LARGEST_VALUE)
    weights = np.where(np.arange(N_ROWS) < 5, 1.0, 1e-3)
    predicted = forest().fit(X, curves, sample_weight=weights).predict(X)
    np.testing.assert_allclose(predicted, curves, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-300, 1e-44, 1e-10, 1e20])
def test_the_scale_of_the_weights_does_not_matter(scale: float) -> None:
    expected = forest().fit(X, Y, sample_weight=WEIGHTS).predict(X)
    predicted = forest().fit(X, Y, sample_weight=WEIGHTS * scale).predict(X)
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)


DISTANCES = [*CURVE_DISTANCES, l1]
every_distance = pytest.mark.parametrize("distance", DISTANCES, ids=[*CURVE_DISTANCES, "callable"])
weighted_or_not = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])


@every_distance
@weighted_or_not
@pytest.mark.parametrize("exponent", [-60, 60])
def test_the_unit_of_the_curves_does_not_matter(distance: Any, weights: Any, exponent: int) -> None:
    unit = 2.0**exponent
    model = forest(distance=distance).fit(X, Y, sample_weight=weights)
    scaled = forest(distance=distance).fit(X, Y * unit, sample_weight=weights)
    assert model.forest_.n_leaves > model.forest_.n_trees
    np.testing.assert_array_equal(scaled.predict(X), model.predict(X) * unit)


@every_distance
@weighted_or_not
@pytest.mark.parametrize("exponent", [-60, 60])
def test_the_unit_of_the_doses_does_not_matter(distance: Any, weights: Any, exponent: int) -> None:
    first, second = (
        forest(distance=distance).fit(X, Y, doses=np.arange(4) * unit, sample_weight=weights)
        for unit in (1.0, 2.0**exponent)
    )
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@every_distance
@weighted_or_not
@pytest.mark.parametrize("height", [0.3, 1e6 / 3])
def test_equal_curves_are_never_split(distance: Any, weights: Any, height: float) -> None:
    curves = np.full((N_ROWS, 2), [height, -height / 7])
    model = forest(distance=distance).fit(X, curves, sample_weight=weights)
    assert model.forest_.n_leaves == model.forest_.n_trees


# Products of weights and curves are rounded to 2^-24 of the largest: between these two, rows keep
# a weight but lose the digits of their curves, as the docstring of fit tells.
@pytest.mark.parametrize("smallest", [1e-2, 1e-4, 1e-8])
def test_equal_curves_are_predicted_as_they_are_whatever_their_weights(smallest: float) -> None:
    curves = np.full((N_ROWS, 1), 0.3)
    weights = np.where(X[:, 0] > 0, 1.0, smallest) * WEIGHTS
    model = forest(n_trees=20).fit(X, curves, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), curves, rtol=1e-3)


# --- distances given as callables --------------------------------------------------------------


SPREADS = {"without spread": {}, "with spread": {"spread": ONES}}
with_and_without_spread = pytest.mark.parametrize(
    "fit_options", SPREADS.values(), ids=SPREADS.keys()
)


@with_and_without_spread
@pytest.mark.parametrize(
    "distance",
    [
        lambda left, right, quadrature: np.full(len(left), np.nan),
        lambda left, right, quadrature: np.full(len(left), np.inf),
        lambda left, right, quadrature: np.full(len(left), -np.inf),
        lambda left, right, quadrature: np.full(len(left), -1.0),
        lambda left, right, quadrature: np.where(np.arange(len(left)) % 2, np.nan, 1.0),
        lambda left, right, quadrature: np.where(np.arange(len(left)) % 2, np.inf, 1.0),
        lambda left, right, quadrature: np.zeros(len(left), int),
    ],
    ids=["NaN", "inf", "-inf", "negative", "some NaN", "some inf", "whole zeros"],
)
def test_a_distance_without_sense_never_spoils_a_prediction(
    distance: Callable[..., Any], fit_options: dict[str, Any]
) -> None:
    model = forest(distance=distance, zeta=float(bool(fit_options))).fit(X, Y, **fit_options)
    assert_inside_the_curves(model.predict(X), Y)
    assert_inside_the_curves(model.predict_oob(X), Y)


@with_and_without_spread
@pytest.mark.parametrize(
    "distance",
    [
        lambda left, right, quadrature: 1.0,
        lambda left, right, quadrature: None,
        lambda left, right, quadrature: "far",
        lambda left, right, quadrature: left - right,
        lambda left, right, quadrature: np.ones(len(left) + 1),
        lambda left, right, quadrature: np.full(len(left), 1j),
    ],
    ids=["a scalar", "None", "text", "a matrix", "too many", "complex numbers"],
)
def test_a_distance_of_the_wrong_form_is_refused_by_name(
    distance: Callable[..., Any], fit_options: dict[str, Any]
) -> None:
    model = forest(distance=distance, zeta=float(bool(fit_options)))
    with pytest.raises((ValueError, TypeError), match="'distance' parameter"):
        model.fit(X, Y, **fit_options)


def test_the_error_of_a_distance_goes_on_as_it_is() -> None:
    def distance(left: Any, right: Any, quadrature: Any) -> Any:
        raise LookupError("no such dose")

    with pytest.raises(LookupError, match="no such dose"):
        forest(distance=distance).fit(X, Y)


# --- refusals ----------------------------------------------------------------------------------

REFUSED_FITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # what: (parameters of the forest, of fit, the message)
    "NaN in y": ({}, {"y": changed(Y, (7, 2), np.nan)}, "'y' .* Got nan in row 7, column 2"),
    "inf in y": ({}, {"y": changed(Y, (7, 2), -np.inf)}, "'y' .* Got -inf in row 7, column 2"),
    "huge y": ({}, {"y": changed(Y, (0, 1), 1e38)}, r"'y' .* Got 1e\+38 in row 0, column 1"),
    "inf in a float16 y": (
        {},
        {"y": changed(Y, (7, 2), np.inf).astype(np.float16)},
        "'y' .* Got inf in row 7, column 2",
    ),
    "a gap in y": ({}, {"y": [None, *Y[1:, 0]]}, "'y' .* Got nan in row 0, column 0"),
    "masked y": ({}, {"y": np.ma.masked_array(Y, mask=Y < 1)}, "'y' parameter"),
    "a short y": ({}, {"y": Y[:9]}, r"'y' .* \(60\)\. Got shape \(9, 4\)"),
    "y of three dimensions": ({}, {"y": Y[:, :, None]}, r"'y' .* Got shape \(60, 4, 1\)"),
    "y without points": ({}, {"y": Y[:, :0]}, "'y' .* Got 0"),
    "y of too many points": ({}, {"y": np.zeros((N_ROWS, 513))}, "'y' .* 512 columns. Got 513"),
    "text in y": ({}, {"y": Y.astype(str)}, "'y' .* real numbers. Got <U"),
    "numbers as text objects in y": ({}, {"y": Y.astype(str).astype(object)}, "'y' .* real numb"),
    "complex y": ({}, {"y": Y * 1j}, "'y' .* Got complex128"),
    "inf in X": ({}, {"X": changed(X, (5, 1), np.inf)}, "'X' .* Got inf in row 5, column 1"),
    "a single feature": ({}, {"X": X[:, 0]}, "'X' .* two-dimensional"),
    "a negative weight": (
        {},
        {"sample_weight": changed(ONES, 4, -2)},
        r"'sample_weight' .* not be negative. Got -2\.0 in row 4",
    ),
    "no weight": ({}, {"sample_weight": 0 * ONES}, "'sample_weight' .* positive .* zeros"),
    "a NaN weight": ({}, {"sample_weight": changed(ONES, 4, np.nan)}, "'sample_weight' .* nan"),
    "too few weights": ({}, {"sample_weight": ONES[1:]}, r"'sample_weight' .* \(59,\)"),
    "two weights a row": ({}, {"sample_weight": np.ones((N_ROWS, 2))}, "'sample_weight' .* Got 2"),
    "ids twice": ({}, {"row_ids": np.arange(N_ROWS) // 2}, "'row_ids' .* distinct. Got 0"),
    "ids with a fraction": ({}, {"row_ids": ONES / 2}, "'row_ids' .* integers.* Got float64"),
    "too few ids": ({}, {"row_ids": np.arange(9)}, r"'row_ids' .* Got int64 of shape \(9,\)"),
    "too few groups": ({}, {"groups": np.arange(9)}, r"'groups' .* \(60\). Got shape \(9,\)"),
    "negative quadrature": ({}, {"quadrature": [1, -1, 1, 1]}, r"'quadrature' .* \[1, -1, 1, 1\]"),
    "no quadrature": ({}, {"quadrature": [0, 0, 0, 0]}, "'quadrature' .* one of them positive"),
    "too little quadrature": ({}, {"quadrature": [1.0]}, "'quadrature' .* 4 finite numbers"),
    "NaN quadrature": ({}, {"quadrature": [1, np.nan, 1, 1]}, "'quadrature' .* finite .* nan"),
    "doses that descend": ({}, {"doses": [1, 2, 4, 3]}, r"'doses' .* ascending. Got \[1, 2, 4, 3"),
    "a dose twice": ({}, {"doses": [1, 2, 2, 3]}, r"'doses' .* ascending. Got \[1, 2, 2, 3\]"),
    "too many doses": ({}, {"doses": np.arange(5)}, "'doses' .* 4 finite numbers"),
    "an infinite dose": ({}, {"doses": [1, 2, 3, np.inf]}, "'doses' .* finite .* inf"),
    "zeta without spread": ({"zeta": 1.0}, {}, "'spread' .* 'zeta'"),
    "NaN spread": ({"zeta": 1.0}, {"spread": changed(ONES, 0, np.nan)}, "'spread' .* nan"),
    "two spreads": ({"zeta": 1.0}, {"spread": np.ones((N_ROWS, 2))}, "'spread' .* 1 col.* Got 2"),
    "one moment": (
        {"zeta": 1.0, "positivity": "mixture"},
        {"spread": ONES},
        "'spread' .* 2 columns .* Got 1",
    ),
    "short leaf channels": ({}, {"leaf_channels": ONES[1:]}, r"'leaf_channels' .* \(59,\)"),
    "mtry above the features": ({"mtry": 4}, {}, r"'mtry' .* number of features \(3\). Got 4"),
    "large bags": (
        {"bag_size": 2, "sample_fraction": 0.6},
        {},
        r"'sample_fraction' .* at most 0\.5 .*'bag_size'.* Got 0\.6",
    ),
    "no threads": ({"n_jobs": 0}, {}, "'n_jobs' .* Got 0"),
    "an unknown distance": ({"distance": "l3"}, {}, "'distance' .* Got 'l3'"),
    "no trees": ({"n_trees": 0}, {}, "'n_trees' .* Got 0"),
    "too many bins": ({"max_bins": 256}, {}, "'max_bins' .* 255.* Got 256"),
}


@pytest.mark.parametrize(
    ("options", "fit_options", "said"), REFUSED_FITS.values(), ids=REFUSED_FITS.keys()
)
def test_a_fit_is_refused_by_name_rule_and_value(
    options: dict[str, Any], fit_options: dict[str, Any], said: str
) -> None:
    with pytest.raises((ValueError, TypeError)) as refusal:
        forest(**options).fit(**({"X": X, "y": Y} | fit_options))
    assert re.search(rf"The {said}", str(refusal.value), re.DOTALL)


NAMES = [f"store {row // 4}" for row in range(N_ROWS)]
GROUPS_WITH_GAPS = {
    "None among text": [None, *NAMES[1:]],
    "None among numbers": [None, *range(1, N_ROWS)],
    "NaN among numbers": changed(ONES, 0, np.nan),
    "NaN among text": [np.nan, *NAMES[1:]],
    "NaN among objects": np.array([np.nan, *NAMES[1:]], dtype=object),
    "NA of pandas among text": pd.array([None, *NAMES[1:]], dtype="string"),
    "NA of pandas among numbers": pd.array([None, *range(1, N_ROWS)], dtype="Int64"),
    "a gap in a series": pd.Series([None, *NAMES[1:]]),
    "a gap in a category": pd.Series([None, *NAMES[1:]], dtype="category"),
    "no time": np.array(["NaT", *["2024-01-01"] * (N_ROWS - 1)], "M8[D]"),
    "null of polars": pl.Series([None, *NAMES[1:]]),
}


@pytest.mark.parametrize("groups", GROUPS_WITH_GAPS.values(), ids=GROUPS_WITH_GAPS.keys())
def test_rows_without_a_group_are_refused(groups: Any) -> None:
    with pytest.raises(ValueError, match="'groups' parameter must not have missing entries"):
        forest().fit(X, Y, groups=groups)


def test_groups_of_several_types_are_refused() -> None:
    groups = np.array([1, *NAMES[1:]], dtype=object)
    with pytest.raises(TypeError, match="'groups' parameter must hold values of one sortable type"):
        forest().fit(X, Y, groups=groups)


@pytest.mark.parametrize(
    ("options", "cure"),
    [({"n_trees": 100_000}, "'n_trees'"), ({"min_node_size": 1_000}, "fewer rows")],
)
def test_too_little_memory_is_refused_with_its_cure(options: dict[str, Any], cure: str) -> None:
    with pytest.raises(
        MemoryError, match=rf"needs about .* 'memory_limit' allows 1\.0 KiB.*{cure}"
    ):
        forest(memory_limit=1024, **options).fit(X, Y)


def test_memory_that_just_suffices_changes_no_prediction() -> None:
    expected = forest(n_trees=30).fit(X, Y).predict(X)
    with pytest.raises(MemoryError) as refusal:
        forest(n_trees=30, memory_limit=1).fit(X, Y)
    (kibibytes,) = re.findall(r"needs about ([\d.]+) KiB", str(refusal.value))
    enough = int((float(kibibytes) + 0.1) * 1024)
    np.testing.assert_array_equal(
        forest(n_trees=30, memory_limit=enough).fit(X, Y).predict(X), expected
    )


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("predict", [X]),
        ("predict_oob", [X]),
        ("apply", [X]),
        ("forest_weights", [X]),
        ("save", ["never written"]),
    ],
)
def test_a_forest_answers_nothing_before_it_is_fitted(method: str, arguments: list[Any]) -> None:
    with pytest.raises(NotFittedError, match="CurveForest"):
        getattr(forest(), method)(*arguments)


COLUMNS = ["age", "income", "price"]


@pytest.fixture(scope="module")
def fitted() -> CurveForest:
    return forest().fit(pd.DataFrame(X, columns=COLUMNS), Y)


REFUSED_QUERIES: dict[str, tuple[Any, str]] = {
    "too few features": (X[:, :2], "'X' .* 2 features.* 3 features"),
    "too many features": (np.ones((5, 4)), "'X' .* 4 features.* 3 features"),
    "one row without its dimension": (X[0], "'X' .* two-dimensional"),
    "no rows": (X[:0], "'X' .* at least 1 row"),
    "inf": (changed(X, (3, 0), np.inf), "'X' .* Got inf in row 3, column 0"),
    "text": (X.astype(str), "'X' .* Got <U"),
    "a frame of other columns": (
        pd.DataFrame(X, columns=["age", "price", "cost"]),
        r"'X' .* without \['income'\]",
    ),
}


@pytest.mark.parametrize("method", ["predict", "predict_oob", "apply", "forest_weights"])
@pytest.mark.parametrize(("query", "said"), REFUSED_QUERIES.values(), ids=REFUSED_QUERIES.keys())
def test_a_query_is_refused_by_name_rule_and_value(
    fitted: CurveForest, method: str, query: Any, said: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=f"The {said}"):
        getattr(fitted, method)(query)


def test_out_of_bag_curves_of_other_rows_than_the_training_rows_are_refused(
    fitted: CurveForest,
) -> None:
    with pytest.raises(ValueError, match=r"The 'X' parameter must .* Got 59 "):
        fitted.predict_oob(X[1:])


def test_columns_of_a_query_are_found_by_name_and_of_an_array_by_place(fitted: CurveForest) -> None:
    expected = fitted.predict(X)
    columns = {"price": X[:, 2], "extra": ONES, "age": X[:, 0], "income": X[:, 1]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(fitted.predict(frame), expected)


def test_names_of_an_earlier_fit_are_forgotten() -> None:
    model = forest().fit(pd.DataFrame(X, columns=COLUMNS), Y)
    assert list(model.feature_names_in_) == COLUMNS
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


# --- anything at all ---------------------------------------------------------------------------

JUNK: dict[str, Any] = {
    "None": None,
    "text": "nonsense",
    "a number": 3,
    "a negative number": -1,
    "zero": 0,
    "a fraction": 1.5,
    "NaN": float("nan"),
    "inf": float("inf"),
    "a huge number": 2**70,
    "no list": [],
    "a ragged list": [[1.0], [1.0, 2.0]] * (N_ROWS // 2),
    "a list of text": ["a"] * N_ROWS,
    "a list of None": [None] * N_ROWS,
    "a dict": {"a": 1},
    "an object": object(),
    "numbers": ONES,
    "cube": np.ones((N_ROWS, 2, 2)),
    "complex numbers": ONES * 1j,
    "times": np.full(N_ROWS, "2024-01-01", "M8[D]"),
    "records": np.zeros(N_ROWS, [("a", "f8"), ("b", "i4")]),
    "a frame": pd.DataFrame({"a": ["x"] * N_ROWS}),
}
FIT_PARAMETERS = [
    *("X", "y", "doses", "quadrature", "leaf_channels", "spread"),
    *("sample_weight", "groups", "row_ids"),
]


def assert_fits_or_is_refused_by(
    name: str, options: dict[str, Any], fit_options: dict[str, Any]
) -> None:
    try:
        model = forest(**options).fit(**({"X": X, "y": Y} | fit_options))
        predicted = model.predict(X[:, : model.n_features_in_])
    except (ValueError, TypeError, MemoryError) as refusal:
        assert f"'{name}'" in str(refusal)  # noqa: PT017 - a fit may as well succeed
    else:
        assert np.isfinite(predicted).all()


@pytest.mark.parametrize("name", FIT_PARAMETERS)
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_anything_given_to_fit_is_used_or_refused_by_name(name: str, junk: Any) -> None:
    assert_fits_or_is_refused_by(name, {}, {name: junk})


@pytest.mark.parametrize("name", sorted(CurveForest().get_params()))
@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK.keys())
def test_anything_given_to_the_forest_is_used_or_refused_by_name(name: str, junk: Any) -> None:
    assert_fits_or_is_refused_by(name, {name: junk}, {"spread": ONES} if name == "zeta" else {})


EXTREME_GRIDS = {
    "doses far apart": ("doses", [-1.7e308, 1.5e308, 1.6e308, 1.7e308]),
    "doses next to each other": ("doses", 1 + np.arange(4) * 2.0**-52),
    "huge quadrature": ("quadrature", [1e308] * N_DOSES),
    "tiny quadrature": ("quadrature", [5e-324] * N_DOSES),
}


@pytest.mark.parametrize(("name", "grid"), EXTREME_GRIDS.values(), ids=EXTREME_GRIDS.keys())
@weighted_or_not
@every_distance
def test_extreme_grids_are_used_or_refused_by_name(
    name: str, grid: Any, weights: Any, distance: Any
) -> None:
    assert_fits_or_is_refused_by(
        name, {"distance": distance}, {name: grid, "sample_weight": weights}
    )


def test_a_form_of_curve_that_is_no_instance_is_refused() -> None:
    with pytest.raises((ValueError, TypeError), match="'leaf_curve' parameter"):
        forest(leaf_curve=MeanCurve).fit(X, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"n_trees": np.int64(7), "min_node_size": np.int64(3), "max_depth": np.int64(3)},
        {"n_trees": np.uint8(200), "min_node_size": np.int16(1)},
        {"min_node_size": np.uint8(200)},
        {"n_jobs": np.int32(2), "bag_size": np.int8(2), "mtry": np.int16(2)},
        {"max_bins": np.uint8(255), "memory_limit": np.int64(10**9)},
        {"sample_fraction": np.float32(0.5), "honesty_fraction": np.float16(0.5)},
        {"zeta": np.float32(0), "min_info_gain": np.float32(0.1)},
    ],
    ids=lambda options: ", ".join(options),
)
def test_numbers_of_numpy_are_taken_like_those_of_python(options: dict[str, Any]) -> None:
    plain = {name: value.item() for name, value in options.items()}
    np.testing.assert_array_equal(
        forest(**options).fit(X, Y).predict(X), forest(**plain).fit(X, Y).predict(X)
    )
