"""Averages on Spark have the values and standard errors of the local ones."""

from __future__ import annotations

import numpy as np
import pytest

from doseforest.estimator.averages.average_curves import average_of_units, centred_influence
from spark_here import needs_spark

pytestmark = needs_spark

N_ROWS = 500


@pytest.mark.parametrize("kernel", ["epanechnikov", "exact"])
@pytest.mark.parametrize("grouped", [False, True])
def test_an_average_is_the_local_one(spark, kernel, grouped):
    from doseforest.data.row_blocks import RowBlock
    from doseforest.spark.cluster_averages import average_with_errors, plain_average, read_average
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.jobs import Kept
    from doseforest.spark.treatment_ratios import RATIO, TreatmentRatios

    rng = np.random.default_rng(7)
    dose = rng.uniform(0, 10, N_ROWS)
    if kernel == "exact":
        dose = np.round(dose / 5) * 5
    doses = np.array([0.0, 5.0, 10.0])
    left = np.sin(dose) + rng.normal(size=N_ROWS)
    curves = rng.normal(size=(N_ROWS, 1)) + doses
    weights = rng.uniform(0.5, 1.5, N_ROWS)
    weights = (weights / weights.mean()).astype(np.float32)
    ratio = rng.uniform(0.5, 30, N_ROWS)
    ids = np.sort(rng.integers(0, 60, N_ROWS)) if grouped else np.arange(N_ROWS)
    half = int(np.searchsorted(ids, 30)) if grouped else 200  # groups lie in one partition
    own = weights.astype(np.float64)
    capped = np.minimum(ratio, 20.0)
    ratios = TreatmentRatios(
        20.0, 1.0, float(np.average(capped, weights=own)), kernel, 1.5, (dose.min(), dose.max())
    )
    columns = {RATIO: ratio, "curves": curves, "left": left}
    blocks = [
        RowBlock(
            np.zeros((N_ROWS, 1))[r],
            dose[r],
            left[r],
            weights[r],
            ids[r],
            ids[r] % 3,
            {name: column[r] for name, column in columns.items()},
        )
        for r in (slice(0, half), slice(half, None))
    ]
    with Kept() as kept:
        data = kept.keep(spark.sparkContext.parallelize(blocks, 2))
        units = Units(data, kept, N_ROWS, 1, 3, 0, weighted=True)
        found = average_with_errors(
            units, lambda block: (block["curves"], block["left"]), ratios, doses
        )
    r = capped / np.average(capped, weights=own)
    mean, said = centred_influence(
        dose,
        left,
        doses,
        kernel=kernel,
        bandwidth=1.5,
        treatment_weights=r,
        weights=own,
        degree=2,
    )
    local = average_of_units(curves + mean + said, own, ids)
    # Local weights of levels are single precision, and so are those of the sample.
    np.testing.assert_allclose(found.values, local.values, rtol=1e-6)
    np.testing.assert_allclose(found.standard_errors, local.standard_errors, rtol=1e-5)
    np.testing.assert_allclose(found.covariance, local.covariance, rtol=1e-4, atol=1e-7)
    # Fourth powers are of influences whose mean is not taken off.
    np.testing.assert_allclose(found.degrees, local.degrees, rtol=0.01)
    again = read_average(plain_average(found))
    np.testing.assert_array_equal(again.band()[0], found.band()[0])


def test_a_dose_without_rows_near_has_no_end_of_its_error(spark):
    from doseforest.data.row_blocks import RowBlock
    from doseforest.spark.cluster_averages import average_with_errors
    from doseforest.spark.cluster_units import Units
    from doseforest.spark.jobs import Kept
    from doseforest.spark.treatment_ratios import RATIO, TreatmentRatios

    dose = np.append(np.linspace(0, 1, 99), 9.0)
    ids = np.arange(100)
    block = RowBlock(np.zeros((100, 1)), dose, dose, None, ids, ids % 3, {RATIO: np.ones(100)})
    ratios = TreatmentRatios(10.0, 1.0, 1.0, "epanechnikov", 0.2, (0.0, 9.0))
    with Kept() as kept:
        data = kept.keep(spark.sparkContext.parallelize([block], 1))
        units = Units(data, kept, 100, 1, 3, 0, weighted=False)
        doses = np.array([0.5, 5.0])
        found = average_with_errors(
            units, lambda own: (np.full((len(own), 2), 3.0), own.y), ratios, doses
        )
    assert found.values[1] == 3.0  # what the curves say
    assert np.isinf(found.standard_errors[1])
    assert found.values[0] == pytest.approx(3.5)
    assert np.isfinite(found.standard_errors[0])
    low, high = found.band()
    np.testing.assert_array_equal([low[1], high[1]], [-np.inf, np.inf])
    # One dose counts, so the band is its interval.
    np.testing.assert_allclose([low[0], high[0]], [own[0] for own in found.interval()])
