"""Trials with several arms, on real data: the means that were published, and sane unit curves."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest
from real_data import real_data

pytestmark = pytest.mark.data

MAILINGS = np.array([0.297, 0.315, 0.322, 0.345, 0.378])  # turnout by mailing, as published
CHANCES = np.array([5, 1, 1, 1, 1]) / 9
MATCHES = np.array([0.0179, 0.0207, 0.0226, 0.0227])  # response by match ratio
VOTED_BEFORE = ["g2000", "g2002", "p2000", "p2002", "p2004"]


def mailings():
    data = real_data("gerber_green_2008.parquet")
    arm = data["arm"].to_numpy()
    return data, arm - arm.min()


def test_five_mailings_have_their_published_turnout():
    data, arm = mailings()
    X = data[["yob", "male", "hh_size", *VOTED_BEFORE]]
    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=LinearRegression(),
        density=np.tile(CHANCES, (len(data), 1)),
        random_state=0,
        n_jobs=1,
    )
    forest.fit(X, data["voted"], treatment=arm, groups=data["hh_id"].astype(int))
    average = forest.average_dose_response()
    # Adjusted for covariates, which takes off less than .001 of chance imbalance.
    np.testing.assert_allclose(average.values, MAILINGS, atol=0.002)
    # 38,000 persons in 20,000 households: .0025 as if they were independent, more as they are not.
    assert (average.standard_errors[1:] > 0.0024).all()
    assert (average.standard_errors < 0.0035).all()


def test_mailings_have_sane_effects_on_every_voter():
    data, arm = mailings()
    households = np.random.default_rng(0).permutation(np.unique(data["hh_id"]))[:3000]
    kept = data["hh_id"].isin(households).to_numpy()
    X = data.loc[kept, ["yob", "male", "hh_size", *VOTED_BEFORE]]
    forest = GeneralizedCausalForest(
        n_trees=40,
        n_rounds=1,
        outcome_model=LinearRegression(),
        density=np.tile(CHANCES, (int(kept.sum()), 1)),
        random_state=0,
        n_jobs=1,
    )
    groups = data.loc[kept, "hh_id"].astype(int)
    forest.fit(X, data.loc[kept, "voted"], treatment=arm[kept], groups=groups)
    assert forest.treatment_means_ == "known"
    curves = forest.dose_response(X)
    assert ((curves >= 0) & (curves <= 1)).all()
    average = forest.average_dose_response()
    assert (np.abs(average.values - MAILINGS) < 4 * average.standard_errors).all()
    # The mean effect of the strongest mailing is .08; nobody's is beyond all reason.
    effects = forest.effect(X, 4.0, 0.0)
    assert effects.mean() == pytest.approx(0.081, abs=4 * average.standard_errors[4])
    assert np.abs(effects - effects.mean()).max() < 0.3


def test_match_ratios_have_their_published_response():
    data = real_data("karlan_list_2007.parquet")
    X = data[["hpa", "freq", "years", "female", "couple", "redcty"]]
    ratio = data["match_ratio"].to_numpy()
    chances = np.bincount(ratio) / len(ratio)
    forest = GeneralizedCausalForest(
        n_trees=16,
        n_rounds=1,
        min_node_size=(50, 500),
        outcome_model=LinearRegression(),
        density=chances[ratio],
        random_state=0,
        n_jobs=1,
    )
    forest.fit(X.fillna(X.mean()), data["out_gavedum"], treatment=ratio)
    assert forest.treatment_means_ == "known"
    average = forest.average_dose_response()
    # A rare outcome: 1,000 gifts of 50,000. Adjusting by covariates moves arms by less than .0005.
    np.testing.assert_allclose(average.values, MATCHES, atol=0.0006)
    np.testing.assert_allclose(average.standard_errors, np.sqrt(0.02 / 11000), rtol=0.5)
    curves = forest.dose_response(X.fillna(X.mean()))
    assert ((curves >= 0) & (curves <= 1)).all()
