"""The marketplace: exact expectations against draws and brute force, and what never changes."""

from __future__ import annotations

import hashlib
import itertools
import pickle

import numpy as np
import pytest
from scipy.stats import poisson

from doseforest.doses.dose_values import Doses
from doseforest.pricing.market import (
    ASSIGNMENTS,
    FEATURES,
    LEVELS,
    MAX_DISCOUNT,
    REGIMES,
    Marketplace,
    Traffic,
    draw_experiment,
    expected_orders,
    experiment_files,
    flat_discount,
    marketplace,
    plot_marketplace,
    regimes,
    write_experiment,
)
from doseforest.pricing.market.city import make_city
from doseforest.pricing.market.demand import base_score, signals_of, tastes_of
from doseforest.pricing.market.market_draws import poisson_quantiles, shuffled, uniforms
from doseforest.pricing.market.matching import service_probabilities

CELLS = np.arange(7, 5760, 160)  # 36 cells, several hours

NOWHERE = np.ones((2, len(FEATURES)))


def by_hand(counts: list[int], drivers: list[int]) -> Traffic:
    """Traffic of visits with so many views and drivers, without features."""
    visit = np.repeat(np.arange(len(counts)), counts)
    rank = np.concatenate([np.arange(count) for count in counts])
    places = np.arange(len(counts))
    X = np.ones((len(visit), len(FEATURES)))
    return Traffic(X, visit, rank, places, 0 * places, places, np.array(drivers))


def test_the_table_of_regimes_is_as_it_was_settled():
    # Changed numbers would make results of models incomparable: there is no reason to.
    parts = (regimes.CITY, regimes.HISTORY, regimes.OPTIONS, regimes.REGIMES, regimes.CONTRAST)
    parts += (regimes.KIND_SCORES, regimes.THRESHOLD_SLOPES, regimes.SATURATION_SLOPES)
    parts += (regimes.LAPSED_SLOPE, LEVELS, MAX_DISCOUNT, regimes.TOP)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    assert digest[:16] == "58c9f7c599a3a1f9"


@pytest.mark.parametrize("regime", REGIMES)
def test_requests_never_fall_with_the_discount_and_stay_probabilities(regime):
    own = Marketplace(regime)
    X = own.draw_traffic(days=1, cells=CELLS, seed=2).X
    grid = np.broadcast_to(np.linspace(0.0, MAX_DISCOUNT, 31), (len(X), 31))
    curves = own.mean(grid, X)
    assert (np.diff(curves, axis=1) >= -1e-12).all()
    assert curves.min() > 0
    assert curves.max() <= regimes.TOP
    assert np.diff(curves[:, [0, -1]], axis=1).std() > 0.05  # riders differ


def test_linear_demand_is_linear_and_the_other_regimes_are_not():
    bends = {}
    for regime in REGIMES:
        own = Marketplace(regime)
        X = own.draw_traffic(days=1, cells=CELLS, seed=2).X
        low, middle, high = own.mean(np.broadcast_to([0.0, 0.15, 0.3], (len(X), 3)), X).T
        bends[regime] = np.abs(middle - (low + high) / 2).mean()
    assert bends["linear"] < 1e-12
    assert bends["linear"] < bends["mixed"] < bends["nonlinear"]
    assert bends["mixed"] > 0.02


def test_without_discount_requests_are_the_base_and_regimes_agree():
    X = Marketplace().draw_traffic(days=1, cells=CELLS, seed=2).X
    zero = np.zeros((len(X), 1))
    options = Marketplace().options
    base = tastes_of(X, REGIMES["mixed"], options).base
    for regime in REGIMES:
        np.testing.assert_allclose(Marketplace(regime).mean(zero, X), base, atol=1e-15)
    odds = np.exp(base_score(options[0], signals_of(X)))
    np.testing.assert_allclose(base[:, 0], regimes.TOP * odds / (1 + odds))


