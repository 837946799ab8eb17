"""Densities and treatment weights of tables with categories: an encoder in front of each fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data.feature_table import Categories
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.nuisance.encoding.category_encoding import (
    CategoryCounts,
    CategoryEncoder,
    fit_encoder,
)
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity, DensityLearner
from doseforest.nuisance.treatment.density_registry import (
    WEIGHTS,
    density_learner,
    density_weights,
    weigher,
)
from doseforest.nuisance.treatment.known_assignments import DensityFunction
from doseforest.nuisance.treatment.treatment_support import DoseSupport
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights


@dataclass(frozen=True, slots=True, eq=False)
class EncodedDensity:
    """A density that sees categories as numbers."""

    encoder: CategoryEncoder
    model: ConditionalDensity

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | x), (n_units, n_doses)."""
        return self.model.density(self.encoder.encode(X), doses)


@dataclass(frozen=True, slots=True)
class EncodedLearner:
    """Fits a density to numbers in place of categories.

    Examples
    --------
    >>> from doseforest.nuisance.treatment import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, size=(400, 1)).astype(float)
    >>> density = EncodedLearner(Gaussian(), {0: 2}).fit(x, 3 * x[:, 0] + rng.normal(size=400))
    >>> density.density(np.array([[0.0], [1.0]]), np.array([3.0])).round(1)
    array([[0. ],
           [0.4]])
    """

    learner: DensityLearner
    counts: CategoryCounts

    def fit(
        self,
        X: FloatArray,
        dose: FloatArray,
        *,
        support: DoseSupport | None = None,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> ConditionalDensity:
        """Fit an encoder, then the density; the parameters are those of `DensityLearner.fit`."""
        encoder, encoded = _encoded(X, dose, self.counts, weights, seed)
        model = self.learner.fit(
            encoded, dose, support=support, weights=weights, seed=seed, n_threads=n_threads
        )
        return EncodedDensity(encoder, model)


def with_categories(learner: DensityLearner, counts: CategoryCounts) -> DensityLearner:
    """A learner that sees numbers where there are categories, else the learner itself."""
    return EncodedLearner(learner, counts) if counts else learner


def named_weights(
    asked: str | DensityLearner,
    X: FloatArray,
    dose: FloatArray,
    folds: IntArray,
    counts: CategoryCounts,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> TreatmentWeights:
    """Weights of a name or of a density's recipe.

    Parameters
    ----------
    asked : str or DensityLearner
        A name in `WEIGHTS` or `DENSITIES`, or a recipe.
    counts : mapping
        Codes of each column with categories.

    Notes
    -----
    Densities are cross-fitted, each with an encoder of its own. Balance is sought among all rows
    at once, and so they are encoded at once.
    """
    weigh, table = weigher(asked), X
    if counts and not (isinstance(asked, str) and asked in WEIGHTS):
        name = asked if isinstance(asked, str) else type(asked).__name__
        learner = density_learner(asked)
        weigh = density_weights(name, EncodedLearner(learner, counts), plain=learner)
    else:
        table = encoded_table(X, dose, counts, weights, seed)
    return weigh(table, dose, folds, weights=weights, seed=seed, n_threads=n_threads)


def in_own_numbers(density: DensityFunction, categories: Categories) -> DensityFunction:
    """A density function that is told categories as its user knows them.

    Categories that are numbers are told as these numbers; text as its code, the place of the label
    in `categories`, whose keys are columns of X.

    >>> told = in_own_numbers(lambda X, doses: X, {0: (7, 3), 1: ("b", "a")})
    >>> told(np.array([[0.0, 1.0], [np.nan, np.nan]]), None)
    array([[ 7.,  1.],
           [nan, nan]])
    """
    numbers = {
        column: np.array([*labels, np.nan], dtype=np.float64)
        for column, labels in categories.items()
        if labels and not isinstance(labels[0], str)
    }
    return _InOwnNumbers(density, numbers) if numbers else density


@dataclass(frozen=True, slots=True, eq=False)
class _InOwnNumbers:
    """A function of (X, doses) that sees numbers in place of codes."""

    density: DensityFunction
    numbers: Mapping[int, FloatArray]  # of each code of a column, NaN last

    def __call__(self, X: FloatArray, doses: FloatArray) -> Any:
        told = X.copy()
        for column, values in self.numbers.items():
            codes = X[:, column]
            told[:, column] = values[np.where(np.isnan(codes), -1, codes).astype(np.int64)]
        return self.density(told, doses)


def encoded_table(
    X: FloatArray,
    dose: AnyDoses,
    counts: CategoryCounts,
    weights: FloatArray | None,
    seed: int,
) -> FloatArray:
    """All rows with numbers in place of categories, learned of their doses."""
    return _encoded(X, dose, counts, weights, seed)[1] if counts else X


def _encoded(
    X: FloatArray,
    dose: AnyDoses,
    counts: CategoryCounts,
    weights: FloatArray | None,
    seed: int,
) -> tuple[CategoryEncoder, FloatArray]:
    return fit_encoder(X, counts, Doses.of(dose).table, weights=weights, seed=seed)
