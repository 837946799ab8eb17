"""What a finished forest answers, against definitions written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from doseforest import CurveForest
from doseforest.base.dtypes import LEAF, MISSING_LEFT
from doseforest.engine import RatioCurve, RidgeMoments
from forests import single_tree, wavy_data

MODES = {
    "honest trees": {},
    "honest forest": {"honesty": "forest", "honesty_fraction": 0.4},
    "not honest": {"honesty": "none"},
    "bootstrap": {"sampling": "bootstrap", "honesty": "none"},
    "honest bootstrap": {"sampling": "bootstrap"},
    "little bags": {"bag_size": 2, "sample_fraction": 0.4},
}


@pytest.fixture(params=MODES, name="fitted")
def _fitted(request):
    x, y, doses = wavy_data(n=600)
    weights = np.random.default_rng(2).uniform(0.5, 2, size=len(x))
    forest = CurveForest(20, min_node_size=5, random_state=3, **MODES[request.param])
    return forest.fit(x, y, doses=doses, sample_weight=weights), x, y, weights


def walk(nodes, root, row):
    """Leaf of one row, one step at a time."""
    number = root
    while not nodes["flags"][number] & LEAF:
        value = row[nodes["feature"][number]]
        missing_left = bool(nodes["flags"][number] & MISSING_LEFT)
        left = missing_left if np.isnan(value) else value <= nodes["threshold"][number]
        number = nodes["left"][number] + (not left)
    return nodes["left"][number]


def test_leaf_ids_equal_a_walk_down_each_tree(fitted):
    forest, x, *_ = fitted
    expected = [
        [walk(forest.forest_.nodes, root, row) for root in forest.forest_.roots] for row in x[:40]
    ]
    np.testing.assert_array_equal(forest.apply(x[:40]), expected)


def test_predictions_are_forest_weights_times_training_curves(fitted):
    forest, x, y, _ = fitted
    queries = np.vstack([x[:50], np.random.default_rng(0).normal(size=(50, x.shape[1]))])
    alpha = forest.forest_weights(queries)
    assert sparse.issparse(alpha)
    assert alpha.shape == (100, 600)
    np.testing.assert_allclose(alpha.sum(axis=1), 1.0)
    assert alpha.min() >= 0
    np.testing.assert_allclose(alpha @ y, forest.predict(queries), atol=1e-6 * np.abs(y).max())


def test_predictions_average_the_means_of_the_leaves(fitted):
    forest, x, *_ = fitted
    arrays = forest.forest_
    leaves = forest.apply(x)
    means = arrays.leaf_sums.astype(float) / arrays.leaf_weights[:, None]
    np.testing.assert_allclose(
        forest.predict(x), means[leaves].mean(axis=1), rtol=1e-12, atol=1e-12
    )


def in_bag(forest, n_rows):
    """Copies of each row that each tree saw, from the hash rules written out in NumPy."""
    from doseforest.base.seeds import draw, stream, uniform

    plan, ids = forest.forest_.plan, np.arange(n_rows, dtype=np.uint64)
    seen = np.empty((n_rows, forest.n_trees), bool)
    for tree in range(forest.n_trees):
        owner = np.array([tree], np.uint64)
        u = uniform(draw(stream(plan.seed, 2, owner), ids))
        if plan.bootstrap:
            seen[:, tree] = u >= np.exp(-1)
        elif plan.bag_size == 1:
            seen[:, tree] = u < plan.fraction
        else:
            bag = stream(plan.seed, 1, owner // np.uint64(plan.bag_size))
            seen[:, tree] = (uniform(draw(bag, ids)) < 0.5) & (u < 2 * plan.fraction)
    return seen


def test_out_of_bag_curves_come_from_trees_that_did_not_see_the_row(fitted):
    forest, x, *_ = fitted
    arrays = forest.forest_
    seen = in_bag(forest, len(x))
    assert 0 < seen.mean() < 1
    means = (arrays.leaf_sums.astype(float) / arrays.leaf_weights[:, None])[forest.apply(x)]
    n_unseen = (~seen).sum(axis=1)
    expected = (means * ~seen[:, :, None]).sum(axis=1) / np.maximum(n_unseen, 1)[:, None]
    expected[n_unseen == 0] = arrays.fallback
    np.testing.assert_allclose(forest.predict_oob(x), expected, rtol=1e-10, atol=1e-12)


def test_honest_leaves_know_nothing_of_the_rows_that_grew_them():
    """Changing the curves of the rows that fill the leaves changes values, never splits."""
    x, y, _ = wavy_data(n=800)
    plan = {"honesty": "forest", "random_state": 3, "min_node_size": 10}
    first = CurveForest(8, **plan).fit(x, y)
    fills = first.forest_weights(x).sum(axis=0) > 0
    assert 0.3 < fills.mean() < 0.7
    # Half the size keeps the largest values, hence the grid of the growth rows, as they are.
    other = np.where(fills[:, None], y / 2, y)
    second = CurveForest(8, **plan).fit(x, other)
    np.testing.assert_array_equal(first.forest_.nodes, second.forest_.nodes)
    assert not np.allclose(first.predict(x), second.predict(x))


def test_no_leaf_is_empty_after_pruning():
    x, y, _ = wavy_data(n=300)
    forest = CurveForest(30, min_node_size=1, honesty_fraction=0.9, random_state=0).fit(x, y)
    assert (forest.forest_.leaf_weights > 0).all()
    unpruned = CurveForest(
        30, min_node_size=1, honesty="none", sample_fraction=0.45, random_state=0
    )
    assert forest.forest_.n_leaves < unpruned.fit(x, y).forest_.n_leaves


def test_an_empty_side_gives_its_place_to_the_other():
    """A leaf that nothing fills disappears and its sibling answers for both."""
    x, y, _ = wavy_data(n=400, missing=0)
    weights = (x[:, 0] > 0).astype(float)  # rows below 0 grow nothing and fill nothing
    forest = single_tree(min_node_size=5).fit(x, y, sample_weight=weights)
    np.testing.assert_allclose(forest.predict(x[:50]), forest.forest_weights(x[:50]) @ y, atol=1e-5)
    assert (forest.forest_.leaf_weights > 0).all()


def test_groups_enter_and_leave_trees_together():
    x, y, _ = wavy_data(n=400)
    groups = np.repeat([f"customer {i}" for i in range(40)], 10)
    for seed in range(5):
        tree = CurveForest(1, min_node_size=5, random_state=seed).fit(x, y, groups=groups)
        # One row per leaf: together they hold every row that fills the tree.
        _, one_per_leaf = np.unique(tree.apply(x), return_index=True)
        fills = (tree.forest_weights(x[one_per_leaf]).sum(axis=0) > 0).reshape(40, 10)
        assert (fills == fills[:, :1]).all()
        assert 0 < fills.mean() < 1


def test_more_trees_leave_the_first_trees_as_they_are():
    x, y, _ = wavy_data(n=400)
    few = CurveForest(5, random_state=1).fit(x, y).forest_
    many = CurveForest(12, random_state=1).fit(x, y).forest_
    np.testing.assert_array_equal(many.nodes[: len(few.nodes)], few.nodes)


def test_missing_values_follow_the_direction_that_gains():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(500, 1))
    missing = rng.random(500) < 0.3
    y = np.where(missing | (x[:, 0] > 0.5), 1.0, 0.0)
    x[missing] = np.nan
    predicted = single_tree(max_depth=1).fit(x, y).predict([[0.2], [0.8], [np.nan]])
    np.testing.assert_allclose(predicted, [0.0, 1.0, 1.0], atol=1e-6)


def test_missing_against_the_rest_is_a_split():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(500, 1))
    missing = rng.random(500) < 0.5
    x[missing] = np.nan
    predicted = (
        single_tree(max_depth=1).fit(x, missing.astype(float)).predict([[-9], [9], [np.nan]])
    )
    np.testing.assert_allclose(predicted, [0.0, 0.0, 1.0], atol=1e-6)


def test_missing_values_never_seen_in_training_go_with_the_majority():
    x = np.arange(100.0)[:, None]
    y = (x[:, 0] >= 70).astype(float)
    assert single_tree(max_depth=1).fit(x, y).predict([[np.nan]])[0] == pytest.approx(0.0)
    assert single_tree(max_depth=1).fit(-x, y).predict([[np.nan]])[0] == pytest.approx(0.0)


def test_ratio_leaves_divide_averaged_sums():
    x, y, _ = wavy_data(n=500, k=3)
    rng = np.random.default_rng(1)
    denominators = rng.uniform(0.5, 2, size=(500, 3))
    channels = np.hstack([y * denominators, denominators])
    forest = CurveForest(20, random_state=0, leaf_curve=RatioCurve()).fit(
        x, y, leaf_channels=channels
    )
    alpha = forest.forest_weights(x[:60])
    expected = (alpha @ channels[:, :3]) / (alpha @ channels[:, 3:])
    np.testing.assert_allclose(forest.predict(x[:60]), expected, rtol=1e-5, atol=1e-6)


def test_ratio_leaves_without_a_denominator_give_the_overall_ratio():
    averages = np.array([[1.0, 0.0], [0.0, 0.0]])
    fallback = np.array([3.0, 2.0])
    np.testing.assert_allclose(RatioCurve().solve(averages, fallback, 1), [[1.5], [1.5]])
    shrunk = RatioCurve(shrinkage=0.5).solve(np.array([[1.0, 1.0]]), fallback, 1)
    np.testing.assert_allclose(shrunk, [[2.5 / 2.0]])


def packed_moments(basis, response):
    products = basis[:, :, None] * basis[:, None, :]
    upper = np.triu_indices(basis.shape[1])
    return np.hstack([products[:, upper[0], upper[1]], basis * response[:, None]])


@pytest.mark.parametrize("k", [1, 2, 7])
def test_ridge_leaves_solve_the_weighted_moments(k):
    rng = np.random.default_rng(k)
    x = rng.normal(size=(500, 3))
    basis = rng.normal(size=(500, k))
    response = basis @ rng.normal(size=k) * (x[:, 0] > 0) + rng.normal(size=500)
    penalty = np.linspace(0.1, 1.0, k)
    forest = CurveForest(20, random_state=0, leaf_curve=RidgeMoments(tuple(penalty)))
    forest.fit(x, response, leaf_channels=packed_moments(basis, response))
    for alpha, solved in zip(
        forest.forest_weights(x[:20]).toarray(), forest.predict(x[:20]), strict=True
    ):
        matrix = basis.T * alpha @ basis + np.diag(penalty)
        expected = np.linalg.solve(matrix, basis.T @ (alpha * response))
        np.testing.assert_allclose(solved, expected, rtol=1e-4, atol=1e-6)


def test_ridge_directions_without_information_get_zero():
    basis = np.array(
        [[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]]
    )  # second is twice the first, third is absent
    moments = packed_moments(basis, np.array([1.0, 3.0])).mean(axis=0)[None, :]
    solved = RidgeMoments((0.0, 0.0, 0.0)).solve(moments, moments[0], 1)
    np.testing.assert_allclose(solved, [[1.4, 0.0, 0.0]], atol=1e-12)


def test_rows_that_every_tree_has_seen_are_told_of():
    x, y, _ = wavy_data(n=100)
    forest = CurveForest(3, sample_fraction=1.0, random_state=0).fit(x, y)
    with pytest.warns(UserWarning, match="100 of 100 rows have no filled tree"):
        out_of_bag = forest.predict_oob(x)
    np.testing.assert_array_equal(out_of_bag, np.tile(forest.forest_.fallback, (100, 1)))


def test_collinear_moments_give_coefficients_of_the_size_of_the_fit():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    b = rng.normal(size=400)
    channels = packed_moments(np.column_stack([b, 0.1 * b]), b + 0.1 * rng.normal(size=400))
    forest = CurveForest(20, random_state=0, leaf_curve=RidgeMoments((0.0, 0.0)))
    coefficients = forest.fit(x, b, leaf_channels=channels).predict(x)
    assert np.abs(coefficients).max() < 2


def test_a_forest_of_empty_trees_answers_with_the_overall_mean():
    forest = CurveForest(3, sample_fraction=1e-9, random_state=0).fit(
        [[1.0], [2.0]], [[3.0], [5.0]]
    )
    np.testing.assert_allclose(forest.predict([[1.0]]), [[4.0]])
    np.testing.assert_allclose(forest.predict_oob([[1.0], [2.0]]), [[4.0], [4.0]])


def test_one_row_or_many_at_a_time_give_the_same_curves():
    x, y, _ = wavy_data(n=300)
    forest = CurveForest(10, random_state=0).fit(x, y)
    together = forest.predict(x)
    np.testing.assert_array_equal(np.vstack([forest.predict(row[None, :]) for row in x]), together)
    np.testing.assert_array_equal(forest.forest_.predict(x, n_jobs=4), together)


def test_marked_halves_need_rows_of_positive_weight():
    x, y, _ = wavy_data(n=100)
    grows = np.arange(100) % 2 == 0
    forest = CurveForest(2, honesty="none", random_state=0)
    for weightless, purpose in ((~grows, "fill leaves"), (grows, "grow trees")):
        weights = np.where(weightless, 0.0, 1.0)
        with pytest.raises(ValueError, match=f"'grows' .* of positive weight to {purpose}"):
            forest.fit(x, y, grows=grows, sample_weight=weights)
    weights = np.where(grows, 3.0, 1.0)
    assert np.isfinite(forest.fit(x, y, grows=grows, sample_weight=weights).predict(x)).all()