def test_a_cheaper_option_takes_riders_from_the_other():
    own = Marketplace("mixed", n_options=2)
    X = own.draw_traffic(days=1, cells=CELLS, seed=2).X
    plans = np.broadcast_to([[0.0, 0.0], [0.0, 0.3], [0.3, 0.3]], (len(X), 3, 2))
    express, shared = np.moveaxis(own.option_probabilities(X, plans), 2, 0)
    assert (express[:, 1] < express[:, 0]).all()
    assert (shared[:, 1] > shared[:, 0]).all()
    total = own.mean(plans, X)
    assert (total[:, 1] > total[:, 0]).all()
    assert total.max() < 1
    one = Marketplace("mixed").mean(np.zeros((len(X), 1)), X)[:, 0]
    assert (one < total[:, 0]).all()  # with a second option more ride
    assert (one > express[:, 0]).all()


def test_expected_orders_are_those_of_all_ways_that_chance_can_go():
    traffic = by_hand([3, 2, 2], [2, 1, 0])
    requests = np.array([0.3, 0.8, 0.5, 0.9, 0.4, 0.7, 0.7])
    exact = requests * service_probabilities(requests, traffic)
    brute = np.zeros(7)
    for rows, drivers in (((0, 1, 2), 2), ((3, 4), 1)):
        for asked in itertools.product((0, 1), repeat=len(rows)):
            p = np.prod(np.where(asked, requests[list(rows)], 1 - requests[list(rows)]))
            for reached in itertools.product(range(drivers), repeat=len(rows)):
                taken = set()
                for row, own, driver in zip(rows, asked, reached, strict=True):
                    if own and driver not in taken:
                        taken.add(driver)
                        brute[row] += p / drivers ** len(rows)
    np.testing.assert_allclose(exact, brute, atol=1e-15)
    assert (exact[5:] == 0).all()  # nobody to drive


def test_orders_of_a_visit_have_the_closed_form_of_the_matching_function():
    traffic = by_hand([30, 12], [9, 20])
    requests = uniforms(0, 1, np.arange(42))
    orders = traffic.by_visit(requests * service_probabilities(requests, traffic))
    left = [np.prod(1 - requests[:30] / 9), np.prod(1 - requests[30:] / 20)]
    np.testing.assert_allclose(orders, [9 * (1 - left[0]), 20 * (1 - left[1])])
    sure = np.ones(42)
    orders = traffic.by_visit(service_probabilities(sure, traffic))
    np.testing.assert_allclose(orders, expected_orders(np.array([30.0, 12.0]), traffic.drivers))


@pytest.mark.parametrize(("regime", "n_options"), [("nonlinear", 1), ("mixed", 2)])
def test_expectations_are_the_means_of_draws(regime, n_options):
    own = Marketplace(regime, n_options)
    traffic = own.draw_traffic(days=[4], cells=CELLS, seed=3)
    plan = own.assigned(traffic, "levels", seed=9)
    exact = own.expected(traffic, plan)
    draws = [own.draw_results(traffic, plan, seed=seed) for seed in range(300)]
    for name in ("requests", "orders", "revenue", "cost"):
        drawn = np.array([traffic.by_visit(getattr(each, name)) for each in draws])
        errors = drawn.mean(axis=0) - traffic.by_visit(getattr(exact, name))
        scales = np.maximum(drawn.std(axis=0) / np.sqrt(len(draws)), 1e-9)
        # 36 visits: the largest of so many normal errors is below 4 of 1 in 400 times.
        assert np.abs(errors / scales).max() < 4, name
        assert np.abs((errors / scales).mean()) < 0.8  # 4 / sqrt(36), and some


