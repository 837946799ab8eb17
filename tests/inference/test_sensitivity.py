"""Sensitivity to confounders that nobody measured: bounds that hold, and are reached."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from causal_tables import small
from doseforest.doses.bases.dose_basis import UserFunctions
from doseforest.doses.dose_values import Doses
from doseforest.estimator.training_rows import check_training
from doseforest.inference.doubts.omitted_variables import estimate_sensitivity
from doseforest.inference.doubts.sensitivity import Benchmark, Sensitivity
from doseforest.inference.judged_rows import JudgedRows


def confounded(n=1000, seed=300, strength=1.0, effect=2.0):
    """A dose that a covariate drives, and a second one that the forest is not shown."""
    rng = np.random.default_rng(seed)
    x, hidden = rng.normal(size=(n, 2)), rng.normal(size=n)
    dose = x[:, 0] + strength * hidden + rng.normal(size=n)
    y = effect * dose + x[:, 0] + strength * hidden + rng.normal(size=n)
    return x, hidden, dose, y


def fit(x, y, dose, **parameters):
    settings = {
        "outcome_model": LinearRegression(),
        "treatment_model": LinearRegression(),
        "correction": "none",
        "basis": line_basis(),
        "baseline": 0.0,
        "density": "none",
    }
    return small(**{**settings, **parameters}).fit(x, y, treatment=dose)


def line_basis():
    return UserFunctions([lambda dose: dose], [np.ones_like])


@pytest.fixture(scope="module")
def short():
    x, _, dose, y = confounded()
    return fit(x, y, dose).tests.sensitivity(0.0, 1.0, benchmark=[0, 1])


def test_the_bound_is_the_bias_of_a_line_in_closed_form():
    # y = 2 t + x + u, t = x + u + v without u: t~ = u + v of variance 2, slope 2 + 1/2, residual
    # variance 1 + 1/2, representer t~ / 2 of mean square 1/2.
    exact = Sensitivity(2.5, 0.0, 1.0, 1.5, 0.5, np.zeros((3, 3)))
    # Of the residual's 1.5 the confounder explains 0.5; of the dose's 2 it explains 1.
    assert exact.bias(1 / 3, 1 / 2) == pytest.approx(0.5)
    bounds = exact.bounds(1 / 3, 1 / 2)
    assert (bounds.low, bounds.high) == (pytest.approx(2.0), pytest.approx(3.0))
    assert bounds.interval == (bounds.low, bounds.high)


def test_forests_estimate_what_bounds_are_made_of(short):
    # See above; 1,000 rows tell variances to sqrt(2 / 1000) = 4.5 %.
    assert short.value == pytest.approx(2.5, abs=4 * short.standard_error)
    assert short.residual_variance == pytest.approx(1.5, rel=0.15)
    assert short.representer_square == pytest.approx(0.5, rel=0.15)
    bounds = short.bounds(1 / 3, 1 / 2)
    assert bounds.interval[0] < 2.0 < bounds.interval[1]  # the effect with the confounder
    assert bounds.low == pytest.approx(2.0, abs=0.15)


def test_standard_errors_of_the_parts_are_those_of_repeated_draws():
    draws = []
    for seed in range(300, 360):
        x, _, dose, y = confounded(n=200, seed=seed)
        rows = check_training(x, y, dose)
        table = np.column_stack([dose, x])
        line = LinearRegression().fit(table, y)
        plan = SimpleNamespace(
            basis=line_basis().fit(dose),
            density="none",
            treatment_model=LinearRegression(),
            n_folds=2,
            seed=0,
            n_threads=1,
        )
        found = estimate_sensitivity(
            JudgedRows(
                rows,
                plan,
                lambda doses, own=line, level=x[:, :1]: own.coef_[0] * doses + level,
                line.predict(table),
            ),
            Doses.of([0.0, 1.0]),
        )
        parts = [found.value, found.residual_variance, found.representer_square]
        draws.append([*parts, *np.sqrt(np.diag(found.covariance))])
    drawn = np.array(draws)
    # The spread of 60 draws is known to 9 %.
    np.testing.assert_allclose(drawn[:, 3:].mean(axis=0), drawn[:, :3].std(axis=0), rtol=0.3)


def test_an_outcome_without_noise_is_as_robust_as_can_be():
    found = Sensitivity(1.0, 0.0, 1.0, 1e-12, 1e-12, np.zeros((3, 3)))
    assert found.robustness_value == pytest.approx(1.0, abs=1e-9)
    assert Sensitivity(0.0, 0.0, 1.0, 1.0, 1.0, np.zeros((3, 3))).robustness_value == 0.0


def test_the_robustness_value_brings_the_effect_to_zero(short):
    share = short.robustness_value
    assert short.bounds(share, share).low == pytest.approx(0.0, abs=1e-9)
    safe = short.robustness_of_interval()
    assert 0 < safe < share
    assert short.bounds(safe, safe).interval[0] == pytest.approx(0.0, abs=1e-6)
    assert short.robustness_of_interval(0.5) > safe
    negative = replace(short, value=-short.value)
    assert negative.bounds(share, share).high == pytest.approx(0.0, abs=1e-9)


def test_an_effect_that_is_not_sure_needs_no_confounder():
    found = Sensitivity(0.1, 0.0, 1.0, 1.0, 1.0, np.diag([1.0, 0.0, 0.0]))
    assert found.robustness_of_interval() == 0.0
    assert "zero is in the 95 % interval as it is" in str(found).replace("\n", " ")


def test_benchmarks_are_as_strong_as_the_covariate_is(short):
    driver, bystander = short.benchmarks
    # Without x_0 the dose varies by 3, with it by 2. Of the outcome it leaves x_0 / 2 given the
    # dose, of variance 1/4 (1 - 1/3), over the 3/2 that are left with it. Boosting blurs both.
    assert driver.dose_strength == pytest.approx(1 / 2, abs=0.12)
    assert driver.outcome_strength == pytest.approx(1 / 9, abs=0.04)
    assert bystander.dose_strength < 0.05
    assert bystander.outcome_strength < 0.05
    assert (driver.name, bystander.name) == ("x[0]", "x[1]")
    assert "A confounder like x[0]" in str(short).replace("\n", " ")


def test_the_paragraph_says_what_it_takes(short):
    text = str(short).replace("\n", " ")
    assert text.startswith("The average outcome at dose 1 less that at dose 0 is 2.")
    assert f"explain {short.robustness_value:.1%} of what is left of the outcome" in text
    strong = Sensitivity(1.0, 0, 1, 1.0, 1.0, np.eye(3) / 99, (Benchmark("age", 0.2, 1.3),))
    assert "A confounder like age (20.0% and 130.0%) could explain any effect." in str(
        strong
    ).replace("\n", " ")


def test_sensitivity_can_be_drawn(short):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = short.plot()
    assert [text.get_text() for text in ax.texts if text.get_text().startswith("x[")] == [
        "x[0]",
        "x[1]",
    ]
    labels = {text.get_text() for text in ax.texts}
    assert f"{0.4 * short.value:.3g}" in labels  # where four tenths of the effect are left
    with pytest.raises(ValueError, match=r"'most' parameter must be a float in \(0, 1\). Got 2"):
        short.plot(most=2)
    assert short.plot(most=0.5).get_xlim()[1] == pytest.approx(0.5)
    matplotlib.pyplot.close("all")


def test_by_default_quartiles_are_compared_and_bad_arguments_refused():
    x, _, dose, y = confounded(n=200)
    forest = fit(x, y, dose)
    found = forest.tests.sensitivity()
    assert (found.low, found.high) == tuple(np.sort(dose)[[49, 149]])
    with pytest.raises(ValueError, match=r"'high' parameter must differ from 'low'"):
        forest.tests.sensitivity(1.0, 1.0)
    with pytest.raises(ValueError, match=r"'low' parameter must lie in the support"):
        forest.tests.sensitivity(-99.0, 1.0)
    with pytest.raises(ValueError, match=r"'benchmark' parameter must hold features of X"):
        forest.tests.sensitivity(benchmark=["nobody"])
    with pytest.raises(TypeError, match=r"'benchmark' parameter must be a list"):
        forest.tests.sensitivity(benchmark=3)
    with pytest.raises(ValueError, match=r"'dose_strength' .* \[0, 1\). Got 1 instead"):
        found.bounds(0.1, 1)
    with pytest.raises(ValueError, match=r"'outcome_strength' .* Got -0.1 instead"):
        found.bias(-0.1, 0.1)
    with pytest.raises(ValueError, match=r"'coverage' parameter must be a float in \(0, 1\)"):
        found.bounds(0.1, 0.1, coverage=95)
