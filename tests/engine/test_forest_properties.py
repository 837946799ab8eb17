"""What holds of a forest of curves under all of its options together."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from doseforest import CurveForest, load_forest
from doseforest.engine import (
    MeanCurve,
    RatioCurve,
    RidgeMoments,
    SplitByMeanSlopes,
    SplitByRatios,
    SplitByRatioSlopes,
    SplitByScores,
    TreatmentGuard,
)
from doseforest.engine.splits.distances import CURVE_DISTANCES
from doseforest.estimator.corrections.moments import moment_channels
from forests import assert_same_bits


def largest_gap(left, right, quadrature):
    """A distance of the user's own, searched in NumPy."""
    return np.abs((left - right) * quadrature).max(axis=-1)


@dataclass(frozen=True)
class Case:
    """A forest to grow: parameters, a table, and what fit is given for each row or once."""

    parameters: dict[str, Any]
    x: np.ndarray
    by_row: dict[str, Any]  # arguments of fit with an entry per row
    once: dict[str, Any]

    def grown(self, order=slice(None), **parameters):
        forest = CurveForest(**{**self.parameters, **parameters})
        rows = {name: values[order] for name, values in self.by_row.items()}
        return forest.fit(self.x[order], rows.pop("y"), **rows, **self.once)

    @property
    def channels(self):
        return self.by_row.get("leaf_channels", self.by_row["y"])