def test_nobody_rides_without_a_request_and_no_driver_twice():
    own = Marketplace("mixed")
    traffic = own.draw_traffic(days=2, cells=CELLS, seed=5)
    found = own.draw_results(traffic, 0.3, seed=1)
    assert (found.orders <= found.requests).all()
    orders = traffic.by_visit(found.orders)
    assert (orders <= traffic.drivers).all()
    assert (orders < traffic.by_visit(found.requests)).any()  # drivers are scarce somewhere
    eta = traffic.X[:, FEATURES.index("eta_minutes")]
    rides = found.orders == 1
    assert (found.wait_minutes[rides] >= eta[rides]).all()
    assert (found.wait_minutes[rides] > eta[rides]).any()
    assert np.isnan(found.wait_minutes[~rides]).all()
    fares = own.fares(traffic.X)[:, 0]
    np.testing.assert_allclose(found.cost, 0.3 * fares * rides)
    np.testing.assert_allclose(found.cost + found.revenue, fares * rides)


def test_a_plan_for_one_visit_leaves_the_others_alone():
    own = Marketplace("nonlinear")
    traffic = own.draw_traffic(days=1, cells=CELLS, seed=3)
    plan = np.where(traffic.visit == 4, 0.3, 0.0)
    none, some = own.expected(traffic, 0.0).orders, own.expected(traffic, plan).orders
    changed = traffic.visit == 4
    np.testing.assert_array_equal(none[~changed], some[~changed])
    assert some[changed].sum() > none[changed].sum()
    # Those who come later find fewer drivers when the first ones ask more often.
    first = np.where(changed & (traffic.rank < 10), 0.3, 0.0)
    crowded = own.expected(traffic, first).orders
    later = changed & (traffic.rank >= 10)
    assert (crowded[later] < none[later]).all()


@pytest.mark.parametrize("n_options", [1, 2])
def test_an_order_curve_is_what_comes_of_changing_one_views_discount(n_options):
    own = Marketplace("mixed", n_options)
    traffic = own.draw_traffic(days=[2], cells=CELLS[:6], seed=3)
    plan = own.assigned(traffic, "levels", seed=0)
    dose = np.full(n_options, 0.2)
    curves = own.order_curves(traffic, dose[None] if n_options == 2 else dose, plan)
    for row in (0, 7, len(traffic) - 1):
        changed = plan.copy()
        changed[row] = dose
        assert own.expected(traffic, changed).orders[row] == pytest.approx(curves[row, 0])


def test_views_of_a_cell_and_day_do_not_depend_on_what_else_is_drawn():
    own = Marketplace()
    whole = own.draw_traffic(days=[3, 9], cells=CELLS, seed=8)
    part = own.draw_traffic(days=[9], cells=CELLS[5:9], seed=8)
    kept = (whole.days == 9) & np.isin(whole.cells, CELLS[5:9])
    np.testing.assert_array_equal(whole.X[kept], part.X)
    other = own.draw_traffic(days=[9], cells=CELLS[5:9], seed=9)
    assert len(other) != len(part) or not np.array_equal(other.X, part.X)


def test_rows_do_not_depend_on_blocks_or_on_how_many_there_are(monkeypatch):
    own = Marketplace("mixed")
    whole = draw_experiment(own, n_rows=5000, seed=4)
    part = draw_experiment(own, n_rows=1234, seed=4)
    monkeypatch.setattr(marketplace, "BLOCK_VISITS", 37)
    again = draw_experiment(own, n_rows=5000, seed=4)
    for name, column in whole.columns().items():
        np.testing.assert_array_equal(part.columns()[name], column[:1234])
        np.testing.assert_array_equal(again.columns()[name], column)
    assert len(np.unique(whole.cell)) > 100  # a random order of cells and days
    assert len(np.unique(whole.day)) > 100


