"""scikit-learn's own checks, on the engine and, through an adapter, on the causal forest."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from doseforest import CurveForest, GeneralizedCausalForest
from doseforest.corrections import Orthogonal
from doseforest.data.checks import checked_columns, checked_weights
from doseforest.data.feature_table import as_table
from doseforest.estimator.training_rows import FEWEST_ROWS


class LastColumnIsDose(RegressorMixin, BaseEstimator):
    """The causal forest as a plain regressor: the last feature is the dose as well.

    Tables go to the forest as they come, so that its own checks of them are checked; but those of 2
    to 39 rows, which it refuses, are read and repeated.
    """

    def __init__(self, n_trees=4, random_state=0):
        self.n_trees = n_trees
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        table = as_table(X)
        copies = -(-FEWEST_ROWS // table.n_rows) if table.n_rows > 1 else 1
        if copies > 1:
            y = checked_columns(y, "y", table.n_rows, 1)
            sample_weight = checked_weights(sample_weight, table.n_rows)
            X, y = np.tile(read(table), (copies, 1)), np.tile(y[:, 0], copies)
            sample_weight = None if sample_weight is None else np.tile(sample_weight, copies)
        dose = read(as_table(X))[:, -1]
        forest = GeneralizedCausalForest(
            self.n_trees,
            outcome_model=Filled(),
            treatment_model=Filled(),
            n_folds=2,
            correction=Orthogonal(n_rounds=1, leaf_sizes=5),
            random_state=self.random_state,
            n_jobs=1,
        )
        # A little is added so that the dose is a quantity, not a few levels.
        dose = np.nan_to_num(dose) + 1e-6 * np.arange(len(dose))
        self.forest_ = forest.fit(X, y, treatment=dose, sample_weight=sample_weight)
        self.n_features_in_ = forest.n_features_in_
        if table.names is not None:
            self.feature_names_in_ = forest.feature_names_in_
        return self

    def predict(self, X):
        check_is_fitted(self)
        dose = read(self.forest_.model_.checked_table(X))[:, -1:]
        support = self.forest_.support_
        dose = np.clip(np.nan_to_num(dose), support.low, support.high)
        return self.forest_.dose_response(X, dose)[:, 0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Filled(RegressorMixin, BaseEstimator):
    """Least squares with zeros for missing values."""

    def fit(self, X, y, sample_weight=None):
        self.model_ = LinearRegression().fit(np.nan_to_num(X), y, sample_weight)
        return self

    def predict(self, X):
        return self.model_.predict(np.nan_to_num(X))


def read(table):
    return np.concatenate([block for _, block in table.blocks()])


HASHED = "rows are drawn by hash of their ids, so a repeated row is drawn twice"
EXPECTED_FAILURES = {
    CurveForest: {"check_sample_weight_equivalence_on_dense_data": HASHED},
    LastColumnIsDose: {
        "check_sample_weight_equivalence_on_dense_data": HASHED,
        "check_supervised_y_2d": "one column is as good as a vector and needs no warning",
    },
}


@parametrize_with_checks(
    [CurveForest(20, min_node_size=2, n_jobs=1), LastColumnIsDose()],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator)],
)
def test_scikit_learns_own_checks_pass(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks themselves warn about what they skip
        check(estimator)
