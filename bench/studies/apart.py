"""Two doses estimated apart: a forest for each, with the other dose among the controls."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from doseforest import GeneralizedCausalForest
from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import CurveEffects, dose_table


class ApartForests(CurveEffects, BaseEstimator):  # type: ignore[misc]
    """Effects of each component, added up.

    Each forest has the other dose among its covariates, as a control: it may drive the outcome and
    the treatment, but the effect is not split by it. It is asked at the other's middle.
    """

    def __init__(self, random_state: int) -> None:
        self.random_state = random_state

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return 2

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit a forest for each component."""
        self.middle_ = np.median(treatment, axis=0)
        self.forests_ = [
            GeneralizedCausalForest(
                random_state=self.random_state,
                n_jobs=1,
                controls=[X.shape[1]],
                baseline=float(self.middle_[own]),
            ).fit(np.column_stack([X, treatment[:, 1 - own]]), y, treatment=treatment[:, own])
            for own in (0, 1)
        ]
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Sum of both curves, up to a level that effects do not see."""
        table = dose_table(doses, len(X), n_components=2).table
        total = np.zeros(table.shape[:2])
        for own, forest in enumerate(self.forests_):
            joined = np.column_stack([X, np.full(len(X), self.middle_[1 - own])])
            support = forest.model_.support
            total += forest.dose_response(joined, support.clip(table[..., own]))
        return total
