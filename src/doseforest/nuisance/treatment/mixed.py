"""Densities with point masses: a probability for each mass, a continuous density for the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import DoseRange
from doseforest.nuisance.treatment.conditional_density import checked_dose_table
from doseforest.nuisance.treatment.covariate_index import CovariateIndex, fit_covariate_index
from doseforest.nuisance.treatment.tied_classifier import Multinomial, fit_multinomial
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support

FEW_MASSES = 3  # up to this number each gets a boosted mean of its own


class GivenShares(Protocol):
    """Probabilities of the masses and, last, of all other doses, given covariates."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Probability of each mass and of the rest, (n_units, n_masses + 1)."""


class ContinuousDensity(Protocol):
    """A density without masses on a range of doses."""

    def values(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities at a grid or at each unit's own doses, (n_units, n_doses)."""


# From (X, dose, range, weights, seed, n_threads) of the rows beside the masses to their density.


@dataclass(frozen=True, slots=True)
class MassProbabilities:
    """Probabilities of the masses and, last, of all other doses."""

    index: CovariateIndex
    model: Multinomial

    def predict(self, X: FloatArray) -> FloatArray:
        """Probability of each mass and of the rest, (n_units, n_masses + 1)."""
        return np.exp(self.model.log_probabilities(self.index.evaluate(X)))


@dataclass(frozen=True, slots=True)
class MixedDensity:
    """A conditional density that may have point masses."""

    support: DoseSupport
    masses: GivenShares | None  # without masses None
    rest: ContinuousDensity | None  # without other doses None

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | x), (n_units, n_doses); at a mass its probability, 0 outside the range."""
        table = checked_dose_table(doses, len(X))
        out = np.zeros((len(X), table.shape[-1]))
        if self.rest is not None:
            inside = (table >= self.support.low) & (table <= self.support.high)
            scale = self.support.scale
            values = self.rest.values(X, scale.forward(table)) * scale.slope(table)
            out = np.where(inside, values, 0.0)
        if self.masses is not None:
            shares = self.masses.predict(X)
            out *= shares[:, -1:]
            for mass, share in zip(self.support.masses, shares.T, strict=False):
                out = np.where(table == mass, share[:, None], out)
        return out


@dataclass(frozen=True, slots=True)
class RowsBeside:
    """The rows whose dose is no mass, and how to fit a density to them."""

    X: FloatArray  # (n_rows, n_features)
    dose: FloatArray  # (n_rows,) positions on the scale of the support
    ends: DoseRange
    weights: FloatArray  # (n_rows,)
    seed: int
    n_threads: int


class MixedLearner(ABC):
    """A recipe for the density beside point masses; the masses are fitted here for all of them."""

    __slots__ = ()

    @abstractmethod
    def fit_beside(self, rows: RowsBeside) -> ContinuousDensity:
        """Fit the density of the doses that are no masses."""

    def fit(
        self,
        X: FloatArray,
        dose: FloatArray,
        *,
        support: DoseSupport | None = None,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> MixedDensity:
        """Fit the masses' probabilities and the density of the other doses.

        The parameters are those of `DensityLearner.fit`.
        """
        X, dose = np.asarray(X, np.float64), np.asarray(dose, np.float64)
        if X.ndim != 2 or dose.shape != (len(X),):
            raise ValueError(
                "The 'dose' parameter must have one number per row of X, a two-dimensional table. "
                f"Got shapes {dose.shape} and {X.shape} instead."
            )
        row_weights = np.ones(len(dose)) if weights is None else np.asarray(weights, np.float64)
        if (row_weights == 0).any():
            X, dose, row_weights = (
                X[row_weights > 0],
                dose[row_weights > 0],
                row_weights[row_weights > 0],
            )
        support = dose_support(dose, row_weights) if support is None else support
        masses = None
        if support.masses:
            masses = _fit_masses(X, dose, support, row_weights, seed, n_threads)
        rest = None
        if support.continuous:
            beside = ~support.at_mass(dose)
            # From here on doses are positions on the scale.
            positions = support.scale.forward(dose[beside])
            ends = DoseRange(*support.scaled_ends)
            rest = self.fit_beside(
                RowsBeside(X[beside], positions, ends, row_weights[beside], seed, n_threads)
            )
        return MixedDensity(support, masses, rest)


def _fit_masses(
    X: FloatArray,
    dose: FloatArray,
    support: DoseSupport,
    weights: FloatArray,
    seed: int,
    n_threads: int,
) -> MassProbabilities:
    n_classes = len(support.masses) + support.continuous
    labels = np.full(len(dose), len(support.masses), np.int64)
    for k, mass in enumerate(support.masses):
        labels[dose == mass] = k
    targets = [dose]
    if len(support.masses) <= FEW_MASSES:
        targets = [(dose == mass).astype(np.float64) for mass in support.masses]
    index = fit_covariate_index(X, targets, weights=weights, seed=seed, n_threads=n_threads)
    # The last class is the reference.
    loadings = np.eye(n_classes)[:, :-1]
    model = fit_multinomial(index.training, labels, loadings, weights=weights, seed=seed)
    return MassProbabilities(index, model)
