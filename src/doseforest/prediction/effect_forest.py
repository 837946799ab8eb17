"""A fitted generalized causal forest without its training data: curves and what follows of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from doseforest.data.categories import recoded
from doseforest.data.table import BlockSource, Categories, as_table
from doseforest.dtypes import FloatArray, IntArray
from doseforest.machine import thread_count
from doseforest.nuisance.outcome_models import OutcomeModel
from doseforest.prediction.curve_effects import CurveEffects, dose_table, unit_doses
from doseforest.treatments.bases import IndicatorBasis
from doseforest.treatments.grids import DoseRange, check_doses

SLOPE_STEP = 0.025  # of the range of doses, on either side, over which a slope is taken


class Correction(Protocol):
    """Corrects the curves of an outcome model."""

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Corrected curves, shape (n_units, n_doses).

        Parameters
        ----------
        outcome : OutcomeModel
        X : array of shape (n_units, n_features)
        splits : array of shape (n_units, n_effect_features)
            The covariates that trees split on.
        doses : array of shape (n_doses,) or (n_units, n_doses)
        """


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """The outcome model's curves as they are."""

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Curves of the outcome model."""
        return outcome.curves(X, doses, n_threads=n_threads)


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedOutcome:
    """An outcome model and its correction."""

    outcome: OutcomeModel
    correction: Correction


class EffectMethods(CurveEffects):
    """What can be asked of a fitted forest; `_model` is the forest itself."""

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    def dose_response(self, X: Any, doses: Any = None) -> FloatArray:
        """Expected outcome of each unit at each dose, shape (n_units, n_doses).

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        doses : float, array of shape (n_doses,) or of shape (n_units, n_doses), optional
            A grid for all units, or a row of doses for each; in the support of the training doses.
            By default the forest's grid.
        """
        model = self._model
        asked = model.doses if doses is None else doses
        table = model.checked_table(X)
        own = dose_table(asked, table.n_rows)
        check_doses(own.ravel() if np.ndim(asked) == 2 else own[0], model.support)
        out = np.empty(own.shape)
        for first, block in table.blocks():
            rows = slice(first, first + len(block))
            out[rows] = model.curves(block, own[rows] if np.ndim(asked) == 2 else own[0])
        return out

    def effect(self, X: Any, dose: Any, baseline: Any = None) -> FloatArray:
        """Theta: outcome at `dose` less outcome at `baseline`, shape (n_units,).

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        dose, baseline : float or array of shape (n_units,)
            One dose for all units, or one for each; by default the forest's baseline.
        """
        return super().effect(X, dose, self._model.baseline if baseline is None else baseline)

    def elasticity(self, X: Any, dose: Any) -> FloatArray:
        """Percent change of the outcome per percent change of the dose, shape (n_units,).

        The slope is taken over 2.5 % of the range of doses on either side.
        """
        model = self._model
        model.check_quantity()
        n_units = len(X)
        asked = check_doses(unit_doses(dose, n_units), model.support, "dose")
        middle = np.clip(asked, model.support.low, model.support.high)
        step = SLOPE_STEP * (model.support.high - model.support.low)
        low = np.clip(middle - step, model.support.low, model.support.high)
        high = np.clip(middle + step, model.support.low, model.support.high)
        curves = self.dose_response(X, np.column_stack([low, middle, high]))
        if (curves[:, 1] <= 0).any():
            unit = int(np.argmax(curves[:, 1] <= 0))
            raise ValueError(
                "The 'dose' parameter must have a positive expected outcome for an elasticity. "
                f"Got {curves[unit, 1]:.4g} for unit {unit} at dose {middle[unit]:g} instead; "
                "partial_effect has no such need."
            )
        slopes = (curves[:, 2] - curves[:, 0]) / (high - low)
        elasticities: FloatArray = middle * slopes / curves[:, 1]
        return elasticities


@dataclass(frozen=True, slots=True, eq=False)
class EffectForest(EffectMethods):
    """The dose-response curve of every unit.

    Made by `GeneralizedCausalForest.fit` or `load_forest`.
    """

    parts: tuple[CorrectedOutcome, ...]  # averaged; two where halves were swapped
    n_features: int
    feature_names: tuple[str, ...] | None
    effect_columns: IntArray  # features that trees split on
    doses: FloatArray  # (n_doses,) the default grid
    baseline: float
    support: DoseRange
    bounded: bool  # outcomes are kept to [0, 1]
    n_jobs: int | None = None
    categories: Categories = field(default_factory=dict)  # labels of the categorical features

    @property
    def _model(self) -> EffectForest:
        return self

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, atomically; see `load_forest`.

        `n_jobs` stays behind: it belongs to a machine. An outcome model or a basis of the user's
        own code is a TypeError.
        """
        from doseforest.prediction.effect_file import save_effect_forest

        save_effect_forest(self, path)

    def checked_table(self, X: Any) -> BlockSource:
        """Units as blocks of rows with the features of the training table."""
        table = as_table(
            X, expected_names=self.feature_names, with_categories=bool(self.categories)
        )
        if table.n_features != self.n_features:
            raise ValueError(
                f"The 'X' parameter must have {self.n_features} features, as in fit. "
                f"Got {table.n_features} instead."
            )
        return recoded(table, self.categories)

    def check_quantity(self) -> None:
        """Raise ValueError where doses are levels, between which nothing is known."""
        bases = (getattr(part.correction, "basis", None) for part in self.parts)
        levels = next((basis.levels for basis in bases if isinstance(basis, IndicatorBasis)), None)
        if levels is not None:
            raise ValueError(
                "The 'dose' parameter must be a quantity for an elasticity. This forest knows the "
                f"levels {list(levels)} alone: compare two of them by partial_effect, or fit it "
                "with basis='legendre'."
            )

    def curves(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Curves of checked units at checked doses, see `dose_response`; categories are codes."""
        n_threads = thread_count(self.n_jobs)
        splits = np.ascontiguousarray(X[:, self.effect_columns])
        total = np.zeros((len(X), doses.shape[-1]))
        for part in self.parts:
            total += part.correction.curves(part.outcome, X, splits, doses, n_threads)
        mean = total / len(self.parts)
        return np.clip(mean, 0.0, 1.0) if self.bounded else mean
