"""Sampling: the compiled draws follow the written rules, and the rules mean what they say."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from doseforest import _core
from doseforest.base import seeds
from doseforest.base.dtypes import LEAF, NODE_DTYPE
from doseforest.data import sampling
from doseforest.data.checks import group_codes
from doseforest.data.sampling import SamplingPlan

deterministic = settings(derandomize=True, deadline=None, max_examples=100)

PLANS = {
    f"{'bootstrap' if bootstrap else 'subsample'}-{honesty}-bags of {bag_size}": SamplingPlan(
        seed=2**61 + 12345,
        fraction=0.35,
        bootstrap=bootstrap,
        honesty=honesty,
        growth_fraction=0.6,
        bag_size=bag_size,
    )
    for bootstrap, honesty, bag_size in product([False, True], ["none", "tree", "forest"], [1, 3])
}
every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())

TREES = np.array([0, 1, 2, 3, 5, 500, 2**40], np.int64)
IDS = np.random.default_rng(0).integers(-(2**63), 2**63, 3_000, dtype=np.int64, endpoint=False)
IDS[:4] = [0, -1, 2**63 - 1, -(2**63)]


# --- the rules, written again from cpp/hashing.hpp ---------------------------------------------

GOLDEN = 0x9E3779B97F4A7C15
BAG, ROW, HONEST = 1, 2, 3
EVERY_BIT = 2**64 - 1


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def whole(number: int) -> NDArray[np.uint64]:
    return np.array([number % 2**64], np.uint64)


def uniforms(seed: int, purpose: int, owner: int, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draw one number in [0, 1) for each id from the stream of a purpose and an owner."""
    base = int(mixed(whole(seed + GOLDEN * purpose))[0])
    key = int(mixed(whole(base + GOLDEN * owner))[0])
    hashes = mixed(whole(GOLDEN) * (ids.astype(np.uint64) + np.uint64(1)) + whole(key))
    return (hashes >> np.uint64(11)) / 2.0**53


def poisson_counts(u: NDArray[np.float64]) -> NDArray[np.int64]:
    term = total = 0.36787944117144233
    totals = [total]
    for count in range(1, 16):
        term /= count
        total += term
        totals.append(total)
    return np.searchsorted(totals, u, side="right")


