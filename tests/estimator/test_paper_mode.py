"""Paper mode: every step of the printed algorithm against brute force in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, truncnorm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from doseforest import EffectForest, GeneralizedCausalForest, _core, load_forest
from doseforest.base.dtypes import LEAF
from doseforest.base.seeds import Purpose, stream
from doseforest.estimator.honest_split import draw_honest_split
from doseforest.nuisance.treatment import density_registry
from doseforest.nuisance.treatment.known_densities import Strata
from doseforest.nuisance.treatment.location_scale import LocationScale

GRID = np.linspace(0.5, 3.5, 7)
BASELINE = 1.0
# Channels are float32 on a grid of 2^-24 of the largest, and ratios divide by sums of them.
TOLERANCE = 1e-4


def draw(n=160, seed=0):
    """Features of few levels, so that every cut is a bin's; doses that the first one drives."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, size=(n, 3)).astype(float)
    dose = np.clip(0.2 * x[:, 0] + rng.uniform(0, 3, n), 0, 4)
    y = x[:, 1] + dose * (x[:, 2] - 2) + rng.normal(size=n)
    return x, dose, y


def location(X):
    return 1 + 0.3 * X[..., 0]


def normal_density(X, doses):
    """A density that is given: normal with scale 1.5, cut off at 0 and 4."""
    return normal_within(X[:, None], 0.0, 4.0).pdf(doses)


def normal_within(X, low, high):
    centre = location(X)
    return truncnorm((low - centre) / 1.5, (high - centre) / 1.5, loc=centre, scale=1.5)


def paper(**overrides):
    """Few trees that may use every feature, quick nuisances."""
    settings = {
        "n_trees": 3,
        "mtry": None,
        "outcome_model": LinearRegression(),
        "density": normal_density,
        "doses": GRID,
        "baseline": BASELINE,
        "bandwidth": 0.8,
        "zeta": 0.0,
        "random_state": 0,
        "n_jobs": 1,
    }
    return GeneralizedCausalForest.paper(**{**settings, **overrides})


def fitted(weights=None, data=None, **overrides):
    """A forest, its trees, and the marks of Omega1."""
    x, dose, y = draw() if data is None else data
    forest = paper(**overrides).fit(x, y, treatment=dose, sample_weight=weights)
    return forest, forest.model_.parts[0].correction.forest, forest._fitted.rows.grows


def grid_with_baseline():
    return np.union1d(GRID, BASELINE)


def gaussian(dose, t, h):
    """K_h(T_i - t) over its integral over [Tmin, Tmax], by t at a fixed T_i."""
    low, high = min(dose.min(), t[0]), max(dose.max(), t[-1])
    mass = norm.cdf((high - dose) / h) - norm.cdf((low - dose) / h)
    return norm.pdf((dose[:, None] - t) / h) / h / mass[:, None]


def epanechnikov(dose, t, h):
    def primitive(u):
        u = np.clip(u, -1, 1)
        return 0.75 * (u - u**3 / 3)

    low, high = min(dose.min(), t[0]), max(dose.max(), t[-1])
    mass = primitive((high - dose) / h) - primitive((low - dose) / h)
    u = (dose[:, None] - t) / h
    return np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0) / h / mass[:, None]


def integral(values, t):
    return ((values[1:] + values[:-1]) / 2 * np.diff(t)).sum()


DISTANCES = {
    "l1": lambda a, b, t: integral(np.abs(a - b), t),
    "l2": lambda a, b, t: integral((a - b) ** 2, t),
    "linf": lambda a, b, t: np.abs(a - b).max(),
}


def bootstrap_samples(trees, n_growing):
    """Rows of Omega1 that each tree has drawn, as often as it has drawn them."""
    core, numbers = trees.plan.to_core(), np.arange(trees.n_trees)
    ids = np.arange(n_growing)
    counts = np.empty(trees.n_trees, np.int64)
    _core.count_rows(core, numbers, ids, 1, counts)
    ends = np.cumsum(counts)
    rows = np.empty(ends[-1], np.uint32)
    _core.draw_rows(core, numbers, ids, 1, ends - counts, rows)
    return np.split(rows, ends[:-1])


