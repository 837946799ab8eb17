"""Functions of dose and covariates whose means differ between a sample and an unconfounded one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.bases.dose_basis import DoseBasis, Tensor
from doseforest.doses.bases.polynomials import Legendre
from doseforest.doses.dose_values import Doses
from doseforest.nuisance.treatment.covariate_index import fit_covariate_index

DOSE_FUNCTIONS = 3  # polynomials of the dose, beside indicators of its masses
MAX_PRODUCTS = 300


@dataclass(frozen=True, slots=True)
class BalanceTerms:
    """Functions of the dose, of the covariates, and which products of both count.

    All have mean 0 and variance about 1 under the sample's weights, so that a product has mean 0
    where dose and covariates are independent.
    """

    dose: FloatArray  # (n_rows, n_dose_functions)
    covariates: FloatArray  # (n_rows, n_columns)
    pairs: IntArray  # (n_products, 2) a dose function and a column

    @property
    def n_terms(self) -> int:
        """Dose functions, columns and products."""
        return int(self.dose.shape[1] + self.covariates.shape[1]) + len(self.pairs)

    def columns(self, rows: IntArray, dose_rows: IntArray) -> FloatArray:
        """Terms with the covariates of some rows and the doses of others, (n, n_terms)."""
        dose, covariates = self.dose[dose_rows], self.covariates[rows]
        products = dose[:, self.pairs[:, 0]] * covariates[:, self.pairs[:, 1]]
        return np.concatenate([dose, covariates, products], axis=1)


def fit_balance_terms(
    X: FloatArray,
    dose: FloatArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> BalanceTerms:
    """Make the terms of all rows; of too many products those furthest from balance are kept.

    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(200, 2)), rng.normal(size=200)
    >>> terms = fit_balance_terms(x, t)
    >>> terms.dose.shape, terms.covariates.shape, terms.n_terms
    ((200, 3), (200, 2), 11)
    """
    row_weights = np.ones(len(dose)) if weights is None else weights
    recipe: DoseBasis = Legendre(1 + DOSE_FUNCTIONS, masses="auto")
    if Doses.of(dose).joint:
        recipe = Tensor(main_order=DOSE_FUNCTIONS, joint_order=2)
    functions = _standardised(recipe.fit(dose, row_weights).evaluate(dose)[:, 1:], row_weights)
    index = fit_covariate_index(
        X, Doses.of(dose).columns, weights=row_weights, seed=seed, n_threads=n_threads
    )
    covariates = _standardised(index.training, row_weights)
    imbalance = np.abs(functions.T @ (row_weights[:, None] * covariates))
    order = np.argsort(-imbalance, axis=None, kind="stable")[:MAX_PRODUCTS]
    pairs = np.column_stack(np.unravel_index(np.sort(order), imbalance.shape))
    return BalanceTerms(functions, covariates, pairs)


def _standardised(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """Columns of mean 0 and variance 1; constant ones are left out."""
    centred = columns - np.average(columns, axis=0, weights=weights)
    deviation = np.sqrt(np.average(centred**2, axis=0, weights=weights))
    seen = deviation > 1e-9
    return centred[:, seen] / deviation[seen]