@st.composite
def cases(draw):
    n, p, k = draw(st.integers(4, 120)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    x = rng.normal(size=(n, p))
    few = rng.random(p) < 0.5
    x[:, few] = rng.integers(0, 3, size=(n, p))[:, few]
    signal = np.sin(3 * x[:, :1]) * np.linspace(0, 1, k)
    y = draw(st.sampled_from([0.01, 1.0, 1e6])) * (signal + 0.5 * rng.normal(size=(n, k)))
    x[rng.random(x.shape) < draw(st.sampled_from([0.0, 0.2, 0.9]))] = np.nan
    by_row: dict[str, Any] = {"y": y, "row_ids": rng.permutation(10 * n)[:n]}
    once: dict[str, Any] = {}
    parameters = draw(parameter_sets(p))
    _add_weights(draw, rng, n, by_row)
    _add_spread(draw, rng, n, by_row, parameters)
    _add_leaves(draw, rng, by_row, parameters)
    if draw(st.booleans()):
        by_row["groups"] = rng.choice([f"group {i}" for i in range(max(2, n // 4))], size=n)
    if parameters["honesty"] == "none" and draw(st.booleans()):
        by_row["grows"] = np.arange(n) % draw(st.integers(2, 4)) == 0
        if "sample_weight" in by_row:
            by_row["sample_weight"][:2] = 2.0  # one of them grows, the other fills
    match draw(st.sampled_from(["doses", "quadrature", "neither"])):
        case "doses":
            once["doses"] = np.cumsum(rng.uniform(0.1, 3, size=k))
        case "quadrature":
            once["quadrature"] = rng.integers(0, 3, size=k) + (np.arange(k) == 0)
    if draw(st.booleans()):
        parameters["categorical_features"] = np.flatnonzero(few).tolist()
    _add_statistic(draw, rng, by_row, once, parameters)
    if draw(st.booleans()):
        parameters["guard"] = TreatmentGuard(min_treatment_variance=draw(st.floats(0.01, 1.5)))
        by_row["treatment"] = rng.normal(size=n)
    return Case(parameters, x, by_row, once)


@st.composite
def parameter_sets(draw, n_features):
    sampling = draw(st.sampled_from(["subsample", "bootstrap"]))
    bag_size = draw(st.integers(1, 3))
    most = 0.5 if bag_size > 1 and sampling == "subsample" else 1.0
    return {
        "n_trees": draw(st.integers(1, 7)),
        "distance": draw(st.sampled_from([*sorted(CURVE_DISTANCES), largest_gap])),
        "min_node_size": draw(st.sampled_from([1, 2, 5, 20])),
        "max_depth": draw(st.sampled_from([None, None, 0, 1, 4])),
        "min_info_gain": draw(st.sampled_from([0.0, 0.0, 0.1])),
        "min_child_fraction": draw(st.sampled_from([0.0, 0.2, 0.5])),
        "mtry": draw(st.sampled_from([None, "sqrt", 0.6, 1, n_features])),
        "mtry_scope": draw(st.sampled_from(["node", "tree"])),
        "sampling": sampling,
        "sample_fraction": draw(st.sampled_from([0.1, 0.5, most])),
        "bag_size": bag_size,
        "honesty": draw(st.sampled_from(["tree", "forest", "none"])),
        "honesty_fraction": draw(st.sampled_from([0.2, 0.5, 0.9])),
        "max_bins": draw(st.sampled_from([2, 3, 64, 255])),
        "random_state": draw(st.integers(0, 2**31)),
        "n_jobs": 1,
    }


def _add_weights(draw, rng, n, by_row):
    kind = draw(st.sampled_from(["none", "spread", "zeros"]))
    if kind == "spread":
        by_row["sample_weight"] = rng.uniform(0.5, 2, size=n)
    elif kind == "zeros":
        by_row["sample_weight"] = rng.choice([0.0, 1.0, 3.0], size=n)
        by_row["sample_weight"][rng.integers(n)] = 1.0


def _add_spread(draw, rng, n, by_row, parameters):
    parameters["zeta"] = draw(st.sampled_from([0.0, 0.3, 5.0]))
    parameters["positivity"] = draw(st.sampled_from(["conditional", "mixture"]))
    if parameters["zeta"]:
        first = rng.uniform(0, 1, size=n)
        moments = np.column_stack([first, first**2 + rng.uniform(0, 1, size=n)])
        by_row["spread"] = first if parameters["positivity"] == "conditional" else moments


def _add_leaves(draw, rng, by_row, parameters):
    n, k = by_row["y"].shape
    match draw(st.sampled_from(["default", "mean", "ratio", "ridge"])):
        case "mean":
            parameters["leaf_curve"] = MeanCurve()
            by_row["leaf_channels"] = rng.lognormal(size=(n, draw(st.integers(1, 20))))
        case "ratio":
            parameters["leaf_curve"] = RatioCurve(draw(st.sampled_from([0.0, 0.5])))
            kernel = rng.uniform(0, 1, size=(n, k)) * (rng.random((n, k)) < 0.5)
            by_row["leaf_channels"] = np.hstack([by_row["y"] * kernel, kernel])
        case "ridge":
            parameters["leaf_curve"] = RidgeMoments(draw(st.sampled_from([(0.0,), (0.0, 0.1)])))
            z = rng.normal(size=(n, len(parameters["leaf_curve"].penalty)))
            upper = [z[:, i] * z[:, j] for i in range(z.shape[1]) for j in range(i, z.shape[1])]
            by_row["leaf_channels"] = np.column_stack([*upper, z * by_row["y"][:, :1]])


def _add_statistic(draw, rng, by_row, once, parameters):
    n, k = by_row["y"].shape
    kind = draw(st.sampled_from(["means", "slopes", "ratios", "ratio slopes", "scores"]))
    if kind == "slopes" and "doses" in once and k > 1:
        parameters["statistic"] = SplitByMeanSlopes()
    elif kind == "scores" and not parameters["zeta"]:
        z = rng.normal(size=(n, 2))
        parameters["statistic"] = SplitByScores((0.1, 0.0))
        by_row.setdefault("leaf_channels", by_row["y"])
        by_row["y"] = moment_channels(z, by_row["y"][:, 0])
        once.clear()  # scores are compared as they are, at no doses
    elif "ratio" in kind and not parameters["zeta"]:
        by_slopes = kind == "ratio slopes" and "doses" in once and k > 1
        recipe = SplitByRatioSlopes(derivative=False) if by_slopes else SplitByRatios()
        parameters["statistic"] = recipe
        kernel = rng.uniform(0, 1, size=(n, k)) * (rng.random((n, k)) < 0.5)
        by_row.setdefault("leaf_channels", by_row["y"])
        by_row["y"] = np.hstack([by_row["y"] * kernel, kernel])


def queries_of(case):
    """Rows of the table, rows between them, and one beyond."""
    x = case.x[:20]
    between = x[::-1] / 2
    codes = case.parameters.get("categorical_features") or []
    between[:, codes] = np.floor(between[:, codes])
    return np.vstack([x, between, np.full((1, x.shape[1]), 1e9), np.full_like(x[:1], np.nan)])


ALL_OPTIONS = settings(max_examples=150, derandomize=True, deadline=None)


@ALL_OPTIONS
@given(case=cases())
def test_answers_are_finite_and_between_the_means_of_leaves(case):
    fitted = case.grown()
    forest, queries = fitted.forest_, queries_of(case)
    filled = forest.leaf_weights > 0
    means = forest.leaf_sums[filled].astype(float) / forest.leaf_weights[filled, None]
    means = np.vstack([means, forest.fallback])
    averages = forest.average(queries, n_jobs=1)
    unseen = fitted.average_oob(case.x)
    room = 1e-12 * np.abs(means).max()  # of adding up a few means
    for values in (averages, unseen):
        assert (values >= means.min(axis=0) - room).all()
        assert (values <= means.max(axis=0) + room).all()
    assert np.isfinite(fitted.predict(queries)).all()
    assert np.isfinite(fitted.predict_oob(case.x)).all()


@ALL_OPTIONS
@given(case=cases(), seed=st.integers(0, 2**31), n_jobs=st.integers(2, 4))
def test_threads_and_the_order_of_rows_change_no_bit(case, seed, n_jobs):
    first = case.grown()
    assert_same_bits(first.forest_, case.grown(n_jobs=n_jobs).forest_)
    order = np.random.default_rng(seed).permutation(len(case.x))
    permuted = case.grown(order)
    assert_same_bits(first.forest_, permuted.forest_)
    queries = queries_of(case)
    expected = first.predict(queries)
    np.testing.assert_array_equal(permuted.predict(queries), expected)
    np.testing.assert_array_equal(first.set_params(n_jobs=n_jobs).predict(queries), expected)
    np.testing.assert_array_equal(
        permuted.predict_oob(case.x[order]), first.predict_oob(case.x)[order]
    )


@ALL_OPTIONS
@given(case=cases(), memory_map=st.booleans())
def test_a_saved_forest_answers_with_the_same_bits(case, memory_map):
    fitted, queries = case.grown(), queries_of(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.dose"
        fitted.save(path)
        loaded = load_forest(path, memory_map=memory_map)
        assert_same_bits(fitted.forest_, loaded)
        expected = fitted.forest_
        np.testing.assert_array_equal(loaded.predict(queries), expected.predict(queries))
        np.testing.assert_array_equal(loaded.apply(queries), expected.apply(queries))
        ids = case.by_row["row_ids"]
        np.testing.assert_array_equal(
            loaded.predict_oob(case.x, row_ids=ids), expected.predict_oob(case.x, row_ids=ids)
        )
        np.testing.assert_array_equal(loaded.feature_importances_, fitted.feature_importances_)


@ALL_OPTIONS
@given(case=cases())
def test_forest_weights_times_channels_are_the_averages(case):
    fitted, queries = case.grown(), queries_of(case)
    alpha = fitted.forest_weights(queries)
    assert alpha.shape == (len(queries), len(case.x))
    assert alpha.min() >= 0
    np.testing.assert_allclose(alpha.sum(axis=1), 1.0, rtol=1e-9)
    # Channels times weights are rounded to 2^-24 of the largest of their column; a row of the
    # smallest weight, a sixth of the largest, may be alone in a leaf.
    scale = np.abs(case.channels).max(axis=0)
    averages = fitted.forest_.average(queries, n_jobs=1)
    assert (np.abs(alpha @ case.channels - averages) <= 1e-6 * scale).all()
    weights = case.by_row.get("sample_weight", np.ones(len(case.x)))
    assert not alpha[:, weights == 0].sum()
    if "grows" in case.by_row:
        assert not alpha[:, case.by_row["grows"]].sum()
