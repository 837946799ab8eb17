"""The lasso that chooses and the ridge that refits, against fits on the rows themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from doseforest.nuisance.outcome.fold_moments import sum_moments
from doseforest.nuisance.outcome.sparse_ridge import RIDGES, fit_sparse, mixing_shares, solve

N_MAINS, N_FOLDS = 3, 4
PENALTY = np.full(N_MAINS, 1e-6)


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, N_MAINS + 30))
    y = columns[:, 0] + columns[:, 4] - columns[:, 20] + rng.normal(size=n)
    return columns, y, rng.integers(0, N_FOLDS, size=n)


def moments_of(columns, y, folds, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return sum_moments(columns.__getitem__, columns.shape[1], y, weights, folds, n_folds=N_FOLDS)


def everywhere(places):
    return [np.asarray(places)] * N_FOLDS


def error_on_rows(columns, y, folds, coefficients):
    return sum(
        float(((y[folds == fold] - columns[folds == fold] @ own) ** 2).sum())
        for fold, own in enumerate(coefficients)
    )


def test_a_fit_without_a_fold_does_not_know_its_outcomes():
    columns, y, folds = data()
    # Other outcomes of a fold leave the fit without it alone, its penalties aside.
    other = np.where(folds == 2, y + columns[:, 4], y)
    (again,) = fit_sparse(moments_of(columns, other, folds), [everywhere([1, 17])], PENALTY)
    (before,) = fit_sparse(moments_of(columns, y, folds), [everywhere([1, 17])], PENALTY)
    close = [np.allclose(again.without[f], before.without[f], atol=0.05) for f in range(N_FOLDS)]
    assert close == [False, False, True, False]


def test_the_terms_of_the_truth_are_chosen_and_fitted_by_ridge_regression():
    columns, y, folds = data(n=2000)
    (fit,) = fit_sparse(moments_of(columns, y, folds), [everywhere(np.arange(30))], PENALTY)
    assert {0, 1, 2, 4, 20} <= set(fit.columns.tolist())
    seen = 2000 - np.bincount(folds)
    assert_allclose(fit.coefficients, (seen @ fit.without / seen.sum())[fit.columns])
    all_rows = (columns[:, fit.columns] ** 2).sum(axis=0)[N_MAINS:]
    ridges = 2000 * fit.per_row[N_MAINS:] / all_rows
    assert np.isclose(ridges, np.array(RIDGES)[:, None]).all(1).any()
    for fold, without in enumerate(fit.without):
        rest, used = folds != fold, np.union1d(np.arange(N_MAINS), np.flatnonzero(without))
        own = columns[np.ix_(rest, used)]
        spread = (own[:, N_MAINS:] ** 2).sum(axis=0)
        penalty = np.concatenate([rest.sum() * PENALTY, ridges[0] * spread])
        expected = np.linalg.solve(own.T @ own + np.diag(penalty), own.T @ y[rest])
        assert_allclose(without[used], expected, atol=1e-6)


def test_a_better_penalty_on_the_main_effects_is_taken_once_terms_are_known():
    columns, y, folds = data(n=2000)
    moments, heavy = moments_of(columns, y, folds), np.full(N_MAINS, 3.0)
    pools = [everywhere(np.arange(30))]
    (shrunk,) = fit_sparse(moments, pools, heavy)
    (freed,) = fit_sparse(moments, pools, heavy, [np.full(N_MAINS, 10.0), PENALTY])
    assert_allclose(freed.per_row[:N_MAINS], PENALTY)
    assert freed.coefficients[0] > 0.9  # of 1; a penalty of 3 a row leaves a quarter
    assert shrunk.coefficients[0] < 0.35
    assert error_on_rows(columns, y, folds, freed.without) < error_on_rows(
        columns, y, folds, shrunk.without
    )
    (kept,) = fit_sparse(moments, pools, PENALTY, [heavy])
    (alone,) = fit_sparse(moments, pools, PENALTY)
    assert_array_equal(kept.without, alone.without)


def test_a_fit_that_has_seen_no_weight_does_not_count():
    columns, y, folds = data()
    moments = moments_of(columns, y, folds, (folds == 2).astype(float))
    (fit,) = fit_sparse(moments, [everywhere([1, 17])], PENALTY)
    assert not fit.without[2].any()
    assert_allclose(fit.coefficients, fit.without[0][fit.columns], rtol=1e-12)


def test_products_that_are_no_numbers_are_refused():
    columns, y, folds = data()
    y[7] = np.nan
    with pytest.raises(np.linalg.LinAlgError, match="no Cholesky factor"):
        solve(moments_of(columns, y, folds).without(None), np.ones(columns.shape[1]))


def test_without_candidates_main_effects_are_left():
    columns, y, folds = data()
    (fit,) = fit_sparse(moments_of(columns, y, folds), [everywhere(np.empty(0, int))], PENALTY)
    assert_array_equal(fit.columns, [0, 1, 2])
    assert not fit.without[:, N_MAINS:].any()


@pytest.mark.parametrize(
    ("first", "second"), [([1, 2], [17, 18]), ([1, 17], [5, 6]), ([5, 6], [1, 17])]
)
def test_the_share_of_one_of_two_is_the_best_of_all(first, second):
    columns, y, folds = data()
    moments = moments_of(columns, y, folds)
    one, other = fit_sparse(moments, [everywhere(first), everywhere(second)], PENALTY)
    grid = np.linspace(0, 1, 1001)
    errors = [
        error_on_rows(columns, y, folds, (1 - share) * one.without + share * other.without)
        for share in grid
    ]
    shares = mixing_shares(moments, [one, other])
    assert shares.sum() == pytest.approx(1.0)
    assert shares[1] == pytest.approx(grid[int(np.argmin(errors))], abs=1e-3)


def test_no_mixture_of_several_is_better():
    columns, y, folds = data()
    moments = moments_of(columns, y, folds)
    pools = ([1, 2], [17, 18], [1, 17], [5, 6])
    fits = fit_sparse(moments, [everywhere(own) for own in pools], PENALTY)

    def error(shares):
        mixed = sum(share * fit.without for share, fit in zip(shares, fits, strict=True))
        return error_on_rows(columns, y, folds, mixed)

    shares = mixing_shares(moments, fits)
    others = np.random.default_rng(0).dirichlet(np.full(4, 0.5), size=500)
    assert shares.min() >= 0
    assert error(shares) <= min(error(own) for own in [*others, *np.eye(4)]) + 1e-9
    assert error(shares) < min(error(own) for own in np.eye(4))
