"""Trials with several arms, on real data: the means that were published, and sane unit curves."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from bench.real_data import mailing_rows, match_ratio_rows
from doseforest import GeneralizedCausalForest
from doseforest.corrections import Orthogonal
from real_data import real_data

pytestmark = pytest.mark.data


def test_five_mailings_have_their_published_turnout():
    real_data(mailing_rows.FILE)
    rows = mailing_rows.rows(mailing_rows.read_voters())
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=LinearRegression(),
        density=rows.density,
        random_state=0,
        n_jobs=1,
    )
    forest.fit(rows.X, rows.y, treatment=rows.treatment, groups=rows.groups)
    average = forest.average_dose_response()
    # Adjusted for covariates, which takes off less than .001 of chance imbalance.
    np.testing.assert_allclose(average.values, mailing_rows.PUBLISHED, atol=0.002)
    # 38,000 persons in 20,000 households: .0025 as if they were independent, more as they are not.
    assert (average.standard_errors[1:] > 0.0024).all()
    assert (average.standard_errors < 0.0035).all()


def test_mailings_have_sane_effects_on_every_voter():
    real_data(mailing_rows.FILE)
    rows = mailing_rows.rows(mailing_rows.read_voters(3000))
    forest = GeneralizedCausalForest(
        n_trees=40,
        correction=Orthogonal(n_rounds=1),
        outcome_model=LinearRegression(),
        density=rows.density,
        random_state=0,
        n_jobs=1,
    )
    forest.fit(rows.X, rows.y, treatment=rows.treatment, groups=rows.groups)
    assert forest.treatment_means_ == "known"
    curves = forest.dose_response(rows.X)
    assert ((curves >= 0) & (curves <= 1)).all()
    average = forest.average_dose_response()
    assert (np.abs(average.values - mailing_rows.PUBLISHED) < 4 * average.standard_errors).all()
    # The mean effect of the strongest mailing is .08; nobody's is beyond all reason.
    effects = forest.effect(rows.X, 4.0, 0.0)
    assert effects.mean() == pytest.approx(0.081, abs=4 * average.standard_errors[4])
    assert np.abs(effects - effects.mean()).max() < 0.3


def test_match_ratios_have_their_published_response():
    rows = match_ratio_rows.rows(real_data(match_ratio_rows.FILE))
    X = rows.X.fillna(rows.X.mean())
    forest = GeneralizedCausalForest(
        n_trees=16,
        correction=Orthogonal(n_rounds=1, leaf_sizes=(50, 500)),
        outcome_model=LinearRegression(),
        density=rows.density,
        random_state=0,
        n_jobs=1,
    )
    forest.fit(X, rows.y, treatment=rows.treatment)
    assert forest.treatment_means_ == "known"
    average = forest.average_dose_response()
    # A rare outcome: 1,000 gifts of 50,000. Adjusting by covariates moves arms by less than .0005.
    np.testing.assert_allclose(average.values, match_ratio_rows.PUBLISHED, atol=0.0006)
    np.testing.assert_allclose(average.standard_errors, np.sqrt(0.02 / 11000), rtol=0.5)
    curves = forest.dose_response(X)
    assert ((curves >= 0) & (curves <= 1)).all()