def copies_of(plan: SamplingPlan, tree: int, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    u = uniforms(plan.seed, ROW, tree, ids)
    share = plan.fraction if plan.bag_size == 1 else 2 * plan.fraction
    copies = poisson_counts(u) if plan.bootstrap else (u < share).astype(np.int64)
    if plan.bag_size > 1:
        copies = copies * (uniforms(plan.seed, BAG, tree // plan.bag_size, ids) < 0.5)
    return copies


def is_grower(plan: SamplingPlan, tree: int, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    if plan.honesty == "none":
        return np.ones(len(ids), bool)
    owner = EVERY_BIT if plan.honesty == "forest" else tree
    return uniforms(plan.seed, HONEST, owner, ids) < plan.growth_fraction


# --- the compiled draws ------------------------------------------------------------------------


def growers(
    plan: SamplingPlan, trees: NDArray[np.int64], ids: NDArray[np.int64], n_threads: int = 1
) -> list[NDArray[np.uint32]]:
    """Rows that grow each tree, with copies."""
    core, ids = plan.to_core(), np.ascontiguousarray(ids)
    counts = np.empty(len(trees), np.int64)
    _core.count_rows(core, trees, ids, n_threads, counts)
    ends = np.cumsum(counts)
    rows = np.empty(ends[-1], np.uint32)
    _core.draw_rows(core, trees, ids, n_threads, ends - counts, rows)
    return np.split(rows, ends[:-1])


def fillers(plan: SamplingPlan, n_trees: int, ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows that fill the leaves of each tree, with copies; the trees are lone leaves."""
    nodes = np.zeros(n_trees, NODE_DTYPE)
    nodes["flags"], nodes["left"] = LEAF, np.arange(n_trees)
    leaves = np.empty((len(ids), n_trees), np.int32)
    copies = np.empty((len(ids), n_trees), np.uint8)
    _core.route_bins(
        plan.to_core(),
        np.arange(n_trees),
        np.arange(n_trees),
        nodes.view(np.uint8),
        None,
        np.zeros((len(ids), 1), np.uint8),
        np.ones(1, np.int32),
        ids,
        1,
        leaves,
        copies,
    )
    np.testing.assert_array_equal(leaves, np.where(copies > 0, np.arange(n_trees), -1))
    return [np.repeat(np.arange(len(ids)), copies[:, tree]) for tree in range(n_trees)]


@every_plan
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_compiled_draws_follow_the_written_rules(plan: SamplingPlan, n_threads: int) -> None:
    many_trees = np.concatenate([TREES, np.arange(6, 30)])  # enough for two threads to share
    draws = growers(plan, many_trees, IDS, n_threads)
    for tree, rows in zip(many_trees.tolist(), draws, strict=True):
        copies = copies_of(plan, tree, IDS) * is_grower(plan, tree, IDS)
        np.testing.assert_array_equal(rows, np.repeat(np.arange(len(IDS)), copies))


@every_plan
def test_the_rows_of_leaves_follow_the_written_rules(plan: SamplingPlan) -> None:
    for tree, rows in enumerate(fillers(plan, 7, IDS)):
        fills = (plan.honesty == "none") | ~is_grower(plan, tree, IDS)
        expected = np.repeat(np.arange(len(IDS)), copies_of(plan, tree, IDS) * fills)
        np.testing.assert_array_equal(rows, expected)


@every_plan
def test_a_draw_depends_on_nothing_but_seed_tree_and_id(plan: SamplingPlan) -> None:
    order = np.random.default_rng(1).permutation(len(IDS))[:2_000]
    whole_forest = growers(plan, np.arange(8), IDS)
    for tree in (0, 3, 7):
        (rows,) = growers(plan, np.array([tree]), IDS[order])
        among_all = whole_forest[tree][np.isin(whole_forest[tree], order)]
        np.testing.assert_array_equal(np.sort(IDS[order][rows]), np.sort(IDS[among_all]))
    (other_seed,) = growers(replace(plan, seed=plan.seed + 1), np.array([0]), IDS)
    assert not np.array_equal(other_seed, whole_forest[0])


@given(seed=st.integers(0, 2**62), ids=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
@deterministic
def test_any_seed_and_ids_are_drawn_alike_here_and_in_the_core(seed: int, ids: list[int]) -> None:
    plan = SamplingPlan(seed=seed, fraction=0.5)
    array = np.array(ids, np.int64)
    (rows,) = growers(plan, np.array([4]), array)
    wanted = (copies_of(plan, 4, array) > 0) & is_grower(plan, 4, array)
    np.testing.assert_array_equal(rows, np.flatnonzero(wanted))


def test_the_scrambler_is_that_of_splitmix64() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    multiples = np.concatenate([whole(GOLDEN * k) for k in (1, 2, 3)])
    np.testing.assert_array_equal(seeds.mix(multiples), np.array(published, np.uint64))


@given(seed=st.integers(0, 2**62), purpose=st.integers(1, 6), owner=st.integers(0, 2**64 - 1))
@deterministic
def test_the_streams_of_python_follow_the_written_rules(
    seed: int, purpose: int, owner: int
) -> None:
    keys = seeds.stream(seed, purpose, whole(owner))
    drawn = seeds.uniform(seeds.draw(keys, IDS[:50].astype(np.uint64)))
    np.testing.assert_array_equal(drawn, uniforms(seed, purpose, owner, IDS[:50]))


def test_the_keys_of_nodes_follow_the_written_rules() -> None:
    trees = np.arange(5)
    base = int(mixed(whole(9 + GOLDEN * 5))[0])
    roots = np.concatenate([mixed(whole(base + GOLDEN * int(tree))) for tree in trees])
    np.testing.assert_array_equal(sampling.root_keys(9, trees), roots)
    for side in (0, 1):
        children = mixed(roots + whole(GOLDEN * (side + 1)))
        np.testing.assert_array_equal(sampling.child_keys(roots, side), children)


def test_the_keys_of_nodes_never_meet() -> None:
    level = sampling.root_keys(7, np.arange(10))
    keys = [level]
    for _ in range(10):
        level = np.concatenate([sampling.child_keys(level, side) for side in (0, 1)])
        keys.append(level)
    every_key = np.concatenate(keys)
    assert len(np.unique(every_key)) == len(every_key) == 10 * (2**11 - 1)


# --- what the rules mean -----------------------------------------------------------------------

N = 20_000
POSITIONS = np.arange(N)


def within_five_sigma(count: float, probability: float, n: int = N) -> bool:
    return abs(count - n * probability) <= 5 * np.sqrt(n * probability * (1 - probability))


@pytest.mark.parametrize("bag_size", [1, 2])
@pytest.mark.parametrize("fraction", [0.02, 0.25, 0.5])
@pytest.mark.parametrize(("honesty", "growth_fraction"), [("none", 0.5), ("tree", 0.3)])
def test_subsamples_have_the_fraction_that_was_asked_for(
    bag_size: int, fraction: float, honesty: sampling.Honesty, growth_fraction: float
) -> None:
    plan = SamplingPlan(
        seed=11,
        fraction=fraction,
        honesty=honesty,
        growth_fraction=growth_fraction,
        bag_size=bag_size,
    )
    share = fraction * (growth_fraction if honesty == "tree" else 1)
    assert plan.rows_per_tree(N) == round(N * share)
    for rows in growers(plan, np.arange(6), POSITIONS):
        assert within_five_sigma(len(rows), share)


@pytest.mark.parametrize(("bag_size", "share"), [(1, 1.0), (2, 0.5)])
def test_bootstrap_copies_are_poisson_counts(bag_size: int, share: float) -> None:
    plan = SamplingPlan(seed=12, bootstrap=True, honesty="none", bag_size=bag_size)
    assert plan.rows_per_tree(N) == N * share
    for rows in growers(plan, np.arange(6), POSITIONS):
        copies = np.bincount(rows, minlength=N)
        for count, probability in enumerate(np.exp(-1) / np.array([1, 1, 2, 6, 24])):
            expected = share * probability + (1 - share) * (count == 0)
            assert within_five_sigma((copies == count).sum(), expected)


def test_a_fraction_of_one_takes_every_row_and_a_tiny_one_may_take_none() -> None:
    (everything,) = growers(
        SamplingPlan(seed=1, fraction=1.0, honesty="none"), np.array([0]), POSITIONS
    )
    np.testing.assert_array_equal(everything, POSITIONS)
    (nothing,) = growers(SamplingPlan(seed=1, fraction=1e-15), np.array([0]), POSITIONS)
    assert len(nothing) == 0


def test_trees_draw_independently_outside_their_bag() -> None:
    plan = SamplingPlan(seed=13, fraction=0.4, honesty="none")
    first, *others = growers(plan, np.arange(5), POSITIONS)
    for other in others:
        assert within_five_sigma(len(np.intersect1d(first, other)), 0.4**2)


def test_trees_of_one_bag_share_a_half_sample() -> None:
    plan = SamplingPlan(seed=14, fraction=0.4, honesty="none", bag_size=5)
    trees = growers(plan, np.arange(20), POSITIONS)
    bags = [np.unique(np.concatenate(trees[first : first + 5])) for first in range(0, 20, 5)]
    missed = 0.2**5  # a row of the half that none of the five trees takes
    for bag in bags:
        assert within_five_sigma(len(bag), 0.5 * (1 - missed))
    assert within_five_sigma(len(np.intersect1d(bags[0], bags[1])), 0.25 * (1 - missed) ** 2)
    # Inside a bag trees meet more often than by chance: each takes 0.8 of the same half.
    assert within_five_sigma(len(np.intersect1d(trees[0], trees[4])), 0.5 * 0.8**2)
    assert within_five_sigma(len(np.intersect1d(trees[4], trees[5])), 0.4**2)


def test_trees_that_take_their_whole_bag_are_half_samples_and_equal() -> None:
    plan = SamplingPlan(seed=15, fraction=0.5, honesty="none", bag_size=3)
    trees = growers(plan, np.arange(6), POSITIONS)
    for tree in (1, 2):
        np.testing.assert_array_equal(trees[tree], trees[0])
    assert within_five_sigma(len(trees[0]), 0.5)
    assert within_five_sigma(len(np.intersect1d(trees[0], trees[3])), 0.25)


@every_plan
def test_growing_and_filling_rows_are_the_two_parts_of_a_tree(plan: SamplingPlan) -> None:
    seen = growers(replace(plan, honesty="none"), np.arange(6), IDS)
    grow, fill = growers(plan, np.arange(6), IDS), fillers(plan, 6, IDS)
    for tree in range(6):
        if plan.honesty == "none":
            np.testing.assert_array_equal(grow[tree], seen[tree])
            np.testing.assert_array_equal(fill[tree], seen[tree])
        else:
            assert len(np.intersect1d(grow[tree], fill[tree])) == 0
            together = np.sort(np.concatenate([grow[tree], fill[tree]]))
            np.testing.assert_array_equal(together, seen[tree])


@pytest.mark.parametrize(("honesty", "splits_once"), [("forest", True), ("tree", False)])
def test_only_forest_honesty_keeps_a_row_on_one_side_of_all_trees(
    honesty: sampling.Honesty, splits_once: bool
) -> None:
    plan = SamplingPlan(seed=16, fraction=0.5, honesty=honesty)
    ever_grew = np.unique(np.concatenate(growers(plan, np.arange(10), IDS)))
    ever_filled = np.unique(np.concatenate(fillers(plan, 10, IDS)))
    assert (len(np.intersect1d(ever_grew, ever_filled)) == 0) == splits_once


@every_plan
@pytest.mark.parametrize("kind", ["numbers", "text"])
def test_rows_of_one_group_always_go_together(plan: SamplingPlan, kind: str) -> None:
    groups = np.random.default_rng(2).integers(0, 60, 1_000)
    names = groups if kind == "numbers" else np.char.add("store ", groups.astype(str))
    codes = group_codes(names, len(names))
    draws = [*growers(plan, np.arange(8), codes), *fillers(plan, 8, codes)]
    some = 0
    for rows in draws:
        copies = np.bincount(rows, minlength=len(groups))
        for group in range(60):
            assert len(np.unique(copies[groups == group])) == 1
        some += 0 < (copies > 0).sum() < len(groups)
    assert some == len(draws)


def test_a_plan_goes_to_plain_values_and_back() -> None:
    for plan in PLANS.values():
        assert SamplingPlan(**plan.to_json()) == plan
