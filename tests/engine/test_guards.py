"""Guards on the treatment in both children, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from doseforest import CurveForest
from doseforest.base.dtypes import LEAF, MISSING_LEFT
from doseforest.doses.smoothing.kernel_channels import kernel_channels
from doseforest.doses.smoothing.kernel_weights import effective_sample
from doseforest.engine import SplitByRatios, TreatmentGuard
from doseforest.engine.growth import local_engine
from doseforest.engine.splits.distances import l2
from forests import assert_same_bits, single_tree

GRID = np.linspace(0.1, 0.9, 5)
WIDTH = 0.3


def dosed_rows(seed, n=400, p=7):
    """Rows whose dose depends on the features that also move the curves, so that guards bite."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 12, size=(n, p)).astype(float)
    share = 1 / (1 + np.exp(-(x[:, 0] - 5.5)))
    dose = np.clip(share + rng.normal(size=n) / 10, 0, 1)
    curves = x[:, :1] * GRID + x[:, 1:2] / 8 + x[:, 2:3] * GRID / 9 + rng.normal(size=(n, 5)) / 4
    x[rng.random(x.shape) < 0.05] = np.nan
    return rng, x, dose, curves


def sides_of(x, node):
    values = x[:, node["feature"]]
    missing_left = bool(node["flags"] & MISSING_LEFT)
    return np.where(np.isnan(values), missing_left, values <= node["threshold"])


def passes(guard, dose, weights, rows, spread):
    """Whether a child passes, from the definitions."""
    own, mass = dose[rows], weights[rows]
    if guard.min_effective_rows is not None:
        sample = effective_sample(own, GRID, guard.bandwidth, guard.kernel, mass)
        if sample.min() < guard.min_effective_rows:
            return False
    if guard.min_treatment_variance is not None:
        mean = np.average(own, weights=mass)
        variance = np.average((own - mean) ** 2, weights=mass)
        return variance >= guard.min_treatment_variance * spread
    return True


def best_of_each_feature(x, curves, weights, min_rows):
    """Gain and left rows of the best cut of each feature, the best first."""
    best = []
    for feature, column in enumerate(x.T):
        missing, found = np.isnan(column), (-np.inf, None)
        for cut in np.unique(column[~missing]):
            for missing_left in (False, True):
                left = np.where(missing, missing_left, column <= cut)
                if min(left.sum(), (~left).sum()) < min_rows:
                    continue
                n1, n2 = weights[left].sum(), weights[~left].sum()
                means = [
                    np.average(curves[side], axis=0, weights=weights[side])
                    for side in (left, ~left)
                ]
                gain = n1 * n2 / (n1 + n2) * float(l2(*means, np.ones(5)))
                if gain > found[0]:
                    found = (gain, left)
        best.append((*found, feature))
    return sorted(best, key=lambda split: -split[0])


