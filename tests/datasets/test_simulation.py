"""Designs: what they draw, and that the mean they call exact is the mean of what they draw."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betainc, expit, ndtr
from scipy.stats import beta

from bench.designs import DESIGNS, PublishedDesign
from bench.designs.paper_designs import DOSE_CURVES, PRINTED_CURVES, SLOPES
from doseforest.baselines import AverageCurve
from doseforest.datasets.overlap_designs import OVERLAP_DESIGNS
from doseforest.datasets.simulation import cell_middles
from doseforest.evaluation import effect_errors, simulation_mean

NAMES = sorted(DESIGNS)
PAPER = [f"{name}{kind}" for name in DOSE_CURVES for kind in ("", "_sparse", "_density")]
PAPER += ["sinusoidal_printed", "exponential_printed"]
OTHER_SLOPES = [f"slope_{name}" for name in SLOPES if name != "square"]
N_FEATURES = dict.fromkeys([*PAPER, *OTHER_SLOPES], 60) | {"colangelo_lee_2": 100}
DEFAULT_SIZES = {"polynomial": 1000, "colangelo_lee_2": 1000, "steps": 2000}


@pytest.fixture(params=NAMES, name="simulation")
def _simulation(request):
    return DESIGNS[request.param].draw(n=300, seed=3)


def test_all_designs_of_the_table_are_there():
    paper = ["exponential", "polynomial", "sinusoidal"]
    overlap = ["binary", "confounded", "linear", "randomised", "steps"]
    others = [f"{name}_{kind}" for name in paper for kind in ("sparse", "density")]
    others += ["exponential_printed", "sinusoidal_printed"]
    assert sorted(["colangelo_lee_2", *paper, *others, *OTHER_SLOPES, *overlap]) == NAMES
    assert all(DESIGNS[name].name == name and DESIGNS[name].description for name in NAMES)


def test_shapes_are_those_asked_for(simulation):
    p = N_FEATURES.get(simulation.name, 20)
    assert simulation.X.shape == (300, p)
    assert simulation.treatment.shape == simulation.y.shape == (300,)
    assert simulation.doses.shape == (20,)
    assert simulation.mean([0.0, 1.0, 2.0]).shape == (300, 3)
    assert simulation.mean(simulation.treatment[:, None]).shape == (300, 1)
    assert simulation.mean(1.0, simulation.X[:7]).shape == (7, 1)
    assert simulation.effect().shape == (300, 20)
    assert simulation.average().shape == (20,)
    assert simulation.draw_units(5, seed=0).shape == (5, p)
    for array in (simulation.X, simulation.treatment, simulation.y, simulation.mean(1.0)):
        assert array.dtype == np.float64
        assert np.isfinite(array).all()


@pytest.mark.parametrize(("name", "size"), DEFAULT_SIZES.items())
def test_default_sizes_are_those_of_the_papers(name, size):
    assert len(DESIGNS[name].draw().y) == size


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_decides_everything_and_another_changes_it(name):
    first, again, other = (DESIGNS[name].draw(n=50, seed=seed) for seed in (7, 7, 8))
    for field in ("X", "treatment", "y", "doses"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))
    np.testing.assert_array_equal(first.mean([1.0]), again.mean([1.0]))
    assert not np.array_equal(first.X, other.X)
    np.testing.assert_array_equal(first.draw_units(4, seed=1), again.draw_units(4, seed=1))
    assert not np.array_equal(first.draw_units(4, seed=1), first.draw_units(4, seed=2))


def test_designs_and_simulations_travel_to_other_processes(simulation):
    there = pickle.loads(pickle.dumps(simulation))
    np.testing.assert_array_equal(there.mean([1.0]), simulation.mean([1.0]))
    design = pickle.loads(pickle.dumps(DESIGNS[simulation.name]))
    np.testing.assert_array_equal(design.draw(n=300, seed=3).y, simulation.y)


def test_own_doses_and_a_grid_give_the_same_curves(simulation):
    grid = simulation.doses[:4]
    own = np.tile(grid, (300, 1))
    np.testing.assert_array_equal(simulation.mean(grid), simulation.mean(own))
    turned = own[:, ::-1]
    np.testing.assert_array_equal(simulation.mean(turned), simulation.mean(grid)[:, ::-1])


def test_effect_and_average_follow_from_the_mean(simulation):
    at, start = simulation.doses[3], simulation.baseline
    by_hand = simulation.mean(at) - simulation.mean(start)
    np.testing.assert_allclose(simulation.effect(at), by_hand)
    np.testing.assert_array_equal(simulation.effect(start), np.zeros((300, 1)))
    np.testing.assert_allclose(simulation.average(at), simulation.mean(at).mean())


def test_redrawn_outcomes_average_to_the_exact_mean(simulation):
    # 12 (unit, dose) pairs of 20,000 draws: the largest of 12 normal deviations exceeds
    # 4.5 standard errors once in 12,000 such tests; the seed is fixed.
    units, doses = simulation.X[:4], simulation.doses[[1, 9, 18]]
    repeated = np.repeat(units, 20_000, axis=0)
    drawn = simulation.draw_outcomes(doses, repeated, seed=5).reshape(4, 20_000, 3)
    scale = simulation.noise_scale(doses, units)
    deviation = (drawn.mean(axis=1) - simulation.mean(doses, units)) / (scale / np.sqrt(20_000))
    assert np.abs(deviation).max() < 4.5
    # The variance of 20,000 squares: at most 1.5 % off for normal noise at 1 standard error
    # (kurtosis 3), less for the others unless an outcome is nearly certain.
    likely = (scale > 0.2).ravel()
    ratio = (drawn.std(axis=1) / scale).ravel()[likely]
    np.testing.assert_allclose(ratio, 1.0, atol=0.03)


def test_observed_outcomes_scatter_around_the_exact_mean(simulation):
    own = simulation.treatment[:, None]
    residual = (simulation.y - simulation.mean(own)[:, 0]) / simulation.noise_scale(own)[:, 0]
    assert abs(residual.mean()) < 4.0 / np.sqrt(300)
    assert abs(residual @ simulation.X[:, 0]) < 4.0 * np.linalg.norm(simulation.X[:, 0])


@pytest.mark.parametrize("name", ["randomised", "confounded"])
def test_waves_are_the_printed_formula(name):
    simulation = DESIGNS[name].draw(n=40, seed=1)
    x = simulation.X[5]
    b = simulation.population.main
    for t in (0.0, 2.5, 10.0):
        expected = 3 * (1 + (x[1] > 0)) * np.sin(t / 2) + 0.5 * max(x[0], 0) * t + 0.1 * t**2
        expected += x @ b + 2 * np.sin(2 * x[2])
        assert simulation.mean(t)[5, 0] == pytest.approx(expected)
    assert np.abs(b).max() < 1


def test_steps_are_the_printed_formula_at_hand_computed_points():
    simulation = DESIGNS["steps"].draw(n=10, seed=0)
    x = np.zeros((3, 20))
    x[0, :5] = [0.5, 1, 1, -1, 1]  # both steps: 4 tanh(t - 2) + 3 + 1
    x[1, :5] = [-0.5, 1, -1, 0, 1]  # none: -1
    x[2, :5] = [-0.5, -1, -1, 0, 0]  # the interaction alone: 2 tanh(t - 2)
    high = np.tanh(1.0)
    expected = [[4.0, 4.0 + 4 * high], [-1.0, -1.0], [0.0, 2 * high]]
    np.testing.assert_allclose(simulation.mean([2.0, 3.0], x), expected, atol=1e-12)


def test_binary_probabilities_are_the_printed_formula_at_hand_computed_points():
    simulation = DESIGNS["binary"].draw(n=10, seed=0)
    x = np.zeros((2, 20))
    x[0, :2] = [1.0, -1.0]  # -1 + 1 + 0.5 t (2 - t)
    x[1, :2] = [0.0, 1.0]  # -1 + 3.5 t (2 - t)
    expected = [[0.5, 1 / (1 + np.exp(-0.5))], [1 / (1 + np.e), 1 / (1 + np.exp(-2.5))]]
    np.testing.assert_allclose(simulation.mean([0.0, 1.0], x), expected)
    np.testing.assert_array_equal(np.unique(DESIGNS["binary"].draw(n=500).y), [0.0, 1.0])


def test_the_linear_control_has_one_effect_for_all():
    simulation = DESIGNS["linear"].draw(n=100, seed=2)
    np.testing.assert_allclose(simulation.effect([3.0], baseline=1.0), 4.0)
    assert np.ptp(simulation.mean(0.0)) > 1


def test_published_curves_at_hand_computed_points():
    doses = np.array([0.0, 5.0, 15.0])
    np.testing.assert_allclose(DOSE_CURVES["polynomial"](doses), [0.0, -10.0, 0.0])
    sines = 5.5 * np.sin(doses) + doses
    np.testing.assert_allclose(DOSE_CURVES["sinusoidal"](doses), sines)
    np.testing.assert_allclose(DOSE_CURVES["exponential"](np.array([0.0, 0.9])), [0.0, -0.72])


def test_printed_curves_are_the_formulas_of_the_supplement():
    doses = np.linspace(0.0, 36.0, 73)
    exact = {
        "polynomial": 0.2 * (doses - 5) ** 2 - doses - 5,
        "sinusoidal": 5 * np.sin(doses) + doses,
        "exponential": np.log(1 + np.exp(doses) / (doses + 0.1)) - np.log(11),
    }
    assert set(PRINTED_CURVES) == set(exact)
    for name, values in exact.items():
        np.testing.assert_allclose(PRINTED_CURVES[name](doses), values, atol=1e-12)
        assert abs(PRINTED_CURVES[name](np.zeros(1))[0]) < 1e-12
    # Where e^t is no float any more, log(1 + e^t / (t + 0.1)) is t - log(t + 0.1).
    far = PRINTED_CURVES["exponential"](np.array([1000.0]))
    np.testing.assert_allclose(far, 1000.0 - np.log(1000.1) - np.log(11))


@pytest.mark.parametrize(
    ("name", "psi"), [("printed", beta(2, 3).cdf), ("density", beta(2, 3).pdf)]
)
@pytest.mark.parametrize("shape", ["sinusoidal", "exponential"])
def test_printed_designs_have_the_printed_curve_and_one_of_two_readings_of_psi(shape, name, psi):
    simulation = DESIGNS[f"{shape}_{name}"].draw(n=2000, seed=4)
    decoded = DESIGNS[shape].draw(n=2000, seed=4)
    np.testing.assert_array_equal(simulation.X, decoded.X)
    centre = 20 * psi(expit(simulation.X @ simulation.population.dose_weights))
    drawn = simulation.treatment
    assert np.abs(drawn - centre)[drawn > 0].max() < 1  # noise U(-1, 1)
    assert (centre[drawn == 0] < 1).all()
    x = np.zeros((1, 60))  # a unit without a slope or a level
    doses = np.array([0.0, 3.0, 19.0])
    np.testing.assert_allclose(simulation.mean(doses, x)[0], PRINTED_CURVES[shape](doses))


def test_published_mean_is_a_curve_a_slope_and_a_level():
    simulation = DESIGNS["polynomial"].draw(n=10, seed=0)
    weights = simulation.population.outcome_weights
    x = np.zeros((2, 60))
    x[0, [0, 3, 52]] = [2.0, 1.0, 1.0]  # slope 0.2 (4 + 1) = 1
    x[1, 57] = 5.0  # of the dose alone
    level = 2 * weights[0] + weights[3] + weights[52]
    expected = [[level, level - 5.0], [0.0, -10.0]]
    np.testing.assert_allclose(simulation.mean([0.0, 5.0], x), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("slope", "of_two"),
    [("abs", 3.0), ("sine", 1.5 * np.sin(4)), ("exp", np.exp(4 / 3)), ("step", 2.0), ("line", 2.0)],
)
def test_other_slopes_change_how_the_first_confounder_counts_and_nothing_else(slope, of_two):
    own, paper = (DESIGNS[name].draw(n=200, seed=4) for name in (f"slope_{slope}", "polynomial"))
    np.testing.assert_array_equal(own.treatment, paper.treatment)
    x = np.zeros((1, 60))
    x[0, [0, 3]] = [2.0, 1.0]
    gap = own.mean([0.0, 5.0], x) - paper.mean([0.0, 5.0], x)
    np.testing.assert_allclose(gap, [[0.0, 0.2 * (of_two - 4.0) * 5.0]], atol=1e-12)


def test_published_curves_share_units_doses_and_noise_at_a_seed():
    first, second = (DESIGNS[name].draw(n=200, seed=4) for name in ("polynomial", "sinusoidal"))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.treatment, second.treatment)
    noise = [s.y - s.mean(s.treatment[:, None])[:, 0] for s in (first, second)]
    np.testing.assert_allclose(*noise, atol=1e-10)
    assert np.abs(noise[0]).max() < 1


def test_published_doses_lie_where_their_formula_puts_them():
    simulation = DESIGNS["polynomial"].draw(n=20_000, seed=0)
    index = simulation.X @ simulation.population.dose_weights
    centre = 20 * betainc(2, 3, expit(index))
    assert (np.abs(simulation.treatment - centre) <= 1).all()
    low, high = simulation.support
    assert low == 0
    assert 20.9 < high < 21
    # 12.98 % over 400 draws of the coefficients, with a standard deviation of .6 % among them.
    assert 0.105 < np.mean(simulation.treatment == 0) < 0.155
    np.testing.assert_allclose(simulation.doses[[0, -1]], [high / 40, high * 39 / 40])


def test_exact_average_curve_has_the_known_error_on_all_published_designs():
    # Known: 4.09 / 2.63 over 10 simulations of 1,000 test units. One simulation has a standard
    # deviation of .24 / .10 (theta - average is t (x1^2 - 1 + x4) / 5, of kurtosis 15), hence a
    # standard error of .08 / .03 for the known figures and of .03 / .013 for the 60 here.
    errors = []
    for seed in range(60):
        simulation = DESIGNS["polynomial"].draw(n=1000, seed=seed)
        exact = AverageCurve(simulation.average)
        errors.append(effect_errors(exact, simulation))
        if seed < 3:
            for name in ("sinusoidal", "exponential"):
                other = DESIGNS[name].draw(n=1000, seed=seed)
                error = effect_errors(AverageCurve(other.average), other)
                assert error.rms == pytest.approx(errors[-1].rms)
                assert error.mae == pytest.approx(errors[-1].mae)
    rms = simulation_mean([error.rms for error in errors])
    mae = simulation_mean([error.mae for error in errors])
    assert rms.value == pytest.approx(4.09, abs=2 * 0.085)
    assert mae.value == pytest.approx(2.63, abs=2 * 0.035)
    assert max(error.adrf_sup for error in errors) < 1e-10
    # In closed form, with doses up to 21: 21 / sqrt(3) * sqrt(3) / 5 = 4.2.
    assert rms.value == pytest.approx(4.2, abs=4 * rms.standard_error)


def test_open_readings_change_what_they_name():
    def draw(**reading):
        return PublishedDesign("polynomial", **reading).draw(n=2000, seed=1)

    decoded = draw()
    assert draw(dose_transform="pdf").support[1] > 30  # 20 times the mode, 16 / 9
    assert draw(clip_at_zero=False).support[0] < -0.9
    shared = draw(shared_coefficients=True).population
    np.testing.assert_array_equal(shared.outcome_weights[:50], shared.dose_weights[:50])
    apart = decoded.population
    assert abs(np.corrcoef(apart.outcome_weights[:50], apart.dose_weights[:50])[0, 1]) < 0.5
    assert np.abs(draw(coefficients="normal").population.outcome_weights).max() > 1
    noisy = draw(noise="normal")
    residual = noisy.y - noisy.mean(noisy.treatment[:, None])[:, 0]
    assert residual.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * 2000))
    assert draw(dose_range=(2.0, 6.0), n_doses=2).doses.tolist() == [3.0, 5.0]
    inner = draw(dose_range="interior")
    assert inner.doses.max() < np.quantile(inner.treatment, 0.95)
    assert draw(n_confounders=6, n_outcome_only=0, n_dose_only=1).X.shape == (2000, 7)
    flat = PublishedDesign("flat", curve=np.zeros_like).draw(n=10)
    np.testing.assert_allclose(flat.effect(0.0), 0.0)


def test_features_of_the_outcome_alone_do_not_move_the_dose():
    population = DESIGNS["sinusoidal"].draw(n=10).population
    np.testing.assert_array_equal(population.dose_weights[50:55], np.zeros(5))
    np.testing.assert_array_equal(population.outcome_weights[55:], np.zeros(5))
    assert (population.dose_weights[55:] != 0).all()


def test_doses_of_the_overlap_designs_have_their_distributions():
    # 20,000 draws: a mean is known to its standard deviation / 141, a share to .0035.
    randomised = DESIGNS["randomised"].draw(n=20_000, seed=0).treatment
    assert randomised.mean() == pytest.approx(5.0, abs=4 * 2.887 / 141)
    assert randomised.var() == pytest.approx(100 / 12, rel=0.03)
    confounded = DESIGNS["confounded"].draw(n=20_000, seed=0)
    assert confounded.support == (0.0, 10.0)
    c = confounded.population.drift
    residual = confounded.treatment - 5 - confounded.X[:, :5] @ c
    inside = (confounded.treatment > 0) & (confounded.treatment < 10)
    assert residual[inside].std() == pytest.approx(1.5, rel=0.05)
    steps = DESIGNS["steps"].draw(n=20_000, seed=0)
    assert steps.support == (0.0, 6.0)
    assert np.abs(steps.X).max() <= 1
    binary = DESIGNS["binary"].draw(n=20_000, seed=0)
    tilt = expit(binary.X[:, 0])  # the mean of Beta(1 + 2 s, 3 - 2 s) is (1 + 2 s) / 4
    assert (binary.treatment - (1 + 2 * tilt) / 4).mean() == pytest.approx(0, abs=4 * 0.22 / 141)
    assert 0 < binary.treatment.min() < binary.treatment.max() < 1
    linear = DESIGNS["linear"].draw(n=20_000, seed=0)
    assert (linear.treatment - linear.X[:, 0]).std() == pytest.approx(1.0, abs=0.02)


def test_interior_doses_leave_a_twentieth_on_either_side():
    simulation = DESIGNS["confounded"].draw(n=2000, seed=0)
    low, high = np.quantile(simulation.treatment, [0.05, 0.95])
    assert simulation.baseline == pytest.approx(low, abs=0.02)
    gap = (high - low) / 20
    expected = [low + gap / 2, high - gap / 2]
    np.testing.assert_allclose(simulation.doses[[0, -1]], expected, atol=0.02)


def test_colangelo_lee_has_its_covariance_dose_and_average():
    design = DESIGNS["colangelo_lee_2"]
    simulation = design.draw(n=20_000, seed=0)
    covariance = np.cov(simulation.X[:, :4], rowvar=False)
    expected = np.eye(4) + 0.5 * (np.eye(4, k=1) + np.eye(4, k=-1))
    np.testing.assert_allclose(covariance, expected, atol=5 / 141)  # 5 standard errors
    index = simulation.X @ (1 / np.arange(1, 101) ** 2)
    residual = simulation.treatment - ndtr(3 * index) + 0.5
    assert residual.std() == pytest.approx(0.75, rel=0.03)
    x = np.zeros((1, 100))
    x[0, :2] = [1.0, 2.0]  # index 1.5
    np.testing.assert_allclose(simulation.mean([0.0, 2.0], x), [[1.8, 2.4 + 4 + 2 + 1.8]])
    np.testing.assert_allclose(simulation.noise_scale(0.0, x), 0.5 + ndtr(1.0))
    # Units average to the population's curve: sd of mu(0, x) is 1.2 sd(x'w) < 1.8.
    grid = np.array([0.0, 0.5])
    np.testing.assert_allclose(
        simulation.average(grid), design.population_average(grid), atol=5 * 2.5 / 141
    )


def test_cells_of_doses_integrate_by_plain_means():
    doses = cell_middles(0.0, 3.0, n_doses=50)
    assert np.mean(doses**2) == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DESIGNS["steps"].draw(n=0), r"'n' parameter must be an int of at least 1. Got 0"),
        (lambda: DESIGNS["steps"].draw(n=2.5), r"'n' parameter .* Got 2.5"),
        (lambda: PublishedDesign("cubic"), r"'name' parameter .* Got 'cubic'"),
        (lambda: PublishedDesign("polynomial", noise="t"), r"'noise' parameter .* Got 't'"),
        (lambda: PublishedDesign("polynomial", dose_transform="Psi"), r"\['cdf', 'pdf'\]. Got"),
        (lambda: PublishedDesign("polynomial", dose_range="all"), r"'dose_range' .* Got 'all'"),
        (lambda: PublishedDesign("polynomial", dose_range=(2.0, 1.0)), r"ascending .* \(2.0, 1.0"),
        (lambda: PublishedDesign("polynomial", n_confounders=3), r"'n_confounders' .* Got 3"),
        (
            lambda: PublishedDesign("exponential", clip_at_zero=False).draw(),
            r"above -0.1 .* clip_at_zero=True .* Got -",
        ),
        (
            lambda: replace(DESIGNS["exponential_printed"], clip_at_zero=False).draw(),
            r"above -0.1 .* clip_at_zero=True .* Got -",
        ),
        (
            lambda: replace(OVERLAP_DESIGNS["steps"], n_doses=0).draw(),
            r"'n_doses' parameter must be an int of at least 1. Got 0",
        ),
    ],
)
def test_errors_name_parameter_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_units_and_doses_of_a_wrong_shape_are_refused():
    simulation = DESIGNS["steps"].draw(n=10)
    with pytest.raises(ValueError, match=r"'X' parameter .* \(n_units, 20\). Got shape \(2, 3\)"):
        simulation.mean(1.0, np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"'doses' parameter .* \(10\). Got shape \(3, 1\)"):
        simulation.mean(np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"'doses' parameter .* finite .* Got nan"):
        simulation.mean([1.0, np.nan])


def test_sparse_designs_have_the_units_of_the_dense_ones_and_few_confounders():
    dense = DESIGNS["polynomial"].draw(n=300, seed=4)
    sparse = DESIGNS["polynomial_sparse"].draw(n=300, seed=4)
    np.testing.assert_array_equal(sparse.X, dense.X)
    population = sparse.population
    for weights in (population.outcome_weights[:50], population.dose_weights[:50]):
        assert np.flatnonzero(weights).tolist() == list(range(5))
    assert (population.outcome_weights[50:55] != 0).all()
    assert (population.dose_weights[55:] != 0).all()


@pytest.mark.parametrize("n_relevant", [0, 51])
def test_the_number_of_relevant_confounders_is_checked(n_relevant):
    with pytest.raises(ValueError, match=r"'n_relevant' .* int in \[1, n_confounders=50\]"):
        PublishedDesign("polynomial", n_relevant=n_relevant)
