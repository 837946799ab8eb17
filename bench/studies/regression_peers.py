"""Regressors on [X, T] that a user would reach for, beside those of `doseforest.baselines`."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from lightgbm import LGBMRegressor
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold, RandomizedSearchCV
from sklearn.preprocessing import StandardScaler

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.baselines import OutcomeRegressor

TUNED_SETTINGS = 15
TUNING_FOLDS = 4
SETTINGS: dict[str, list[float]] = {  # lists, as a result's key has their values
    "n_estimators": [50, 100, 200, 400, 800],
    "learning_rate": [0.01, 0.02, 0.05, 0.1, 0.2],
    "num_leaves": [4, 8, 16, 31, 63],
    "min_child_samples": [5, 10, 20, 40],
    "subsample": [0.6, 0.8, 1.0],
    "colsample_bytree": [0.4, 0.6, 0.8, 1.0],
    "reg_lambda": [0.0, 0.1, 1.0, 10.0],
}


class ScaledProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Scikit-learn's Gaussian process: a length for every standardised column, and white noise.

    The gradient of its likelihood holds rows^2 x columns numbers, so that lengths are chosen on so
    many rows, drawn at random, as fit into memory; predictions rest on more of them.

    Parameters
    ----------
    most_rows : int, default=3000
        Rows of the predictions.
    most_rows_of_lengths : int, default=1000
        Rows that lengths are chosen on.
    most_numbers : float, default=2e7
        Numbers of the gradient, which many columns leave fewer rows.
    most_steps : int, default=100
        Steps of L-BFGS-B.
    random_state : int, default=0
        Seed of the draw of rows.

    Attributes
    ----------
    process_ : GaussianProcessRegressor
        Fitted, on standardised columns.
    """

    def __init__(
        self,
        most_rows: int = 3000,
        most_rows_of_lengths: int = 1000,
        most_numbers: float = 2e7,
        most_steps: int = 100,
        random_state: int = 0,
    ) -> None:
        self.most_rows = most_rows
        self.most_rows_of_lengths = most_rows_of_lengths
        self.most_numbers = most_numbers
        self.most_steps = most_steps
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose lengths and noise by marginal likelihood, then condition on the rows."""
        self.scaler_ = StandardScaler().fit(X)
        columns = self.scaler_.transform(X)
        rows = np.random.default_rng(self.random_state).permutation(len(X))
        some = rows[: self.rows_of_lengths(*X.shape)]
        width = X.shape[1]
        lengths = RBF(np.full(width, np.sqrt(width)), (1e-2, 1e4))
        kernel = ConstantKernel(1.0, (1e-3, 1e4)) * lengths + WhiteKernel(0.5, (1e-5, 10.0))
        searched = GaussianProcessRegressor(kernel, optimizer=self.climb, normalize_y=True)
        with warnings.catch_warnings():
            # A length at its upper bound is that of a column that does not matter.
            warnings.simplefilter("ignore", ConvergenceWarning)
            searched.fit(columns[some], y[some])
        kept: IntArray = rows[: self.most_rows]
        self.process_ = GaussianProcessRegressor(
            searched.kernel_, optimizer=None, normalize_y=True
        ).fit(columns[kept], y[kept])
        return self

    def climb(self, objective: Any, start: FloatArray, bounds: FloatArray) -> tuple[Any, float]:
        """The logarithms of lengths and noise after so many steps, and their objective."""
        options = {"maxiter": self.most_steps}
        best = minimize(objective, start, jac=True, bounds=bounds, options=options)
        return best.x, float(best.fun)

    def rows_of_lengths(self, n_rows: int, n_columns: int) -> int:
        """Rows that lengths are chosen on.

        Examples
        --------
        >>> [ScaledProcess().rows_of_lengths(5000, width) for width in (11, 201)]
        [1000, 313]
        """
        fitting = int(np.sqrt(self.most_numbers / (n_columns + 2)))
        return min(n_rows, self.most_rows_of_lengths, fitting)

    def predict(self, X: FloatArray) -> FloatArray:
        """Mean of the process."""
        means: FloatArray = self.process_.predict(self.scaler_.transform(X))
        return means


def gaussian_process(random_state: int = 0) -> OutcomeRegressor:
    """`ScaledProcess` on [X, T]."""
    return OutcomeRegressor(ScaledProcess(random_state=random_state))


def lightgbm_defaults(codes: list[int] | None = None, random_state: int = 0) -> OutcomeRegressor:
    """LightGBM on [X, T] as it comes; columns of codes are categories to it."""
    return OutcomeRegressor(_lightgbm(codes, random_state))


def lightgbm_tuned(codes: list[int] | None = None, random_state: int = 0) -> OutcomeRegressor:
    """LightGBM on [X, T] with the best of `TUNED_SETTINGS` random settings by squared error."""
    return OutcomeRegressor(
        RandomizedSearchCV(
            _lightgbm(codes, random_state).set_params(subsample_freq=1),
            SETTINGS,
            n_iter=TUNED_SETTINGS,
            scoring="neg_mean_squared_error",
            cv=KFold(TUNING_FOLDS, shuffle=True, random_state=random_state),
            random_state=random_state,
            n_jobs=1,
        )
    )


def catboost_defaults(codes: list[int] | None = None, random_state: int = 0) -> OutcomeRegressor:
    """CatBoost on [X, T] as it comes; columns of codes are categories to it."""
    return OutcomeRegressor(CategoryBoosting(codes, random_state))


class CategoryBoosting(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """CatBoost with its defaults, from an array of numbers of which some columns are codes.

    It is no extra of the package; `fit` raises ModuleNotFoundError where it is not installed.
    """

    def __init__(self, codes: list[int] | None = None, random_state: int = 0) -> None:
        self.codes = codes
        self.random_state = random_state

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Grow the trees, on one thread."""
        from catboost import CatBoostRegressor

        regressor = CatBoostRegressor(
            random_seed=self.random_state, thread_count=1, verbose=0, allow_writing_files=False
        )
        self.regressor_ = regressor.fit(self.table(X), y, cat_features=self.codes)
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Expected outcomes."""
        outcomes: FloatArray = self.regressor_.predict(self.table(X))
        return outcomes

    def table(self, X: FloatArray) -> Any:
        """Objects whose codes are ints, as CatBoost wants them.

        Examples
        --------
        >>> CategoryBoosting(codes=[0]).table(np.array([[3.0, 0.5]]))
        array([[3, 0.5]], dtype=object)
        """
        if self.codes is None:
            return X
        table: Any = X.astype(object)
        table[:, self.codes] = X[:, self.codes].astype(np.int64)
        return table


def _lightgbm(codes: list[int] | None, random_state: int) -> Any:
    categories = {} if codes is None else {"categorical_feature": codes}
    return LGBMRegressor(random_state=random_state, n_jobs=1, verbosity=-1, **categories)