GUARDS = {
    "effective rows": TreatmentGuard(min_effective_rows=12.0, bandwidth=WIDTH),
    "effective rows, another kernel": TreatmentGuard(20.0, kernel="gaussian", bandwidth=0.1),
    "variance": TreatmentGuard(min_treatment_variance=0.4),
    "both": TreatmentGuard(8.0, 0.2, bandwidth=WIDTH),
    "what nothing fulfils": TreatmentGuard(min_effective_rows=1e6, bandwidth=WIDTH),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", GUARDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_candidate_that_passes_is_taken(name, weighted, seed):
    guard = GUARDS[name]
    rng, x, dose, curves = dosed_rows(seed)
    weights = rng.uniform(0.5, 2, size=len(x)) if weighted else np.ones(len(x))
    forest = single_tree(guard=guard, max_depth=1, min_node_size=10)
    forest.fit(
        x,
        curves,
        doses=GRID,
        quadrature=np.ones(5),
        treatment=dose,
        sample_weight=weights,
    )
    normalised = weights / weights.mean()
    spread = np.average((dose - np.average(dose, weights=weights)) ** 2, weights=weights)
    candidates = best_of_each_feature(x, curves, normalised, 10)
    expected = 0.0
    for gain, left, _ in candidates[: local_engine.CANDIDATES]:
        if all(passes(guard, dose, weights, side, spread) for side in (left, ~left)):
            expected = gain
            break
    assert forest.forest_.gains[0] == pytest.approx(expected, rel=1e-4)
    if "variance" in name or "effective" in name:  # the best split separates the doses
        assert expected < candidates[0][0]


def test_both_children_of_every_split_pass():
    _, x, dose, curves = dosed_rows(4, n=1500)
    guard = TreatmentGuard(10.0, 0.1, bandwidth=WIDTH)
    spread = dose.var()
    rows = {0: np.arange(len(x))}
    unguarded = single_tree(min_node_size=10).fit(x, curves, doses=GRID).forest_
    forest = single_tree(min_node_size=10, guard=guard)
    forest = forest.fit(x, curves, doses=GRID, treatment=dose).forest_
    for number, node in enumerate(forest.nodes):
        if not node["flags"] & LEAF:
            own = rows[number]
            left = sides_of(x[own], node)
            for side, marks in enumerate((left, ~left)):
                rows[int(node["left"]) + side] = own[marks]
                assert passes(guard, dose, np.ones(len(x)), own[marks], spread)
    assert 1 < len(forest.nodes) < len(unguarded.nodes)


def test_a_guard_that_all_splits_pass_changes_nothing():
    _, x, dose, curves = dosed_rows(5)
    settings = {"n_trees": 5, "random_state": 0, "mtry": 4}
    plain = CurveForest(**settings).fit(x, curves, doses=GRID).forest_
    lenient = TreatmentGuard(1e-6, 1e-9, kernel="gaussian", bandwidth=1.0)
    guarded = CurveForest(**settings, guard=lenient).fit(x, curves, doses=GRID, treatment=dose)
    assert_same_bits(plain, guarded.forest_)


def test_a_guard_serves_any_statistic_and_distance():
    _, x, dose, curves = dosed_rows(6, n=2000)
    columns = kernel_channels(dose, curves[:, 2], GRID, WIDTH, "biweight")
    forests = [
        CurveForest(
            4,
            statistic=SplitByRatios(),
            guard=GUARDS["both"],
            distance=distance,
            min_node_size=8,
            random_state=1,
        )
        .fit(x, columns, doses=GRID, treatment=dose)
        .forest_
        for distance in ("l2", l2)
    ]
    assert len(forests[0].nodes) > 10
    np.testing.assert_array_equal(forests[0].nodes, forests[1].nodes)


def test_the_default_bandwidth_does_not_see_the_order_of_rows():
    rng, x, dose, curves = dosed_rows(7)
    weights = rng.uniform(0.5, 2, size=len(x))
    guard = TreatmentGuard(min_effective_rows=10.0)
    for given in (None, weights):
        order = rng.permutation(len(x))
        forests = [
            CurveForest(4, guard=guard, random_state=0).fit(
                x[own],
                curves[own],
                doses=GRID,
                treatment=dose[own],
                sample_weight=None if given is None else given[own],
                row_ids=own,
            )
            for own in (np.arange(len(x)), order)
        ]
        assert_same_bits(forests[0].forest_, forests[1].forest_)


@pytest.mark.parametrize(
    ("message", "parameters"),
    [
        ("'min_effective_rows' parameter of TreatmentGuard must be given", {}),
        (r"must be a float in \(0, inf\) or None. Got 0", {"min_effective_rows": 0}),
        ("'min_treatment_variance' parameter .* Got -1", {"min_treatment_variance": -1}),
        ("'kernel' parameter must be one of", {"min_effective_rows": 1, "kernel": "box"}),
        ("'bandwidth' parameter", {"min_effective_rows": 1, "bandwidth": 0.0}),
    ],
)
def test_errors_name_parameter_rule_and_value(message, parameters):
    with pytest.raises(ValueError, match=message):
        TreatmentGuard(**parameters)


def test_a_guard_needs_doses_and_treatment():
    _, x, dose, curves = dosed_rows(8)
    with pytest.raises(ValueError, match="'treatment' parameter of fit must be given"):
        CurveForest(2, guard=GUARDS["variance"]).fit(x, curves)
    with pytest.raises(ValueError, match="'doses' parameter of fit must be given"):
        CurveForest(2, guard=GUARDS["both"]).fit(x, curves, treatment=dose)
    with pytest.raises(ValueError, match="'treatment' parameter must have one row per row of X"):
        CurveForest(2, guard=GUARDS["variance"]).fit(x, curves, treatment=dose[:-1])
    far = [0.1, 0.3, 0.5, 0.7, 9.0]
    with pytest.raises(ValueError, match=r"'doses' parameter .* no split can pass\. Got 9"):
        CurveForest(2, guard=GUARDS["both"]).fit(x, curves, treatment=dose, doses=far)
