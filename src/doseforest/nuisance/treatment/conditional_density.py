"""Conditional densities of the dose: what one is, and how it is cross-fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.cross_fit import FoldModels, cross_fit
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support


class ConditionalDensity(Protocol):
    """A density pi(t | x) of the dose given covariates; it never changes."""

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | x), shape (n_units, n_doses).

        Parameters
        ----------
        X : array of shape (n_units, n_features)
            NaN is missing.
        doses : array of shape (n_doses,) or (n_units, n_doses)
            A grid, or each unit's own doses. At a point mass the value is its probability, outside
            the range of the dose it is 0.
        """


class DensityLearner(Protocol):
    """A recipe for conditional densities."""

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
        """Fit a density to rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            NaN is missing.
        dose : array of shape (n_rows,)
        support : DoseSupport, optional
            Range and point masses of the dose; by default those of the rows.
        weights : array of shape (n_rows,), optional
        """


class RowDensities(Protocol):
    """Densities of the training rows, from nothing that has seen their doses."""

    @property
    def observed(self) -> FloatArray:
        """Values pi(T_i | X_i), (n_rows,)."""

    @property
    def everywhere(self) -> bool:
        """Whether densities are known at any dose, not at the observed ones alone."""

    def out_of_fold(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities of the training rows, (n_rows, n_doses)."""


@dataclass(frozen=True, slots=True)
class CrossFittedDensity:
    """A density for new units, and one for each fold that has not seen it."""

    models: FoldModels[ConditionalDensity]
    observed: FloatArray  # (n_rows,) pi(T_i | X_i), out of fold

    @property
    def full(self) -> ConditionalDensity:
        """Of all rows."""
        assert self.models.full is not None  # `cross_fit_density` asks for it
        return self.models.full

    @property
    def everywhere(self) -> bool:
        """True: a fitted density has a value at any dose."""
        return True

    def out_of_fold(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Densities of the training rows, (n_rows, n_doses), from fits that have not seen them."""
        return _out_of_fold(self.models, X, doses)


def cross_fit_density(
    learner: DensityLearner,
    X: FloatArray,
    dose: FloatArray,
    folds: IntArray,
    *,
    support: Any = None,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> CrossFittedDensity:
    """Fit a density with and without each fold.

    All fits share the range and the masses of all rows, so that no fold has a dose which the
    others hold to be impossible.

    Parameters
    ----------
    learner : DensityLearner
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose : array of shape (n_rows,)
    folds : array of shape (n_rows,)
        Fold of each row, 0, 1, … or `HELD_OUT`; see `cross_fit`.
    support : DoseSupport, optional
        Range and point masses, one for each component; by default those of all rows.
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> from doseforest.nuisance.treatment import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 2))
    >>> dose = x[:, 0] + rng.normal(size=400)
    >>> fitted = cross_fit_density(Gaussian(), x, dose, np.arange(400) % 4)
    >>> fitted.full.density(np.zeros((1, 2)), np.array([0.0])).round(1)
    array([[0.4]])
    >>> fitted.out_of_fold(x, np.array([-1.0, 0.0, 1.0])).shape
    (400, 3)
    """
    if support is None:
        grounds = tuple(dose_support(column, weights) for column in Doses.of(dose).columns)
        support = grounds if len(grounds) > 1 else grounds[0]

    def fit(kept: IntArray) -> ConditionalDensity:
        return learner.fit(
            X[kept],
            dose[kept],
            support=support,
            weights=None if weights is None else weights[kept],
            seed=seed,
        )

    models = cross_fit(fit, folds, full=True, n_threads=n_threads)
    return CrossFittedDensity(models, _out_of_fold(models, X, dose[:, None])[:, 0])


def check_training_table(X: FloatArray, n_rows: int) -> None:
    """Raise ValueError for a table that cannot be the training table."""
    if len(X) != n_rows:
        raise ValueError(
            f"The 'X' parameter must be the training table ({n_rows} rows). "
            f"Got {len(X)} rows instead."
        )


def checked_dose_table(doses: Any, n_units: int) -> FloatArray:
    """Doses as a grid (n_doses,) or as a table (n_units, n_doses)."""
    if Doses.of(doses).joint:
        records: DoseArray = doses
        return records
    table = np.asarray(doses, np.float64)
    if table.ndim not in (1, 2) or (table.ndim == 2 and len(table) != n_units):
        raise ValueError(
            f"The 'doses' parameter must have shape (n_doses,) or ({n_units}, n_doses), a row for "
            f"each unit. Got shape {table.shape} instead."
        )
    if np.isnan(table).any():
        raise ValueError("The 'doses' parameter must hold numbers. Got NaN instead.")
    return table


def _out_of_fold(
    models: FoldModels[ConditionalDensity], X: FloatArray, doses: FloatArray
) -> FloatArray:
    check_training_table(X, len(models.folds))
    table = checked_dose_table(doses, len(X))
    return models.out_of_fold(
        lambda density, rows: density.density(X[rows], table if table.ndim == 1 else table[rows]),
        table.shape[-1],
    )
