"""The linear causal forest as a pricing model: slopes by the forest, levels by boosting."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from doseforest.base.dtypes import FloatArray
from doseforest.baselines import LinearCausalForest
from doseforest.baselines.baseline_inputs import training_rows, units_of
from doseforest.doses.curve_effects import CurveEffects, dose_table
from doseforest.doses.dose_values import MAX_COMPONENTS


class LinearDemand(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """Lines through the expected outcome of each unit: m(x) + sum over k of tau_k(x) (t_k - E t_k).

    A causal forest knows slopes, not levels, and the cost of a discount depends on both: what the
    features predict of the outcome, by boosting, is the level at the mean dose. Several components
    have a forest each, which is right where their doses were drawn independently. Where outcomes
    are never negative the lines are cut at 0, where they are shares at 1 too.

    Parameters
    ----------
    n_trees, min_node_size : int, default=200 and 20
        Of the causal forests.
    random_state : int, default=0
    n_jobs : int, default=1

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, dose = rng.uniform(size=(800, 2)), rng.uniform(size=800)
    >>> y = 5 + X[:, 0] * dose
    >>> model = LinearDemand(n_trees=40).fit(X, y, treatment=dose)
    >>> bool(abs(model.dose_response(X, [0.5]).mean() - 5.25) < 0.05)
    True
    """

    def __init__(
        self,
        n_trees: int = 200,
        min_node_size: int = 20,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self.min_node_size = min_node_size
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit on features (numpy, pandas or polars), outcomes and observed doses."""
        rows = training_rows(X, y, treatment, MAX_COMPONENTS)
        doses = rows.dose.reshape(len(rows.outcome), -1)
        fits = [
            LinearCausalForest(
                self.n_trees,
                min_node_size=self.min_node_size,
                random_state=self.random_state + place,
                n_jobs=self.n_jobs,
            ).fit(rows.features, rows.outcome, treatment=column)
            for place, column in enumerate(doses.T)
        ]
        # What answers for units alone, without training rows and times: the same fit has the same
        # bytes in a file.
        self.forests_ = tuple(fit.forest_.forest for fit in fits)
        regressor = HistGradientBoostingRegressor(
            learning_rate=0.05, max_leaf_nodes=8, max_iter=200, random_state=self.random_state
        )
        self.level_ = regressor.fit(rows.features, rows.outcome)
        self.mean_dose_ = doses.mean(axis=0)
        self.n_features_in_ = rows.features.shape[1]
        lowest, highest = float(rows.outcome.min()), float(rows.outcome.max())
        self.range_ = 0.0 if lowest >= 0 else -np.inf, 1.0 if highest <= 1 else np.inf
        return self

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        check_is_fitted(self)
        return len(self.forests_)

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Lines, shape (n_units, n_doses), on a grid or unit by unit."""
        check_is_fitted(self)
        units = units_of(X, self.n_features_in_)
        table = dose_table(doses, len(units), n_components=self.n_components)
        slopes = np.stack([each.predict(units)[:, 1] for each in self.forests_], axis=1)
        away = table.table - self.mean_dose_
        lines = self.level_.predict(units)[:, None] + (away * slopes[:, None, :]).sum(axis=2)
        clipped: FloatArray = np.clip(lines, *self.range_)
        return clipped