def best_split(x, curve, distance, min_rows, sigma=lambda side: 0.0, zeta=0.0):
    """Largest Delta = n1 n2 / nP D(curve_1, curve_2) + zeta min(sigma_1, sigma_2) over all cuts."""
    best = -np.inf
    for column in x.T:
        for cut in np.unique(column)[:-1]:
            left = column <= cut
            n1, n2 = left.sum(), (~left).sum()
            if min(n1, n2) < min_rows:
                continue
            delta = n1 * n2 / (n1 + n2) * distance(curve(left), curve(~left))
            best = max(best, delta + zeta * min(sigma(left), sigma(~left)))
    return best


def printed_theta(x, dose, y, h):
    """Curves of step 3 less their value at the baseline, one for each row of Omega1."""
    t = grid_with_baseline()
    model = LinearRegression().fit(np.column_stack([x, dose]), y)  # of Omega1 alone
    mu = np.column_stack([model.predict(np.column_stack([x, np.full(len(x), s)])) for s in t])
    tables = np.broadcast_to(t, mu.shape)
    robust = mu + gaussian(dose, t, h) / normal_density(x, tables) * (y[:, None] - mu)
    return robust - robust[:, t == BASELINE]


def mixture_sigma(x, dose):
    """Variance of the mean density of some rows, between the ends of the doses."""
    t = grid_with_baseline()
    low, high = min(dose.min(), t[0]), max(dose.max(), t[-1])
    mean, variance = normal_within(x, low, high).stats("mv")
    return (variance + mean**2).mean() - mean.mean() ** 2


def zeta_unit(trees, x, dose, curve, distance):
    """Mean gain of random halves of Omega1 over the variance of its mean density."""
    bits = stream(trees.plan.seed, Purpose.RANDOM_HALVES, np.arange(len(x), dtype=np.uint64))
    gains = []
    for bit in range(64):
        left = (bits >> np.uint64(bit)) % np.uint64(2) == 1
        product = left.sum() * (~left).sum() / len(x)
        gains.append(product * distance(curve(left), curve(~left)))
    return np.mean(gains) / mixture_sigma(x, dose)


# --- the split criterion -------------------------------------------------------------------------


