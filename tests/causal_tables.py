"""Tables with categories, doses and outcomes that several test files fit, and a fast regressor."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from doseforest import GeneralizedCausalForest


class Slopes(RegressorMixin, BaseEstimator):
    """Least squares on x, t and x t, gaps filled with zeros: fast, and right about the data."""

    def fit(self, X, y, sample_weight=None):
        self.line_ = LinearRegression().fit(self._columns(X), y, sample_weight)
        return self

    def predict(self, X):
        return self.line_.predict(self._columns(X))

    def _columns(self, X):
        filled = np.nan_to_num(X)
        return np.hstack([filled, filled[:, :-1] * filled[:, -1:]])


class Blind(Slopes):
    """A line in the dose alone: everything about units is left to the forests."""

    def _columns(self, X):
        return X[:, -1:]


class Table:
    """Rows with a category of some levels that moves level, dose and slope, and two numbers."""

    def __init__(self, n=300, n_levels=4, seed=0, missing=0.05):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(n, 2))
        self.code = rng.integers(0, n_levels, n)
        self.slope = np.linspace(-1, 1, n_levels)
        push = 0.5 * rng.normal(size=n_levels)
        self.dose = 2 + push[self.code] + 0.5 * self.x[:, 0] + rng.uniform(-2, 2, size=n)
        noise = 0.5 * rng.normal(size=n)
        own = 1 + self.slope[self.code]
        self.y = 10 + self.x[:, 0] + self.code % 3 + self.dose * own + noise
        self.x[rng.random(self.x.shape) < missing] = np.nan
        self.gap = rng.random(n) < missing

    @property
    def labels(self):
        """Labels whose order is that of the codes, so that ties of frequency break alike."""
        names = [f"level {code:03d}" for code in self.code]
        return [None if gap else name for gap, name in zip(self.gap, names, strict=True)]

    @property
    def frame(self):
        """A pandas frame with text, the category in the middle."""
        columns = {"age": self.x[:, 0], "city": self.labels, "income": self.x[:, 1]}
        return pd.DataFrame(columns).astype({"city": object})

    @property
    def codes(self):
        """The same as an array, with codes for text."""
        own = np.where(self.gap, np.nan, self.code)
        return np.column_stack([self.x[:, 0], own, self.x[:, 1]])


def small(**parameters):
    """A forest that takes a second or two."""
    settings = {"outcome_model": Slopes(), "n_trees": 40, "baseline": 2.0}
    return GeneralizedCausalForest(**{**settings, "random_state": 0, "n_jobs": 1, **parameters})
