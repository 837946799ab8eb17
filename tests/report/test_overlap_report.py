"""The overlap report: what it measures, what it says, what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from doseforest.estimator.unit_support import supported
from doseforest.nuisance.treatment.treatment_support import DoseSupport
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights
from doseforest.report.overlap.covariate_balance import covariate_balance
from doseforest.report.overlap.overlap_measures import weight_spread, weighted_quantiles

NAMES = ["income", "age", "visits"]
QUANTITY = DoseSupport(-9.0, 9.0, (), True)


def plain(**parameters):
    """An outcome model alone, of least squares: the report is about the treatment."""
    settings = {
        "correction": "none",
        "outcome_model": LinearRegression(),
        "density": "none",  # what does not ask about weights does not wait for them
        "random_state": 0,
        "n_jobs": 1,
    }
    return GeneralizedCausalForest(**{**settings, **parameters})


def covariates(n, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 3)), columns=NAMES)


def report_of(x, dose, **parameters):
    y = np.asarray(x)[:, 0] + dose + np.random.default_rng(9).normal(size=len(dose))
    return plain(**parameters).fit(x, y, treatment=dose).overlap_report()


@pytest.fixture(scope="module")
def confounded():
    """A normal dose with overlap, whose density is known."""
    x = covariates(3000)
    dose = 0.5 * x["income"].to_numpy() + np.random.default_rng(1).normal(size=3000)
    exact = report_of(x, dose, density=lambda X, t: norm.pdf(t - 0.5 * X[:, :1]), baseline=0.0)
    return x, dose, exact


@pytest.fixture(scope="module")
def randomised():
    x, rng = covariates(800), np.random.default_rng(2)
    return report_of(
        x,
        rng.uniform(0, 10, size=800),
        density="entropy",
        baseline=5.0,
        doses=np.arange(1.0, 10.0),
    )


def test_right_weights_balance_what_the_dose_depends_on(confounded):
    _, _, report = confounded
    assert report.balance.covariates == tuple(NAMES)
    assert report.balance.targets == ("dose", "dose squared")
    # cor(x, x/2 + e) is 1/sqrt(5); sampling adds 1/sqrt(3000) = .018 at most, three times over.
    assert report.balance.before[0, 0] == pytest.approx(1 / np.sqrt(5), abs=0.055)
    # Weights have squares of mean 1.5 or so: a standard error of .022, and the cap's bias.
    assert np.abs(report.balance.after).max() < 0.09
    assert report.balance.worst()[0, 1] < 0.3 * report.balance.worst()[0, 0]


def test_right_densities_have_the_quantiles_of_the_normal_one(confounded):
    x, dose, report = confounded
    exact = norm.pdf(dose - 0.5 * x["income"])
    assert report.observed_quantiles == pytest.approx(weighted_quantiles(exact))
    middle = int(np.argmin(np.abs(report.doses)))
    at = norm.pdf(report.doses[middle] - 0.5 * x["income"])
    assert report.density_quantiles[:, middle] == pytest.approx(weighted_quantiles(at))


@pytest.mark.parametrize("weights", [None, np.arange(300) % 3 + 0.5])
def test_correlations_are_those_of_a_weighted_covariance_where_values_are_known(weights):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    dose, r = x[:, 0] + rng.normal(size=300), rng.uniform(0.5, 1.5, size=300)
    x[rng.random(300) < 0.2, 1] = np.nan
    balance = covariate_balance(x, dose, r, QUANTITY, weights=weights, labels=["a", "b"])
    assert balance.covariates == ("a", "b", "b missing")
    own = np.ones(300) if weights is None else weights
    square = (dose - np.average(dose, weights=own)) ** 2
    columns = np.column_stack([x, np.isnan(x[:, 1])])
    for k, column in enumerate(columns.T):
        known = np.isfinite(column)
        for m, target in enumerate((dose, square)):
            for found, factor in ((balance.before, 1.0), (balance.after, r)):
                w = (own * factor)[known]
                cov = np.cov(column[known], target[known], aweights=w)
                exact = cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1])
                assert found[k, m] == pytest.approx(exact, abs=1e-12)


def test_levels_are_compared_by_standardised_differences_from_everybody():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=400), np.ones(400)])
    dose, r = rng.integers(0, 3, size=400) * 1.0, rng.uniform(0.5, 1.5, size=400)
    x[:, 0] += dose
    balance = covariate_balance(x, dose, r, DoseSupport(0.0, 2.0, (0.0, 1.0, 2.0), False))
    assert balance.standardised
    assert balance.targets == ("dose 0", "dose 1", "dose 2")
    for level in (0, 1, 2):
        own = dose == level
        mean = np.average(x[own, 0], weights=r[own])
        exact = (mean - x[:, 0].mean()) / x[:, 0].std()
        assert balance.after[0, level] == pytest.approx(exact)
        assert balance.before[0, level] == pytest.approx(
            (x[own, 0].mean() - x[:, 0].mean()) / x[:, 0].std()
        )
    np.testing.assert_array_equal(balance.after[1], 0.0)  # what never varies is balanced


@pytest.mark.parametrize("levels", [False, True])
def test_balance_does_not_depend_on_the_scale_of_other_covariates(levels):
    rng = np.random.default_rng(0)
    dose = rng.integers(0, 3, 200).astype(float) if levels else rng.uniform(0, 2, 200)
    support = DoseSupport(0.0, 2.0, (0.0, 1.0, 2.0) if levels else (), not levels)
    rate = 1e-6 * (dose + rng.normal(size=200))
    stamps = 1.7e15 + 2e12 * rng.normal(size=200)  # microseconds since 1970
    constant = np.full(200, 0.1)
    alone, beside = (
        covariate_balance(np.column_stack(own), dose, np.ones(200), support).before
        for own in ((rate,), (rate, stamps, constant))
    )
    np.testing.assert_allclose(beside[0], alone[0], rtol=1e-12)
    assert np.abs(alone).max() > 0.3
    np.testing.assert_array_equal(beside[2], 0.0)


def test_the_share_of_units_without_a_choice_of_dose_is_found():
    x, rng = covariates(1500), np.random.default_rng(3)
    fixed = x["age"].to_numpy() < -0.5  # their standard deviation is a tenth of the others'
    dose = rng.normal(size=1500) * np.where(fixed, 0.1, 1.0)
    report = report_of(x, dose, baseline=0.0)
    # Var(T | X) / Var(T) is .014 or 1.44: only units near the border may fall on the wrong side.
    assert report.weak_share == pytest.approx(fixed.mean(), abs=0.04)
    assert ((report.variance_ratios < 0.1) == fixed).mean() > 0.95
    assert any("next to no choice of dose" in message for message in report.messages)


def test_a_random_dose_leaves_nothing_to_say(randomised):
    assert randomised.messages == ()
    assert randomised.weak_share == 0.0
    assert randomised.supported.min() > 0.95
    assert "Nothing is wrong with it." in str(randomised)


def test_messages_name_what_is_wrong_and_the_cure():
    x, rng = covariates(500), np.random.default_rng(4)
    dose = 3 * x["income"].to_numpy() + 0.3 * rng.normal(size=500)
    with pytest.warns(UserWarning, match="could have had the dose"):
        report = report_of(x, dose, density="location_scale", baseline=0.0)
    said = " ".join(report.messages)
    for part in (
        "could have had the dose(s)",
        "had next to no choice of dose",
        "'density_features'",
        "Correlations with the dose remain after weighting by 'location_scale': income",
        "density='entropy'",
    ):
        assert part in said
    text = str(report)
    for message in report.messages:
        assert message.split(":")[0][:40] in " ".join(text.split())


def test_without_weights_the_message_says_why():
    x, rng = covariates(500), np.random.default_rng(4)
    dose = x["income"].to_numpy() + rng.normal(size=500)
    report = report_of(x, dose, baseline=0.0, doses=np.linspace(-2, 2, 5))
    np.testing.assert_array_equal(report.balance.before, report.balance.after)
    assert any("no weights are used" in message for message in report.messages)
    assert report.after_cap.effective_sample == pytest.approx(500)


def test_levels_count_their_rows_and_rare_ones_are_named():
    x, rng = covariates(400), np.random.default_rng(5)
    dose = rng.choice([0.0, 1.0, 2.0], size=400, p=[0.5, 0.455, 0.045])
    with pytest.warns(UserWarning, match="fewer than 20 rows"):
        report = report_of(x, dose)
    counts = np.bincount(dose.astype(int))
    assert counts[2] < 20
    assert report.kernel_sample == pytest.approx(counts)
    assert report.level_samples == pytest.approx(counts)
    assert report.density_quantiles.sum(axis=1)[3] == pytest.approx(1.0, abs=0.05)
    assert any("dose(s) 2. Merge them" in message for message in report.messages)
    assert "probability" in str(report)


def test_a_point_mass_is_asked_for_its_probability():
    x, rng = covariates(800), np.random.default_rng(6)
    dose = np.where(rng.random(800) < 0.3, 0.0, rng.uniform(2, 8, size=800))
    report = report_of(x, dose)
    at_zero = int(np.flatnonzero(report.doses == 0.0)[0])
    # Everybody could have had it, though it lies outside the range of the other doses.
    assert report.supported[at_zero] == 1.0
    assert report.density_quantiles[3, at_zero] == pytest.approx((dose == 0).mean(), abs=0.03)
    assert report.balance.targets == ("dose", "dose squared", "dose 0")
    assert "* a point mass: its probability" in str(report)


def test_a_mass_outside_the_range_of_the_others_is_supported_by_its_probability():
    class Half:
        def density(self, X, doses):
            table = np.broadcast_to(doses, (len(X), np.shape(doses)[-1]))
            return np.where(table == 0.0, 0.5, np.where((table >= 2) & (table <= 4), 0.25, 0.0))

    flags = supported(
        Half(), np.zeros((3, 1)), np.array([0.0, 3.0]), DoseSupport(2.0, 4.0, (0.0,), True)
    )
    assert flags.all()


def test_weights_are_shown_before_and_after_the_cap():
    raw = np.ones(100)
    raw[0] = 1000.0
    weights = TreatmentWeights.capping("known", raw)
    assert weights.uncapped == pytest.approx(raw / raw.mean())
    assert weights.r.max() == pytest.approx(10 / (109 / 100))  # the cap is sqrt(100)
    before, after = weight_spread(weights.uncapped), weight_spread(weights.r)
    assert before.effective_sample == pytest.approx(1099**2 / (1000**2 + 99))
    assert after.effective_sample == pytest.approx(109**2 / (10**2 + 99))
    half = weights.shrunk(0.5)
    assert half.uncapped[0] / half.uncapped[1] == pytest.approx(np.sqrt(1000))


def test_the_report_counts_the_rows_that_were_capped():
    x, dose = covariates(400), np.random.default_rng(7).uniform(0, 1, size=400)
    density = np.ones(400)
    density[:3] = 1e-3  # weights of about 1,000, above sqrt(400)
    report = report_of(x, dose, density=density, baseline=0.5)
    assert report.n_capped == 3
    assert report.before_cap.largest > 5 * report.after_cap.largest
    assert report.before_cap.effective_sample < report.after_cap.effective_sample
    assert any("effective sample" in m for m in report.messages) == (
        report.after_cap.effective_sample < 80
    )


def test_weights_of_the_sample_count_in_every_share():
    x, rng = covariates(600), np.random.default_rng(8)
    dose, y = rng.uniform(0, 4, size=600), rng.normal(size=600)
    doubled = np.concatenate([np.arange(600), np.arange(300)])
    weights = np.where(np.arange(600) < 300, 2.0, 1.0)
    doses = np.array([1.0, 2.0, 3.0])
    one = plain(baseline=2.0).fit(x, y, treatment=dose, sample_weight=weights)
    balance = one.overlap_report(doses).balance
    repeated = covariate_balance(
        x.to_numpy()[doubled], dose[doubled], np.ones(900), DoseSupport(0.0, 4.0, (), True)
    )
    assert balance.before == pytest.approx(repeated.before, abs=1e-6)  # weights are float32


def test_tables_of_the_report_fit_a_frame(randomised):
    tables = randomised.to_dict()
    doses = pd.DataFrame(tables["doses"])
    assert doses["dose"].tolist() == randomised.doses.tolist()
    assert doses["supported"].tolist() == randomised.supported.tolist()
    assert pd.DataFrame(tables["balance"])["dose, after"].tolist() == pytest.approx(
        randomised.balance.after[:, 0].tolist()
    )
    assert pd.DataFrame(tables["weights"]).shape[0] == 2
    assert tables["messages"] == []


def test_columns_left_out_of_the_treatment_model_are_left_out_of_the_balance():
    x, rng = covariates(300), np.random.default_rng(8)
    report = report_of(x, rng.uniform(0, 4, size=300), density_features=["age"], baseline=2.0)
    assert report.balance.covariates == ("age",)


@pytest.mark.parametrize("weak_below", [0.0, 1.0, -0.1, "a tenth", np.nan])
def test_a_threshold_out_of_range_is_refused(weak_below):
    x, rng = covariates(100), np.random.default_rng(8)
    dose = rng.normal(size=100)
    forest = plain(baseline=0.0).fit(x, rng.normal(size=100), treatment=dose)
    with pytest.raises(ValueError, match=r"'weak_below' parameter must be a float in \(0, 1\)"):
        forest.overlap_report(weak_below=weak_below)
    with pytest.raises(ValueError, match="'doses' parameter must lie in the support"):
        forest.overlap_report([99.0])


def test_before_fit_there_is_no_report():
    with pytest.raises(NotFittedError):
        plain().overlap_report()
