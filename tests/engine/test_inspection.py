"""What is told about the inside of a forest: importance, trees as text and as pictures."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

from doseforest import CurveForest, load_forest
from doseforest.base.dtypes import LEAF, MISSING_LEFT, NODE_DTYPE
from doseforest.data.sampling import SamplingPlan
from doseforest.engine import Forest, MeanCurve, RatioCurve
from doseforest.engine.look_inside.tree_view import view_tree
from doseforest.report.tree_plot import box_centres
from forests import single_tree, wavy_data


def forest_of(trees, leaf_sums, leaf_weights, **parameters):
    """A forest of hand-made trees: (threshold, left, feature, bin, flags) and gain of each node."""
    nodes = np.array([node for tree in trees for node, _ in tree], NODE_DTYPE)
    sums = np.array(leaf_sums, np.float32)
    settings = {
        "nodes": nodes,
        "gains": np.array([gain for tree in trees for _, gain in tree]),
        "roots": np.cumsum([0, *(len(tree) for tree in trees[:-1])]),
        "leaf_sums": sums,
        "leaf_weights": np.array(leaf_weights, np.float32),
        "fallback": np.full(sums.shape[1], 0.5),
        "plan": SamplingPlan(0),
        "leaf_curve": MeanCurve(),
        "n_features": 3,
        "n_training_rows": 80,
        "feature_names": ("income", "age", "city"),
    }
    return Forest(**{**settings, **parameters})


@pytest.fixture(name="forest")
def _forest():
    """Tree 0 splits on income, then on age; tree 1 is a stump on age, tree 2 a lone leaf."""
    first = [
        ((3.5, 1, 0, 1, MISSING_LEFT), 6.0),
        ((0.0, 0, 0, 0, LEAF), 0.0),
        ((40.0, 3, 1, 2, 0), 3.0),
        ((0.0, 1, 0, 0, LEAF), 0.0),
        ((0.0, 2, 0, 0, LEAF), 0.0),
    ]
    second = [
        ((np.inf, 6, 1, 2, 0), 3.0),
        ((0.0, 3, 0, 0, LEAF), 0.0),
        ((0.0, 4, 0, 0, LEAF), 0.0),
    ]
    sums = [[40.0, 20.0], [10.0, 0.0], [60.0, 90.0], [5.0, 5.0], [0.0, 7.5], [8.0, 16.0]]
    return forest_of([first, second, [((0.0, 5, 0, 0, LEAF), 0.0)]], sums, [40, 10, 30, 5, 15, 8])


def deep_chain(depth):
    """A tree whose right side splits again and again, far deeper than Python would recurse."""
    tree = []
    for level in range(depth):
        tree.append(((float(level), 2 * level + 1, level % 3, 0, 0), 1.0))
        if level:
            tree[-1], leaf = ((0.0, level - 1, 0, 0, LEAF), 0.0), tree[-1]
            tree.append(leaf)
    tree += [((0.0, depth - 1 + side, 0, 0, LEAF), 0.0) for side in (0, 1)]
    ones = np.ones((depth + 1, 1))
    return forest_of([tree], ones, ones[:, 0])


@settings(max_examples=60, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(30, 200), min_leaf=st.integers(8, 20))
def test_one_tree_with_one_outcome_has_scikit_learns_importance(seed, n, min_leaf):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))  # at most 200 values: every one has its own bin
    y = rng.integers(-4096, 4096, size=n) / 64  # exact on the grid
    # Leaves of eight or more: two features part a node alike, a tie, once in 10,000 such nodes.
    oracle = DecisionTreeRegressor(min_samples_leaf=min_leaf, random_state=0).fit(x, y)
    ours = single_tree(min_node_size=min_leaf).fit(x, y)
    np.testing.assert_allclose(
        ours.feature_importances_, oracle.feature_importances_, rtol=1e-9, atol=1e-12
    )


def test_gains_add_up_over_trees_with_weights_by_depth(forest):
    # Splits: income 6 at depth 0, age 3 at depth 1, age 3 at depth 0.
    importance = forest.feature_importance()
    np.testing.assert_allclose(importance.values, [6 / 12, 6 / 12, 0])
    np.testing.assert_array_equal(forest.feature_importances_, importance.values)
    assert importance.names == ("income", "age", "city")
    np.testing.assert_allclose(
        forest.feature_importance(decay=1.0).values, [6 / 10.5, 4.5 / 10.5, 0]
    )
    np.testing.assert_allclose(forest.feature_importance(decay=[1, 0.25]).values[0], 6 / 9.75)
    np.testing.assert_allclose(forest.feature_importance(decay=[0, 1]).values, [0, 1, 0])
    np.testing.assert_allclose(forest.feature_importance(max_depth=1).values, [6 / 9, 3 / 9, 0])
    np.testing.assert_array_equal(forest.feature_importance(max_depth=0).values, 0.0)


def test_counts_are_counts(forest):
    np.testing.assert_allclose(forest.feature_importance(by="count").values, [1 / 3, 2 / 3, 0])
    np.testing.assert_allclose(
        forest.feature_importance(by="count", decay=2.0).values, [1 / 2.25, 1.25 / 2.25, 0]
    )
    grown = CurveForest(10, min_node_size=20, random_state=0).fit(*wavy_data(n=600)[:2]).forest_
    is_split = (grown.nodes["flags"] & LEAF) == 0
    counts = np.bincount(grown.nodes["feature"][is_split], minlength=8)
    np.testing.assert_allclose(
        grown.feature_importance(by="count").values, counts / counts.sum(), rtol=1e-12
    )


def test_the_features_behind_the_curves_are_the_important_ones():
    x, y, doses = wavy_data(n=1500)
    forest = CurveForest(20, random_state=0).fit(x, y, doses=doses)
    importance = forest.feature_importance()
    assert {name for name, _ in importance.ranked()[:2]} == {"x[0]", "x[1]"}
    # Two of eight features make the curves; noise of a third of their size gains the rest.
    assert importance.values[:2].sum() > 0.8
    assert importance.values.sum() == pytest.approx(1.0, rel=1e-12)
    assert forest.feature_importance(max_depth=2).values[:2].sum() > importance.values[:2].sum()


def test_huge_gains_do_not_overflow(forest):
    huge = forest_of([[((0.0, 1, f, 0, 0), 1.7e308), *leaves(2 * f)] for f in range(2)], *unit(4))
    huge.nodes["left"][3] = 4
    np.testing.assert_allclose(huge.feature_importances_, [0.5, 0.5, 0.0])


def leaves(first):
    return [((0.0, first + side, 0, 0, LEAF), 0.0) for side in (0, 1)]


def unit(n):
    return np.ones((n, 1)), np.ones(n)


def test_a_forest_without_splits_has_no_important_feature():
    forest = single_tree().fit(np.arange(10.0)[:, None], np.zeros(10))
    np.testing.assert_array_equal(forest.feature_importances_, [0.0])
    assert forest.tree_text() == "leaf 0: weight 10, curve 0"


def test_importance_and_text_survive_a_file(tmp_path):
    x, y, _ = wavy_data(n=300, p=3, k=4)
    fitted = CurveForest(3, random_state=0).fit(x, y)
    fitted.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    np.testing.assert_array_equal(loaded.feature_importances_, fitted.feature_importances_)
    assert loaded.tree_text(2) == fitted.tree_text(2)


def test_the_text_of_a_hand_made_tree(forest):
    assert forest.tree_text().splitlines() == [
        "income <= 3.5, missing left (gain 6, weight 80)",
        "yes -> leaf 0: weight 40, curve 1 0.5",
        "no  -> age <= 40, missing right (gain 3, weight 40)",
        "|   yes -> leaf 1: weight 10, curve 1 0",
        "|   no  -> leaf 2: weight 30, curve 2 3",
    ]
    assert forest.tree_text(1).splitlines()[0] == "age is not missing (gain 3, weight 20)"


def test_what_is_not_shown_is_summed_up(forest):
    assert forest.tree_text(max_depth=1).splitlines()[1:] == [
        "yes -> leaf 0: weight 40, curve 1 0.5",
        "no  -> … 2 leaves: weight 40, curve 1.75 2.25",
    ]
    assert forest.tree_text(max_depth=0) == "… 3 leaves: weight 80, curve 1.38 1.38"


def test_leaves_are_read_as_the_forest_reads_them(forest):
    ratios = forest_of(
        [[((0.0, 0, 0, 0, LEAF), 0.0)]], [[6.0, 3.0]], [3.0], leaf_curve=RatioCurve()
    )
    assert ratios.tree_text() == "leaf 0: weight 3, curve 2"
    empty = forest_of([[((0.0, 0, 0, 0, LEAF), 0.0)]], [[0.0, 0.0]], [0.0])
    assert empty.tree_text() == "leaf 0: weight 0, curve 0.5 0.5"  # the overall mean, as predicted


def test_every_leaf_in_the_text_is_what_its_rows_are_answered_with():
    x, y, doses = wavy_data(n=800, p=3, k=4)
    forest = CurveForest(2, min_node_size=30, random_state=3).fit(x, y, doses=doses).forest_
    view = view_tree(forest, 1, None)
    is_leaf = (forest.nodes["flags"][view.nodes] & LEAF) > 0
    numbers = forest.nodes["left"][view.nodes[is_leaf]]
    means = forest.leaf_sums[numbers] / forest.leaf_weights[numbers, None].astype(float)
    np.testing.assert_allclose(view.curves[is_leaf], means, rtol=1e-12)
    np.testing.assert_array_equal(np.sort(numbers), np.unique(forest.apply(x)[:, 1]))
    assert view.weights[0] == forest.leaf_weights[numbers].sum(dtype=np.float64)
    assert view.depths.max() == forest.tree_depths()[1]


def test_a_tree_deeper_than_python_recurses_is_no_problem():
    depth = 3 * sys.getrecursionlimit()
    forest = deep_chain(depth)
    assert forest.tree_depths() == [depth]
    lines = forest.tree_text(max_depth=None).splitlines()
    assert len(lines) == 2 * depth + 1
    assert lines[-1] == "|   " * (depth - 1) + f"no  -> leaf {depth}: weight 1, curve 1"
    np.testing.assert_allclose(forest.feature_importances_, 1 / 3)


def test_the_picture_has_a_box_for_each_node_and_a_curve_for_each_leaf(forest, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for max_depth, n_boxes, n_leaves in [(None, 5, 3), (1, 3, 2), (0, 1, 1)]:
        ax = forest.plot_tree(max_depth=max_depth)
        assert len(ax.patches) == len(ax.texts) == n_boxes
        assert len(ax.lines) == (n_boxes - 1) + n_leaves  # links, then curves
        pyplot.close(ax.figure)
    ax = forest.plot_tree()
    captions = [text.get_text() for text in ax.texts]
    assert captions[0] == "income <= 3.5\nmissing left\nweight 80"
    assert captions[1] == "leaf 0\nweight 40"
    ax.figure.savefig(tmp_path / "tree.png")
    pyplot.close(ax.figure)
    picture = pyplot.imread(tmp_path / "tree.png")
    assert picture.shape[1] > picture.shape[0] > 200
    assert picture[..., :3].std() > 0.01  # not blank


def test_the_curves_in_a_picture_lie_over_the_doses(forest):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    three = forest_of(
        [[((0.0, 0, 0, 0, LEAF), 0.0)]], [[0.0, 1.0, 4.0]], [1.0], doses=(0.0, 1.0, 4.0)
    )
    ax = three.plot_tree()
    across, up = ax.lines[0].get_data()
    # A straight line over unequal doses stays one.
    np.testing.assert_allclose(np.diff(up) / np.diff(across), [np.ptp(up) / np.ptp(across)] * 2)
    pyplot.close(ax.figure)


def test_boxes_of_a_level_do_not_overlap():
    x, y, _ = wavy_data(n=800, p=3, k=4)
    forest = CurveForest(1, min_node_size=10, random_state=3).fit(x, y).forest_
    view = view_tree(forest, 0, 6)
    centres = box_centres(view)
    for depth in range(7):
        across = centres[view.depths == depth, 0]
        assert (np.diff(across) >= 1.0).all()  # reading order is from left to right


def test_a_name_with_a_comma_stays_whole(forest):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    ax = replace(forest, feature_names=("income, net", "age, years", "city")).plot_tree(0)
    assert ax.texts[0].get_text() == "income, net <= 3.5\nmissing left\nweight 80"
    pyplot.close(ax.figure)


def test_a_picture_is_drawn_where_it_is_wanted(forest):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    assert forest.plot_tree(1, ax=ax) is ax
    assert len(ax.patches) == 3
    pyplot.close(figure)


def test_a_missing_matplotlib_names_its_cure(forest, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install doseforest\[plot\]"):
        forest.plot_tree()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda f: f.feature_importance(by="cover"), "'by' parameter must be one of"),
        (lambda f: f.feature_importance(decay=-1.0), r"'decay' parameter .* Got -1.0"),
        (lambda f: f.feature_importance(decay=[]), "'decay' parameter"),
        (lambda f: f.feature_importance(decay=[[1.0]]), "'decay' parameter"),
        (lambda f: f.feature_importance(decay=[1.0, np.nan]), "'decay' parameter"),
        (lambda f: f.feature_importance(max_depth=-1), "'max_depth' parameter"),
        (lambda f: f.tree_text(3), r"'tree' parameter must be an int in \[0, 3\).*Got 3"),
        (lambda f: f.tree_text(-1), "'tree' parameter"),
        (lambda f: f.tree_text(0.0), "'tree' parameter"),
        (lambda f: f.tree_text(max_depth=1.5), "'max_depth' parameter .* Got 1.5"),
    ],
)
def test_errors_name_parameter_rule_and_value(forest, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(forest)


def test_too_many_boxes_are_refused():
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match=r"must leave at most 511 boxes.*Got None"):
        deep_chain(300).plot_tree(max_depth=None)


def test_before_fit_there_is_nothing_to_see():
    with pytest.raises(NotFittedError):
        CurveForest().tree_text()
    assert not hasattr(CurveForest(), "feature_importances_")