def test_a_share_of_the_views_is_logged_from_all_over_the_city():
    own = Marketplace("mixed")
    every = draw_experiment(own, n_rows=40_000, seed=4)
    few = draw_experiment(own, n_rows=1500, seed=4, log_share=0.05)
    assert len(few) == 1500
    keys, counts = np.unique(few.cell * 365 + few.day, return_counts=True)
    assert len(keys) > 700  # visits; 1,500 views in a row are of some 70
    # What is logged is as it was: the rows are among those of the whole log.
    known = {row.tobytes() for row in np.ascontiguousarray(np.c_[every.X, every.finished])}
    rows = np.ascontiguousarray(np.c_[few.X, few.finished])
    seen = np.isin(few.cell * 365 + few.day, (every.cell * 365 + every.day)[:-200])
    assert seen.sum() > 1000
    assert all(row.tobytes() in known for row in rows[seen])
    assert counts.max() < 12


@pytest.mark.parametrize("n_options", [1, 2])
def test_files_hold_the_rows_whatever_the_size_of_chunks(tmp_path, n_options):
    parquet = pytest.importorskip("pyarrow.parquet")
    own = Marketplace("nonlinear", n_options)
    drawn = draw_experiment(own, n_rows=3000, seed=4).columns()
    for chunk in (700, 3000, 10**6):
        path = write_experiment(
            tmp_path / f"{chunk}.parquet", 3000, market=own, seed=4, chunk_rows=chunk
        )
        table = parquet.read_table(path)
        assert table.column_names == list(drawn)
        for name, column in drawn.items():
            np.testing.assert_array_equal(table[name].to_numpy(), column)
        groups = parquet.ParquetFile(path).metadata
        sizes = [groups.row_group(k).num_rows for k in range(groups.num_row_groups)]
        assert sizes == [700, 700, 700, 700, 200] if chunk == 700 else [3000]
    X = np.stack([table[name].to_numpy() for name in FEATURES], axis=1).astype(np.float64)
    doses = np.full((3000, 1, n_options), 0.1)
    exact = draw_experiment(own, n_rows=3000, seed=4).X
    np.testing.assert_array_equal(own.mean(doses, X), own.mean(doses, exact))


def test_a_file_that_is_not_finished_leaves_the_old_one(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = write_experiment(tmp_path / "rows.parquet", 500)
    before = path.read_bytes()
    whole = experiment_files.experiment_pieces

    def broken(*args):
        yield next(iter(whole(*args)))
        raise OSError("the disk is full")

    monkeypatch.setattr(experiment_files, "experiment_pieces", broken)
    with pytest.raises(OSError, match="disk is full"):
        write_experiment(path, 500_000, chunk_rows=1000)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]


