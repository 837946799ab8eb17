"""Weights of the members of the outcome stack, by outcomes and by effects."""

import numpy as np
import pytest
from scipy.optimize import minimize

from doseforest import GeneralizedCausalForest
from doseforest.nuisance.cross_fit import HELD_OUT, cross_fit
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.outcome.stack_weights import (
    N_POSSIBLE,
    possible_doses,
    stack_weights,
    usual_outcomes,
)


class Plane:
    """A model whose curves are known: a + b x0 + c t + d x0 t."""

    def __init__(self, a=0.0, b=0.0, c=0.0, d=0.0):
        self.numbers = a, b, c, d

    def curves(self, X, doses, *, n_threads=1):
        a, b, c, d = self.numbers
        x, t = X[:, :1], np.atleast_2d(doses)
        return a + b * x + c * t + d * x * t


def drawn(n=600, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, x[:, 0] + rng.normal(size=n), rng


def test_effects_are_judged_by_a_convex_least_squares_of_what_is_left_of_levels():
    x, t, rng = drawn()
    y = 3 * x[:, 0] + t * (1 + x[:, 1]) + rng.normal(size=len(t))
    observed = np.column_stack([3 * x[:, 0] + t, t * (1 + x[:, 1]), 0.5 * t])
    usual = np.column_stack([4 * x[:, 0], x[:, 0] * (1 + x[:, 1]), 0.5 * x[:, 0]])
    weights = rng.uniform(0.5, 2.0, len(t))
    by_outcome = convex_weights(observed, y, weights)
    target, columns = y - usual @ by_outcome, observed - usual

    def risk(w):
        return (weights * (target - columns @ w) ** 2).sum() / len(t)

    best = minimize(
        risk,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(
        stack_weights(observed, usual, y, weights), (by_outcome + best) / 2, atol=1e-4
    )


def test_a_level_that_a_member_adds_to_all_doses_changes_nothing_for_effects():
    x, t, _ = drawn()
    y = t * (1 + x[:, 1])
    members = np.column_stack([t * (1 + x[:, 1]) + 5, t])
    means = np.column_stack([x[:, 0] * (1 + x[:, 1]) + 5, x[:, 0]])
    shares = stack_weights(members, means, y)
    by_outcome = convex_weights(members, y)
    assert 2 * shares[0] - by_outcome[0] > 0.95  # of the weights by effects


def test_some_rows_may_judge_effects_alone():
    x, t, rng = drawn()
    y = t + x[:, 0] + rng.normal(size=len(t))
    members, means = np.column_stack([t, x[:, 0]]), np.column_stack([x[:, 0], x[:, 0]])
    rows = np.arange(0, 600, 3)
    some = stack_weights(members, means[rows], y, rows=rows)
    alone = convex_weights(
        (members - means)[rows], y[rows] - means[rows] @ convex_weights(members, y)
    )
    np.testing.assert_allclose(some, (convex_weights(members, y) + alone) / 2)


def test_possible_doses_lie_around_the_mean_dose_of_a_row_and_inside_the_observed_ones():
    x, t, _ = drawn(4000)
    asked = possible_doses(x, t, np.arange(4000) % 4)
    assert asked.shape == (4000, N_POSSIBLE)
    assert asked.min() >= t.min()
    assert asked.max() <= t.max()
    inner = np.abs(x[:, 0]) < 1
    left = asked.mean(axis=1) - x[:, 0]
    assert np.sqrt((left[inner] ** 2).mean()) < 0.2  # of doses that spread by 1 around it
    assert asked.std(axis=1).mean() == pytest.approx(1.0, abs=0.1)


def test_possible_doses_of_few_levels_are_levels_and_of_pairs_are_pairs():
    x, _, rng = drawn()
    levels = rng.choice([0.0, 5.0, 10.0], 600, p=[0.5, 0.25, 0.25])
    folds = np.arange(600) % 4
    asked = possible_doses(x, levels, folds)
    assert asked.shape == (N_POSSIBLE,)
    assert sorted(set(asked)) == [0.0, 5.0, 10.0]
    assert (asked == 0.0).mean() == pytest.approx(0.5, abs=0.1)
    pairs = np.empty(600, [("0", float), ("1", float)])
    pairs["0"], pairs["1"] = levels, rng.uniform(size=600)
    assert np.isin(possible_doses(x, pairs, folds, seed=1), pairs).all()


def test_held_out_rows_lend_no_doses():
    x, _, rng = drawn()
    t = rng.uniform(0, 1, 600)
    folds = np.where(np.arange(600) < 60, HELD_OUT, np.arange(600) % 4)
    t[:60] = 100.0
    assert possible_doses(x, t, folds)[60:].max() <= 1.0


def test_rows_without_weight_lend_no_doses():
    x, _, rng = drawn()
    t = rng.uniform(0, 3, 600)
    weights = np.where(np.arange(600) < 300, 1.0, 0.0)
    t[300:] += 1e6
    asked = possible_doses(x, t, np.arange(600) % 4, weights=weights)
    assert asked[:300].max() <= 3.0


def test_members_are_not_asked_about_no_rows():
    class Asked(Plane):
        def curves(self, X, doses, *, n_threads=1):
            assert len(X) > 0
            return super().curves(X, doses)

    x, _, _ = drawn(40)
    models = cross_fit(lambda rows: {"a": Asked(c=1)}, np.arange(40) % 4)
    rows = np.array([0, 4, 8])  # of one fold
    np.testing.assert_allclose(usual_outcomes(models, x, np.array([1.0, 3.0]), rows), 2.0)


def test_members_that_say_the_same_of_effects_keep_their_shares_of_outcomes():
    x, t, rng = drawn()
    y = x[:, 0] + rng.normal(size=len(t))
    members = np.column_stack([np.zeros(len(t)), x[:, 0], -x[:, 0]])  # nothing of the dose
    np.testing.assert_allclose(
        stack_weights(members, members, y), convex_weights(members, y), atol=1e-6
    )


def test_usual_outcomes_are_means_over_doses_by_models_without_the_row():
    x, t, _ = drawn(40)
    folds = np.arange(40) % 4
    models = cross_fit(lambda rows: {"a": Plane(a=rows.sum()), "b": Plane(c=1, d=1)}, folds)
    asked = np.tile([1.0, 3.0], (40, 1)) + t[:, None]
    rows = np.array([7, 2, 39, 11])
    means = usual_outcomes(models, x, asked, rows)
    expected = [np.arange(40)[folds != folds[row]].sum() for row in rows]
    np.testing.assert_allclose(means[:, 0], expected)
    np.testing.assert_allclose(means[:, 1], (1 + x[rows, 0]) * (2 + t[rows]))


def test_members_join_by_the_number_of_rows():
    few, many, most = (set(member_fit("stack", n_rows=n).recipes) for n in (500, 5_000, 50_000))
    assert {"process", "core, process"} <= few & many
    assert "linear trees" in (many & most) - few
    assert not {name for name in most if "process" in name}


def test_answers_with_weights_by_effects_are_the_same_for_any_threads():
    x, t, rng = drawn(300)
    y = np.sin(t) * (1 + x[:, 0]) + 0.3 * rng.normal(size=300)
    one, two = (
        GeneralizedCausalForest(correction="none", n_jobs=jobs, random_state=0).fit(
            x, y, treatment=t
        )
        for jobs in (1, 2)
    )
    assert one.outcome_weights_ == two.outcome_weights_
    np.testing.assert_array_equal(one.effect(x, 1.0), two.effect(x, 1.0))
