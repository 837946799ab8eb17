"""Fitted outcome models and how they answer; their fitting is in `outcome_stack`.

Nothing here or below imports a library that fits: a saved model predicts without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble


class OutcomeModel(Protocol):
    """A fitted model of the mean outcome given covariates and dose."""

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose, shape (n_rows, n_doses).

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            NaN is missing.
        doses : array of shape (n_doses,) or (n_rows, n_doses)
            A grid, or each row's own doses.
        n_threads : int, default=1
            The number does not change a bit of the result.
        """


@dataclass(frozen=True, slots=True)
class BoostedCore:
    """The spline core plus trees boosted on its residuals."""

    core: SplineCore
    trees: TreeEnsemble

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        values = self.core.curves(X, doses) + self.trees.curves(X, doses, n_threads=n_threads)
        return np.clip(values, 0.0, 1.0) if self.core.binary else values


@dataclass(frozen=True, slots=True)
class Stack:
    """A convex combination of members.

    Examples
    --------
    >>> from doseforest.nuisance.outcome.spline_core import fit_spline_core
    >>> x, t = np.zeros((50, 1)), np.linspace(0, 9, 50)
    >>> stack = Stack(
    ...     members={"up": fit_spline_core(x, t, t), "down": fit_spline_core(x, t, -t)},
    ...     weights={"up": 0.75, "down": 0.25},
    ... )
    >>> stack.curves(x[:2], np.array([2.0, 4.0])).round(3)
    array([[1., 2.],
           [1., 2.]])
    """

    members: Mapping[str, OutcomeModel]
    weights: Mapping[str, float]  # not negative, adding up to 1

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        total = np.zeros((len(X), doses.shape[-1]))
        for name, weight in self.weights.items():
            if weight > 0:
                total += weight * self.members[name].curves(X, doses, n_threads=n_threads)
        return total