@pytest.mark.parametrize("assignment", ["levels", "history"])
def test_levels_are_drawn_with_their_probabilities(assignment):
    drawn = draw_experiment(Marketplace(), n_rows=20_000, seed=1, assignment=assignment)
    chances = ASSIGNMENTS[assignment].probabilities(drawn.X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    for place, level in enumerate(LEVELS):
        given = np.isclose(drawn.treatment, level)
        errors = (given - chances[:, place]).sum()
        # A sum of independent errors: 4 standard deviations.
        spread = np.sqrt((chances[:, place] * (1 - chances[:, place])).sum())
        assert abs(errors) < 4 * spread
        np.testing.assert_allclose(drawn.propensity[given], chances[given, place])


@pytest.mark.parametrize("assignment", ["continuous", "history_continuous"])
def test_densities_of_continuous_discounts_integrate_to_one(assignment):
    drawn = draw_experiment(Marketplace(), n_rows=200, seed=1, assignment=assignment)
    edges = np.linspace(0.0, MAX_DISCOUNT, 20_001)
    middles = (edges[1:] + edges[:-1]) / 2
    rule = ASSIGNMENTS[assignment]
    for row in drawn.X[:5]:
        units = np.tile(row, (len(middles), 1))
        total = rule.density(middles[:, None], units).sum() * (edges[1] - edges[0])
        assert total == pytest.approx(1.0, abs=1e-3)  # the rule's error at the edges
    assert drawn.treatment.min() > 0
    assert drawn.treatment.max() < MAX_DISCOUNT


def test_the_history_is_confounded_and_the_experiment_is_not():
    own = Marketplace("linear")
    for assignment, confounded in (("levels", False), ("history", True)):
        drawn = draw_experiment(own, n_rows=20_000, seed=1, assignment=assignment)
        base = own.mean(np.zeros((len(drawn), 1)), drawn.X)[:, 0]
        related = np.corrcoef(base, drawn.treatment)[0, 1]
        # Of 20,000 unrelated rows the correlation is within 4 / sqrt(20,000) = 0.03.
        assert related < -0.2 if confounded else abs(related) < 0.03


def test_a_simulation_has_the_marketplaces_exact_curves():
    own = Marketplace("nonlinear")
    simulation = own.draw(n=300, seed=3)
    grid = np.array([0.0, 0.1, 0.3])
    expected = own.mean(np.broadcast_to(grid, (300, 3)), simulation.X)
    np.testing.assert_array_equal(simulation.mean(grid), expected)
    assert set(np.unique(simulation.y)) == {0.0, 1.0}
    assert simulation.draw_units(20, seed=0).shape == (20, len(FEATURES))
    assert simulation.draw_outcomes(grid, seed=0).shape == (300, 3)
    assert simulation.average().shape == (15,)
    again = pickle.loads(pickle.dumps(simulation))
    np.testing.assert_array_equal(again.effect(), simulation.effect())
    two = Marketplace("mixed", n_options=2).draw(n=100, seed=0, assignment="continuous")
    assert two.treatment.shape == (100, 2)
    assert two.effect().shape == (100, 25)
    doses = own.assign(simulation.X, np.random.default_rng(0))
    assert set(np.round(doses, 2)) <= set(LEVELS)


def test_policies_may_be_numbers_arrays_functions_and_objects():
    own = Marketplace()
    traffic = own.draw_traffic(days=1, cells=[8], seed=0)

    class Decider:
        def decide(self, X):
            return np.full(len(X), 0.12)

    plans = (0.12, np.full(len(traffic), 0.12), lambda X: np.full(len(X), 0.12), Decider())
    for plan in plans:
        np.testing.assert_array_equal(own.plan(plan, traffic), np.full((len(traffic), 1), 0.12))
    two = Marketplace(n_options=2)
    np.testing.assert_array_equal(two.plan([0.1, 0.2], traffic)[3], [0.1, 0.2])
    assert two.plan(0.1, traffic).shape == (len(traffic), 2)
    pairs = np.tile([0.1, 0.2], (len(traffic), 1))
    np.testing.assert_array_equal(two.plan(Doses.of_table(pairs).values, traffic), pairs)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (0.31, r"discounts from 0 to 0.3. Got 0.31"),
        (-0.01, "Got -0.01 instead"),
        (np.nan, "Got nan instead"),
        (np.zeros(3), r"gives shape \(\d+,\). Got shape \(3,\)"),
        (lambda X: np.zeros((len(X), 2)), r"Got shape \(\d+, 2\)"),
        ("much", "Got str instead"),
        (None, "Got nan instead"),
    ],
)
def test_bad_policies_are_refused(policy, message):
    own = Marketplace()
    traffic = own.draw_traffic(days=1, cells=[8], seed=0)
    with pytest.raises(ValueError, match=f"'policy' parameter must.*{message}"):
        own.plan(policy, traffic)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Marketplace("wild"), r"'regime' parameter must be one of 'linear'.*'wild'"),
        (lambda: Marketplace(n_options=3), r"'n_options' parameter must be 1 or 2. Got 3"),
        (lambda: Marketplace(n_options=True), "'n_options' parameter must be 1 or 2. Got True"),
        (lambda: Marketplace().draw_traffic(days=0), "'days' parameter must be different ints"),
        (lambda: Marketplace().draw_traffic(days=366), "'days' parameter must .* 0 to 364"),
        (lambda: Marketplace().draw_traffic(cells=[5760]), "'cells' parameter .* 0 to 5759"),
        (lambda: Marketplace().draw_traffic(cells=[1, 1]), "'cells' parameter .* different"),
        (lambda: Marketplace().draw_traffic(cells=[0.5]), "'cells' parameter must"),
        (lambda: Marketplace().draw_traffic(seed=-1), "'seed' parameter must be an int"),
        (lambda: Marketplace().draw(n=0), "'n_rows' parameter must be an int of at least 1"),
        (lambda: Marketplace().draw(n=9, assignment="fair"), "'assignment' parameter must be one"),
        (lambda: draw_experiment(Marketplace(), 9, log_share=0.0), "'log_share' parameter must be"),
        (lambda: draw_experiment(Marketplace(), 9, log_share=1.1), r"in \(0, 1\]. Got 1.1"),
        (lambda: Marketplace().mean(np.zeros((2, 1)), np.ones((2, 3))), "'X' parameter must have"),
        (lambda: Marketplace().mean(np.zeros((3, 1)), NOWHERE), r"shape \(2, n_doses\). Got"),
        (lambda: Marketplace(n_options=2).mean(np.zeros((2, 1)), NOWHERE), r"\(2, n_doses, 2\)"),
        (lambda: Marketplace().mean(np.full((2, 1), 0.4), NOWHERE), "from 0 to 0.3. Got 0.4"),
        (lambda: Marketplace().mean(np.full((2, 1), np.nan), NOWHERE), "Got nan instead"),
        (lambda: write_experiment("x.parquet", 10, chunk_rows=0), "'chunk_rows' parameter must"),
        (lambda: write_experiment("x.parquet", 1.5), "'n_rows' parameter must be an int"),
    ],
)
def test_bad_questions_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000, 4097])
def test_the_shuffle_is_an_order_of_all_places(size):
    order = shuffled(np.arange(size), size, seed=5)
    np.testing.assert_array_equal(np.sort(order), np.arange(size))
    if size > 3:
        assert not np.array_equal(order, shuffled(np.arange(size), size, seed=6))
    np.testing.assert_array_equal(shuffled(np.array([size - 1]), size, seed=5), order[-1:])