@pytest.mark.parametrize("zeta", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("name", sorted(DISTANCES))
def test_splits_by_theta_gain_what_the_printed_formula_says(name, zeta):
    x, dose, y = draw()
    _, trees, omega1 = fitted(distance=name, zeta=zeta)
    x, dose, y = x[omega1], dose[omega1], y[omega1]
    theta = printed_theta(x, dose, y, h=0.8)

    def distance(a, b):
        return DISTANCES[name](a, b, grid_with_baseline())

    unit = zeta_unit(trees, x, dose, lambda side: theta[side].mean(axis=0), distance)
    expected = [
        best_split(
            x[rows],
            lambda side, rows=rows: theta[rows][side].mean(axis=0),
            distance,
            min_rows=5,
            sigma=lambda side, rows=rows: mixture_sigma(x[rows][side], dose),
            zeta=zeta * unit,
        )
        for rows in bootstrap_samples(trees, len(x))
    ]
    # The moments are integrated over 201 doses, to a few in a hundred thousand.
    np.testing.assert_allclose(trees.gains[trees.roots], expected, rtol=TOLERANCE)


@pytest.mark.parametrize("zeta", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("name", sorted(DISTANCES))
def test_splits_by_derivatives_gain_what_the_printed_formula_says(name, zeta):
    (x, dose, y), t = draw(), grid_with_baseline()
    _, trees, omega1 = fitted(criterion="pdrf", distance=name, zeta=zeta)
    x, dose, y = x[omega1], dose[omega1], y[omega1]
    k = gaussian(dose, t, 0.8)
    slope = k * (dose[:, None] - t) / 0.8**2  # of K in t
    columns = [k, k * y[:, None], slope, slope * y[:, None]]

    def phi(rows):
        sums = [column[rows].sum(axis=0) for column in columns]
        return sums[3] / sums[0] - sums[1] * sums[2] / sums[0] ** 2

    def distance(a, b):
        return DISTANCES[name](a, b, t)

    unit = zeta_unit(trees, x, dose, phi, distance)
    expected = [
        best_split(
            x[rows],
            lambda side, rows=rows: phi(rows[side]),
            distance,
            min_rows=5,
            sigma=lambda side, rows=rows: mixture_sigma(x[rows][side], dose),
            zeta=zeta * unit,
        )
        for rows in bootstrap_samples(trees, len(x))
    ]
    np.testing.assert_allclose(trees.gains[trees.roots], expected, rtol=TOLERANCE)


def test_kernels_without_a_printed_derivative_compare_differences_between_doses():
    data, t = draw(), grid_with_baseline()
    _, trees, omega1 = fitted(criterion="pdrf", kernel="epanechnikov", bandwidth=2.0)
    x, dose, y = (column[omega1] for column in data)
    k = epanechnikov(dose, t, 2.0)

    def differences(rows):
        regression = (k[rows] * y[rows, None]).sum(axis=0) / k[rows].sum(axis=0)
        return np.diff(regression) / np.diff(t)

    expected = [
        best_split(
            x[rows],
            lambda side, rows=rows: differences(rows[side]),
            lambda a, b: ((a - b) ** 2 * np.diff(t)).sum(),
            min_rows=5,
        )
        for rows in bootstrap_samples(trees, len(x))
    ]
    np.testing.assert_allclose(trees.gains[trees.roots], expected, rtol=TOLERANCE)


def test_every_tree_grows_on_a_bootstrap_sample_of_omega_1():
    _, trees, omega1 = fitted(n_trees=40)
    assert trees.plan.bootstrap
    samples = bootstrap_samples(trees, omega1.sum())
    sizes = np.array([len(rows) for rows in samples])
    # 40 trees of 80 rows: the mean share of rows drawn has a standard error of .0085.
    assert np.mean([len(np.unique(rows)) for rows in samples]) / omega1.sum() == pytest.approx(
        1 - np.exp(-1), abs=0.03
    )
    assert sizes.mean() == pytest.approx(omega1.sum(), rel=0.06)  # 3.4 standard errors
    assert len({tuple(rows) for rows in samples}) == 40


def test_leaves_keep_the_least_node_size_of_omega_1_and_splits_the_least_gain():
    x, _, _ = draw()
    _, trees, omega1 = fitted(leaf_size=12)
    leaves = trees.apply(x[omega1]).T
    for tree, rows in zip(leaves, bootstrap_samples(trees, omega1.sum()), strict=True):
        assert np.unique(tree[rows], return_counts=True)[1].min() >= 12
    gains = trees.gains[trees.nodes["flags"] & LEAF == 0]
    least = float(np.median(gains))
    _, fewer, _ = fitted(leaf_size=12, min_info_gain=least)
    kept = fewer.gains[fewer.nodes["flags"] & LEAF == 0]
    assert 0 < len(kept) < len(gains)
    assert kept.min() > least
    _, none, _ = fitted(min_info_gain=float(trees.gains.max()))
    assert none.n_leaves == none.n_trees


def test_every_tree_draws_its_features_once():
    _, trees, _ = fitted(n_trees=12, mtry=1)
    ends = np.append(trees.roots[1:], len(trees.nodes))
    used = [
        set(nodes["feature"][nodes["flags"] & LEAF == 0].tolist())
        for nodes in (trees.nodes[a:b] for a, b in zip(trees.roots, ends, strict=True))
    ]
    assert all(len(features) == 1 for features in used)
    assert set.union(*used) == {0, 1, 2}


# --- the leaves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "kernel"), [("gaussian", gaussian), ("epanechnikov", epanechnikov)]
)
def test_curves_are_kernel_averages_of_omega_2_tree_by_tree(name, kernel, weighted):
    (x, dose, y), t, h = draw(), grid_with_baseline(), 0.8
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    forest, trees, omega1 = fitted(weights if weighted else None, kernel=name, n_trees=6, mtry=2)
    units = draw(30, seed=7)[0]
    own = weights[~omega1, None] * kernel(dose[~omega1], t, h)
    y2 = y[~omega1, None]
    overall = (own * y2).sum(axis=0) / own.sum(axis=0)
    expected = np.empty((len(units), len(t)))
    for unit, leaves in enumerate(trees.apply(units)):
        curves = []
        for tree, leaf in enumerate(leaves):
            inside = trees.apply(x[~omega1])[:, tree] == leaf
            sums = (own[inside] * y2[inside]).sum(axis=0), own[inside].sum(axis=0)
            curves.append(
                np.where(sums[1] > 0, sums[0] / np.where(sums[1] > 0, sums[1], 1), np.nan)
            )
        known = ~np.isnan(curves)
        total = np.where(known, curves, 0).sum(axis=0)
        expected[unit] = np.where(known.any(axis=0), total / known.sum(axis=0).clip(1), overall)
    np.testing.assert_allclose(forest.dose_response(units), expected, rtol=1e-5, atol=1e-5)
    theta = expected - expected[:, t == BASELINE]
    np.testing.assert_allclose(forest.effect(units, 3.0), theta[:, t == 3.0][:, 0], atol=2e-5)


def test_levels_are_matched_exactly():
    x, dose, y = draw(300)
    level = dose.astype(int) % 3
    density = "binned"
    forest, trees, omega1 = fitted(
        data=(x, level, y), doses=None, baseline=0.0, density=density, min_info_gain=1e12
    )
    assert trees.n_leaves == trees.n_trees  # one leaf: the means of the levels in Omega2
    means = [y[~omega1 & (level == own)].mean() for own in range(3)]
    np.testing.assert_allclose(forest.dose_response(x[:1])[0], means, rtol=1e-5)
    grown = fitted(data=(x, level, y), doses=None, baseline=0.0, density=density, zeta=1.0)
    assert grown[1].n_leaves > grown[1].n_trees


# --- honesty -------------------------------------------------------------------------------------


class Remembering(LinearRegression):
    """A regression that keeps the outcomes of every fit."""

    fits: list = []

    def fit(self, X, y, sample_weight=None):
        self.fits.append(np.array(y))
        return super().fit(X, y)


class RememberingDensity(LocationScale):
    fits: list = []

    def fit(self, X, dose, **options):
        self.fits.append(np.array(dose))
        return super().fit(X, dose, **options)


def test_nuisances_never_see_omega_2(monkeypatch):
    monkeypatch.setitem(density_registry.DENSITIES, "location_scale", RememberingDensity)
    monkeypatch.setattr(Remembering, "fits", [])
    monkeypatch.setattr(RememberingDensity, "fits", [])
    _, dose, y = draw()
    _, _, omega1 = fitted(outcome_model=Remembering(), density="auto")
    assert Remembering.fits
    assert all(np.isin(seen, y[omega1]).all() for seen in Remembering.fits)
    assert not np.isin(y[~omega1], y[omega1]).any()
    full = max(Remembering.fits, key=len)
    np.testing.assert_array_equal(np.sort(full), np.sort(y[omega1]))
    (seen,) = RememberingDensity.fits
    np.testing.assert_array_equal(seen, dose[omega1])


def test_omega_2_fills_leaves_and_changes_no_tree():
    x, dose, y = draw()
    _, trees, omega1 = fitted()
    other = np.where(omega1, y, 5 - 3 * y)
    _, changed, again = fitted(data=(x, dose, other))
    np.testing.assert_array_equal(again, omega1)
    np.testing.assert_array_equal(changed.nodes, trees.nodes)
    np.testing.assert_array_equal(changed.gains, trees.gains)
    half = trees.leaf_sums.shape[1] // 2
    seen = trees.leaf_sums[:, half:] > 0
    expected = np.where(seen, 5 - 3 * trees.leaf_sums[:, :half], 0)
    np.testing.assert_allclose(changed.leaf_sums[:, :half], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.3, 0.5])
