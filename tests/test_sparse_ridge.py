"""The lasso that chooses and the ridge that refits, against fits on the rows themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from doseforest.nuisance.fold_moments import sum_moments
from doseforest.nuisance.sparse_ridge import RIDGES, best_share, fit_sparse

N_MAINS, N_FOLDS = 3, 4
PENALTY = np.full(N_MAINS, 1e-6)


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, N_MAINS + 30))
    y = columns[:, 0] + columns[:, 4] - columns[:, 20] + rng.normal(size=n)
    return columns, y, rng.integers(0, N_FOLDS, size=n)


def moments_of(columns, y, folds):
    return sum_moments(
        columns.__getitem__, columns.shape[1], y, np.ones(len(y)), folds, n_folds=N_FOLDS
    )


def everywhere(places):
    return dict.fromkeys([None, *range(N_FOLDS)], np.asarray(places))


def error_on_rows(columns, y, folds, coefficients):
    return sum(
        float(((y[folds == fold] - columns[folds == fold] @ own) ** 2).sum())
        for fold, own in enumerate(coefficients)
    )


def test_the_error_is_that_of_fits_on_rows_they_have_not_seen():
    columns, y, folds = data()
    fit = fit_sparse(moments_of(columns, y, folds), everywhere(np.arange(30)), PENALTY)
    assert fit.error == pytest.approx(error_on_rows(columns, y, folds, fit.without), rel=1e-9)
    # Other outcomes of a fold leave the fit without it alone, its penalties aside.
    other = np.where(folds == 2, y + columns[:, 4], y)
    again = fit_sparse(moments_of(columns, other, folds), everywhere([1, 17]), PENALTY)
    before = fit_sparse(moments_of(columns, y, folds), everywhere([1, 17]), PENALTY)
    close = [np.allclose(again.without[f], before.without[f], atol=0.05) for f in range(N_FOLDS)]
    assert close == [False, False, True, False]


def test_the_terms_of_the_truth_are_chosen_and_fitted_by_ridge_regression():
    columns, y, folds = data(n=2000)
    fit = fit_sparse(moments_of(columns, y, folds), everywhere(np.arange(30)), PENALTY)
    assert {0, 1, 2, 4, 20} <= set(fit.columns.tolist())
    own = columns[:, fit.columns]
    expected = np.linalg.solve(own.T @ own + np.diag(2000 * fit.per_row), own.T @ y)
    assert_allclose(fit.coefficients, expected, atol=1e-6)
    spread = (own[:, N_MAINS:] ** 2).sum(axis=0)
    assert np.isclose(2000 * fit.per_row[N_MAINS:] / spread, np.array(RIDGES)[:, None]).all(1).any()


def test_without_candidates_main_effects_are_left():
    columns, y, folds = data()
    fit = fit_sparse(moments_of(columns, y, folds), everywhere(np.empty(0, int)), PENALTY)
    assert_array_equal(fit.columns, [0, 1, 2])
    assert not fit.without[:, N_MAINS:].any()


@pytest.mark.parametrize(
    ("first", "second"), [([1, 2], [17, 18]), ([1, 17], [5, 6]), ([5, 6], [1, 17])]
)
def test_the_share_is_the_best_of_all(first, second):
    columns, y, folds = data()
    moments = moments_of(columns, y, folds)
    one, other = (fit_sparse(moments, everywhere(own), PENALTY) for own in (first, second))
    grid = np.linspace(0, 1, 1001)
    errors = [
        error_on_rows(columns, y, folds, (1 - share) * one.without + share * other.without)
        for share in grid
    ]
    share = best_share(moments, one, other)
    assert share == pytest.approx(grid[int(np.argmin(errors))], abs=1e-3)