def test_counts_are_poisson():
    levels = uniforms(3, 2, np.arange(2000))
    means = np.geomspace(0.01, 300.0, 2000)
    np.testing.assert_array_equal(poisson_quantiles(levels, means), poisson.ppf(levels, means))
    assert poisson_quantiles(np.array([0.5]), np.array([0.0])) == 0


def test_more_rows_than_a_season_has_are_refused(monkeypatch):
    short = Marketplace("mixed")
    monkeypatch.setattr(Marketplace, "blocks", lambda self, seed: iter([]))
    with pytest.raises(ValueError, match="'n_rows' parameter must be at most 0"):
        list(experiment_files.experiment_pieces(short, 10, 0, "levels"))


def test_a_flat_discount_costs_what_was_asked_for():
    own = Marketplace("nonlinear")
    traffic = own.draw_traffic(days=1, cells=CELLS, seed=0)
    plan = own.assigned(traffic, "levels", seed=0)
    cost = own.expected(traffic, plan).cost.sum()
    flat = flat_discount(own, traffic, cost)
    assert own.expected(traffic, flat).cost.sum() == pytest.approx(cost, rel=1e-4)
    most = own.expected(traffic, MAX_DISCOUNT).cost.sum()
    assert flat_discount(own, traffic, most) == MAX_DISCOUNT
    assert flat_discount(own, traffic, 0) == 0
    for wrong in (-1.0, 1.01 * most, np.nan, "much"):
        with pytest.raises(ValueError, match="'cost' parameter must be a number from 0 to"):
            flat_discount(own, traffic, wrong)


def test_the_marketplace_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    assert plot_marketplace(tmp_path / "market.png").stat().st_size > 10_000


def test_nobody_can_write_to_the_city_that_all_share():
    city = make_city()
    for array in (city.distance, city.mean_views, city.zones.business):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
