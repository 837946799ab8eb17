"""Regressors of the outcome on [X, T], read as dose-response curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from doseforest.base.dtypes import FloatArray
from doseforest.baselines.baseline import Baseline
from doseforest.baselines.baseline_inputs import training_rows
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.dose_values import MAX_COMPONENTS
from doseforest.nuisance.outcome.block_predictions import predict_in_blocks


class OutcomeRegressor(Baseline):
    """A scikit-learn regressor on the features and the dose, with the effect API.

    The curve of a unit is its prediction as the dose goes from value to value. Nothing corrects
    for what the regressor shrinks or misses.

    Parameters
    ----------
    regressor : regressor, optional
        Anything with `fit` and `predict`; it is cloned. By default a random forest, see
        `random_forest`.

    Attributes
    ----------
    regressor_ : regressor
        Fitted; the dose is its last column.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, dose = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0.0, 2.0, 1.0, 5.0])
    >>> model = OutcomeRegressor(LinearRegression()).fit(X, X[:, 0] + 3 * dose, treatment=dose)
    >>> model.dose_response(X[:2], [0.0, 1.0]).round(6)
    array([[0., 3.],
           [1., 4.]])
    >>> model.effect(X[:2], dose=2.0, baseline=0.0).round(6)
    array([6., 6.])
    """

    def __init__(self, regressor: Any = None) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit the regressor on features and dose.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components)
            Observed doses.

        Returns
        -------
        OutcomeRegressor
            The same object, fitted.
        """
        rows = training_rows(X, y, treatment, MAX_COMPONENTS)
        regressor = _forest_of_trees() if self.regressor is None else clone(self.regressor)
        self.regressor_ = regressor.fit(np.column_stack([rows.features, rows.dose]), rows.outcome)
        self._keep(rows.features.shape[1], rows.names, rows.dose)
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Predicted outcome of each unit, shape (n_units, n_doses), on a grid or unit by unit."""
        features = self._units(X)
        table = dose_table(doses, len(features), n_components=self.n_components)
        return predict_in_blocks(self.regressor_, features, table.values)


def random_forest(
    n_trees: int = 500, min_samples_leaf: int = 5, random_state: int = 0, n_jobs: int = 1
) -> OutcomeRegressor:
    """Random forest of scikit-learn on [X, T], every feature tried at every split.

    Parameters
    ----------
    n_trees : int, default=500
        Trees. Time, memory and files grow in proportion; errors hardly fall beyond some hundred.
    min_samples_leaf : int, default=5
        Rows of a leaf at least. Raise it where outcomes are noisy, lower it for steeper curves.
    random_state : int, default=0
        Seed of the bootstrap.
    n_jobs : int, default=1
        Threads; never changes the result.

    Returns
    -------
    OutcomeRegressor
        Not fitted.

    Examples
    --------
    >>> random_forest(n_trees=10).regressor.min_samples_leaf
    5
    """
    return OutcomeRegressor(_forest_of_trees(n_trees, min_samples_leaf, random_state, n_jobs))


def boosting(
    n_trees: int = 200,
    learning_rate: float = 0.05,
    max_leaf_nodes: int = 8,
    random_state: int = 0,
    *,
    early_stopping: bool = False,
) -> OutcomeRegressor:
    """Histogram gradient boosting of scikit-learn on [X, T]; the defaults suit some 1,000 rows.

    Parameters
    ----------
    n_trees : int, default=200
        Rounds of boosting. Raise it with the number of rows; time grows in proportion.
    learning_rate : float, default=0.05
        Share of each tree's prediction that is added. Lower it together with more trees.
    max_leaf_nodes : int, default=8
        Leaves of a tree. Raise it where features interact with the dose; small data then overfits.
    random_state : int, default=0
        Seed of the rows that early stopping leaves out.
    early_stopping : bool, default=False
        End growth when the error on a tenth of the rows no longer falls. Set it where there are
        many rows; it costs that tenth.

    Returns
    -------
    OutcomeRegressor
        Not fitted.

    Examples
    --------
    >>> boosting(n_trees=10).regressor.max_iter
    10
    """
    regressor = HistGradientBoostingRegressor(
        max_iter=n_trees,
        learning_rate=learning_rate,
        max_leaf_nodes=max_leaf_nodes,
        early_stopping=early_stopping,
        random_state=random_state,
    )
    return OutcomeRegressor(regressor)


def _forest_of_trees(
    n_trees: int = 500, min_samples_leaf: int = 5, random_state: int = 0, n_jobs: int = 1
) -> RandomForestRegressor:
    return RandomForestRegressor(
        n_trees, min_samples_leaf=min_samples_leaf, random_state=random_state, n_jobs=n_jobs
    )
