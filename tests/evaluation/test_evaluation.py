"""Errors of curves: exact for predictors whose errors are known, and comparisons over draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bench.designs import DESIGNS
from doseforest.base.estimates import Estimate
from doseforest.baselines import AverageCurve, ZeroEffect
from doseforest.doses.curve_effects import CurveEffects, dose_table
from doseforest.evaluation import (
    EffectErrors,
    curve_errors,
    effect_errors,
    paired_difference,
    simulation_mean,
)


class Truth(CurveEffects):
    """The exact curves, moved by a function of the doses and the units."""

    def __init__(self, simulation, shift=lambda doses, X: 0.0):
        self.simulation = simulation
        self.shift = shift

    def dose_response(self, X, doses):
        return self.simulation.mean(doses, X) + self.shift(dose_table(doses, len(X)).values, X)


@pytest.fixture(params=sorted(DESIGNS), name="simulation")
def _simulation(request):
    return DESIGNS[request.param].draw(n=200, seed=1)


def test_the_truth_has_no_error(simulation):
    assert effect_errors(Truth(simulation), simulation) == EffectErrors(0.0, 0.0, 0.0, 0.0, 0.0)


def test_a_wrong_level_is_no_error_of_effects(simulation):
    errors = effect_errors(Truth(simulation, lambda doses, X: 3.0), simulation)
    assert errors.rms == pytest.approx(0.0, abs=1e-12)
    assert errors.mae == pytest.approx(0.0, abs=1e-12)
    assert errors.adrf_rms == pytest.approx(3.0)
    assert errors.adrf_sup == pytest.approx(3.0)


def test_a_level_for_each_unit_cancels_from_effects_and_stays_in_the_average(simulation):
    errors = effect_errors(Truth(simulation, lambda doses, X: X[:, :1]), simulation)
    assert errors.rms == pytest.approx(0.0, abs=1e-12)
    assert errors.adrf_sup == pytest.approx(abs(simulation.X[:, 0].mean()))


def test_an_effect_too_large_by_a_known_amount_has_that_error(simulation):
    model = Truth(simulation, lambda doses, X: np.where(doses == simulation.baseline, 0.0, -0.5))
    errors = effect_errors(model, simulation)
    assert errors.rms == pytest.approx(0.5)
    assert errors.mae == pytest.approx(0.5)


def test_zero_effect_has_the_size_of_the_effects_as_its_error(simulation):
    model = ZeroEffect().fit(simulation.X, simulation.y, treatment=simulation.treatment)
    errors = effect_errors(model, simulation)
    effects = simulation.effect()
    assert errors.rms == pytest.approx(np.sqrt(np.mean(effects**2)))
    assert errors.mae == pytest.approx(np.mean(np.abs(effects)))
    gap = simulation.average() - simulation.y.mean()
    assert errors.adrf_sup == pytest.approx(np.abs(gap).max())
    assert errors.adrf_rms == pytest.approx(np.sqrt(np.mean(gap**2)))


def test_exact_average_is_the_best_of_all_curves_without_heterogeneity(simulation):
    exact = effect_errors(AverageCurve(simulation.average), simulation)
    assert exact.adrf_sup == pytest.approx(0.0, abs=1e-10)
    effects = simulation.effect()
    spread = np.sqrt(np.mean((effects - effects.mean(axis=0)) ** 2))
    assert exact.rms == pytest.approx(spread, abs=1e-12)
    bent = AverageCurve(lambda doses: simulation.average(doses) + 0.3 * np.sin(doses))
    assert effect_errors(bent, simulation).rms > exact.rms


def test_hand_computed_errors():
    exact = np.array([[1.0, 2.0], [3.0, 5.0]])
    estimated = np.array([[2.0, 2.0], [3.0, 2.0]])
    errors = curve_errors(exact, estimated, np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    # Level: [[1, 0], [0, -3]]; effect, less the baseline's error of [0, 1]: [[1, 0], [-1, -4]].
    assert errors.rms == pytest.approx(np.sqrt(18 / 4))
    assert errors.mae == pytest.approx(6 / 4)
    assert errors.adrf_rms == pytest.approx(np.sqrt((0.5**2 + 1.5**2) / 2))
    assert errors.adrf_sup == 1.5


def test_units_doses_and_baseline_can_be_others():
    simulation = DESIGNS["steps"].draw(n=100, seed=0)
    new = simulation.draw_units(30, seed=9)
    model = ZeroEffect().fit(simulation.X, simulation.y)
    errors = effect_errors(model, simulation, X=new, doses=[1.0, 4.0], baseline=2.0)
    effects = simulation.effect([1.0, 4.0], new, baseline=2.0)
    assert errors.rms == pytest.approx(np.sqrt(np.mean(effects**2)))
    own = np.linspace(1, 5, 30)[:, None]
    errors = effect_errors(model, simulation, X=new, doses=own, baseline=2.0)
    effects = simulation.effect(own, new, baseline=2.0)
    assert errors.mae == pytest.approx(np.mean(np.abs(effects)))


def test_a_grid_stays_a_grid_on_its_way_to_the_model():
    simulation = DESIGNS["steps"].draw(n=20, seed=0)
    asked = []

    class Spy(Truth):
        def dose_response(self, X, doses):
            asked.append(np.shape(doses))
            return super().dose_response(X, doses)

    effect_errors(Spy(simulation), simulation)
    effect_errors(Spy(simulation), simulation, doses=np.linspace(1, 2, 20)[:, None])
    assert asked == [(21,), (20, 2)]


def test_paired_differences_have_the_paired_standard_error():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 10, 50)
    first, second = shared + rng.normal(1, 0.1, 50), shared + rng.normal(0, 0.1, 50)
    difference = paired_difference(first, second)
    test = stats.ttest_rel(first, second)
    assert difference.value / difference.standard_error == pytest.approx(test.statistic)
    expected = test.confidence_interval(0.9)
    np.testing.assert_allclose(difference.interval(0.9), [expected.low, expected.high])
    assert difference.standard_error < 0.1 * simulation_mean(first).standard_error


def test_mean_over_simulations_is_the_textbook_one():
    assert simulation_mean([1.0, 2.0, 3.0, 6.0]) == Estimate(3.0, np.sqrt(14 / 3) / 2, degrees=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulation_mean([1.0]), r"'values' .* at least 2 simulations. Got \[1.0\]"),
        (lambda: simulation_mean([1.0, np.nan]), r"'values' .* finite"),
        (lambda: paired_difference([1.0, 2.0], [1.0]), r"'second' .* \(2,\). Got \(1,\)"),
        (lambda: Estimate(0.0, 1.0).interval(95), r"'coverage' .* Got 95"),
        (
            lambda: curve_errors(np.zeros((2, 3)), np.zeros((2, 2)), np.zeros(2), np.zeros(2)),
            r"'estimated' parameter must have shape \(2, 3\). Got \(2, 2\)",
        ),
        (
            lambda: curve_errors(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(2), np.zeros(3)),
            r"'estimated_baseline' parameter must have shape \(2,\). Got \(3,\)",
        ),
        (
            lambda: curve_errors(np.zeros((2, 0)), np.zeros((2, 0)), np.zeros(2), np.zeros(2)),
            r"must have a unit and a dose. Got shape \(2, 0\)",
        ),
        (
            lambda: curve_errors(
                np.zeros((1, 1)), np.full((1, 1), np.nan), np.zeros(1), np.zeros(1)
            ),
            r"'estimated' parameter must hold finite numbers. Got nan",
        ),
    ],
)
def test_errors_name_parameter_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_that_answers_with_the_wrong_shape_is_named():
    simulation = DESIGNS["steps"].draw(n=20, seed=0)

    class Flat:
        def dose_response(self, X, doses):
            return np.zeros(len(X))

    with pytest.raises(ValueError, match=r"'model' parameter must have shape \(20, 21\). Got"):
        effect_errors(Flat(), simulation)