def test_omega_1_is_a_share_alpha_of_the_groups(alpha):
    ids = np.arange(200) // 2
    omega1 = draw_honest_split(ids, alpha, seed=1)
    assert omega1.sum() == round(200 * alpha)
    assert (omega1[::2] == omega1[1::2]).all()
    assert (draw_honest_split(ids, alpha, seed=2) != omega1).any()


@pytest.mark.parametrize("density", ["location_scale", "gaussian", Strata(np.repeat([0, 1], 80))])
def test_doses_of_omega_2_change_no_tree(density):
    x, dose, y = draw()
    _, trees, omega1 = fitted(density=density, zeta=1.0)
    moved = dose.copy()
    moved[~omega1] = dose[~omega1][::-1]  # the range, which is taken as known, stays
    _, same, _ = fitted(data=(x, moved, y), density=density, zeta=1.0)
    np.testing.assert_array_equal(same.nodes, trees.nodes)
    np.testing.assert_array_equal(same.gains, trees.gains)
    assert (same.leaf_sums != trees.leaf_sums).any()


def test_groups_stay_together():
    x, dose, y = draw()
    forest = paper(honesty_fraction=0.4)
    forest.fit(x, y, treatment=dose, groups=np.arange(160) // 4)
    marks = forest._fitted.rows.grows.reshape(-1, 4)
    assert (marks == marks[:, :1]).all()
    assert marks[:, 0].sum() == 16
    assert forest.rounds_[0]["growing_rows"] == 64
    assert forest.rounds_[0]["filling_rows"] == 96


# --- the estimator -------------------------------------------------------------------------------


def test_the_estimator_is_cloned_with_its_settings():
    forest = GeneralizedCausalForest.paper(criterion="pdrf", random_state=3)
    twin = clone(forest)
    assert type(twin) is GeneralizedCausalForest
    assert twin.get_params() == forest.get_params()
    assert twin.correction.name == "paper"
    assert twin.correction.criterion == "pdrf"
    with pytest.raises(TypeError, match="alpha"):
        GeneralizedCausalForest.paper(alpha=0.5)


@pytest.mark.parametrize("criterion", ["theta", "pdrf"])
def test_any_number_of_threads_gives_the_same_bits(criterion):
    settings = {"criterion": criterion, "density": "location_scale", "mtry": 2, "zeta": 1.0}
    units = draw(50, seed=5)[0]
    one, two = (fitted(n_jobs=n, **settings)[0].dose_response(units) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_bandwidth_is_chosen_by_the_rows_of_omega_1():
    x, dose, y = draw()
    chosen, _, omega1 = fitted(bandwidth="leave_one_out")
    other = np.where(omega1, y, 5 - 3 * y)
    again, _, _ = fitted(data=(x, dose, other), bandwidth="leave_one_out")
    usual, _, _ = fitted(bandwidth="rule_of_thumb")
    default, _, _ = fitted(bandwidth=None)
    widths = [own.rounds_[0]["bandwidth"] for own in (chosen, again, usual, default)]
    assert widths[0] == widths[1] != widths[2] == widths[3]


def test_a_saved_forest_answers_as_before(tmp_path):
    x, dose, y = draw(120)
    forest = paper(outcome_model="stack", n_folds=2, n_trees=6).fit(x, y, treatment=dose)
    forest.save(tmp_path / "model.dose")
    loaded = load_forest(tmp_path / "model.dose")
    assert type(loaded) is EffectForest
    units, own = draw(30, seed=3)[0], np.random.default_rng(4).uniform(0.5, 3.5, (30, 2))
    for asked in (None, [1.0, 2.2], own):
        np.testing.assert_array_equal(
            loaded.dose_response(units, asked), forest.dose_response(units, asked)
        )
    np.testing.assert_array_equal(loaded.effect(units, 3.0), forest.effect(units, 3.0))
    loaded.save(tmp_path / "again.dose")
    assert (tmp_path / "again.dose").read_bytes() == (tmp_path / "model.dose").read_bytes()


def test_averages_are_those_of_the_curves_and_what_residuals_add():
    x, _, _ = draw()
    forest, _, _ = fitted()
    averages = forest.average_dose_response()
    assert np.isfinite(averages.standard_errors).all()
    # The weighted residuals of a confounded leaf average move the mean curve by less than a unit.
    assert np.abs(averages.values - forest.dose_response(x).mean(axis=0)).max() < 1.0


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"criterion": "slope"}, "'criterion' parameter"),
        ({"zeta": -1.0}, "'zeta' parameter"),
        ({"min_info_gain": -0.1}, "'min_info_gain' parameter"),
        ({"honesty": "tree"}, "'honesty' parameter must be 'forest'.* Got 'tree'"),
        ({"leaf_size": (5, 20)}, r"'leaf_size' parameter of Paper must be an int.* Got \(5, 20\)"),
        ({"honesty_fraction": 0.01}, "'honesty_fraction' parameter must leave .* Got 0.01, 2 that"),
        ({"honesty_fraction": 0.999}, "'honesty_fraction' parameter must leave"),
        ({"density": "entropy"}, "for correction='paper', which divides by a density"),
        ({"density": np.ones(160)}, "'density' parameter must be a function, strata"),
        (
            {"kernel": "epanechnikov", "bandwidth": 1e-3},
            "'doses' parameter must hold doses that the kernel reaches .* Got 0.5 instead",
        ),
    ],
)
def test_errors_name_parameter_rule_and_value(overrides, message):
    with pytest.raises(ValueError, match=message):
        fitted(**overrides)
