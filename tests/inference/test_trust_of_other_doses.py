"""Tests, sensitivity and shapes for doses of few levels and of two components, with categories."""

import numpy as np
import pytest

from causal_tables import Table, small
from doseforest.inference import shaped_forest


@pytest.fixture(scope="module")
def levels():
    rng = np.random.default_rng(300)
    x, dose = rng.normal(size=(400, 2)), rng.integers(0, 3, size=400).astype(float)
    y = x[:, 0] + dose * (1 + np.sign(x[:, 1])) + rng.normal(size=400)
    return small(density="none", baseline=0.0).fit(x, y, treatment=dose)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(300)
    x, dose = rng.normal(size=(400, 2)), rng.uniform(0, 2, size=(400, 2))
    y = x[:, 0] + dose[:, 0] * (1 + np.sign(x[:, 1])) + dose[:, 1] + rng.normal(size=400)
    return small(density="none", baseline=[1.0, 1.0]).fit(x, y, treatment=dose)


def test_levels_are_tested_as_quantities_are(levels):
    assert levels.tests.heterogeneity().p_value < 1e-4
    assert levels.tests.rate(2.0).p_value < 0.01
    found = levels.tests.sensitivity()
    assert (found.low, found.high) == (0.0, 2.0)
    assert abs(found.value - 2.0) < 4 * found.standard_error
    assert levels.tests.shape("increasing").p_value > 0.05
    assert levels.tests.shape("decreasing").p_value < 0.01
    x = np.zeros((3, 2))
    assert (np.diff(shaped_forest(levels, "increasing").dose_response(x)) >= -1e-9).all()


def test_two_components_are_tested_together(pairs):
    assert pairs.tests.heterogeneity().p_value < 1e-4
    ranked = pairs.tests.rate([1.8, 1.0], [0.2, 1.0])
    # Half of the units gain 3.2, the others nothing, see the rates of one component; few rows have
    # doses near these.
    assert abs(ranked.value - 1.6 * np.log(2)) < 3 * ranked.standard_error
    found = pairs.tests.sensitivity([0.5, 1.0], [1.5, 1.0])
    assert abs(found.value - 1.0) < 4 * found.standard_error
    assert "at dose (1.5, 1) less that at dose (0.5, 1)" in str(found).replace("\n", " ")
    with pytest.raises(ValueError, match=r"'low' parameter must be given for doses of 2 compon"):
        pairs.tests.sensitivity()
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match=r"'treatment' parameter must have 2 components"):
        pairs.tests.calibration(np.zeros((50, 2)), np.zeros(50), rng.uniform(0, 2, size=50))


def test_categories_of_new_rows_are_those_of_the_training_rows():
    table, other = Table(300), Table(300, seed=1)
    forest = small(density="none", correction="none").fit(
        table.frame, table.y, treatment=table.dose
    )
    found = forest.tests.calibration(other.frame, other.y, other.dose)
    assert found.heterogeneity_p_value < 0.01
    benchmarks = forest.tests.sensitivity(benchmark=["city"]).benchmarks
    assert benchmarks[0].name == "city"
    assert benchmarks[0].outcome_strength > 0
