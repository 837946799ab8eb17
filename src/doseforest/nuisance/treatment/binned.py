"""A classifier of the dose's bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import check_count
from doseforest.nuisance.treatment.covariate_index import CovariateIndex, fit_covariate_index
from doseforest.nuisance.treatment.mixed import MixedLearner, RowsBeside
from doseforest.nuisance.treatment.relative import RelativeDensity, overall_density
from doseforest.nuisance.treatment.tied_classifier import Multinomial, fit_multinomial


@dataclass(frozen=True, slots=True)
class BinnedClassifier(MixedLearner):
    """Probabilities of quantile bins, linear between the bins' middles.

    A ridge-penalised multinomial regression on the covariates, on a boosted mean of the dose and
    on its square; logits are polynomials of the bin's rank, because neighbouring bins are alike.

    Parameters
    ----------
    n_bins : int, default=16
        Bins of equal shares of the rows.
    degree : int, default=3
        Of the polynomials.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> density = BinnedClassifier().fit(x, 2 * x[:, 0] + rng.normal(size=2000))
    >>> density.density(np.array([[1.0]]), np.array([-2.0, 2.0])).round(1)
    array([[0. , 0.4]])
    """

    n_bins: int = 16
    degree: int = 3

    def __post_init__(self) -> None:
        check_count(self.n_bins, 2, "n_bins")
        check_count(self.degree, 1, "degree")

    def fit_beside(self, rows: RowsBeside) -> RelativeDensity:
        """Fit the classifier."""
        overall = overall_density(rows.dose, rows.weights, rows.ends)
        ranks = overall.cdf(rows.dose)
        labels = np.minimum((ranks * self.n_bins).astype(np.int64), self.n_bins - 1)
        middles = (np.arange(self.n_bins) + 0.5) / self.n_bins
        index = fit_covariate_index(
            rows.X, [rows.dose], weights=rows.weights, seed=rows.seed, n_threads=rows.n_threads
        )
        loadings = np.polynomial.legendre.legvander(
            2 * middles - 1, min(self.degree, self.n_bins - 1)
        )
        loadings = loadings[:, 1:] / np.sqrt((loadings[:, 1:] ** 2).mean(axis=0))
        model = fit_multinomial(
            index.training, labels, loadings, weights=rows.weights, seed=rows.seed
        )
        knots = np.concatenate([[0.0], middles, [1.0]])
        return RelativeDensity(overall, knots, BinHeights(index, model))


@dataclass(frozen=True, slots=True)
class BinHeights:
    """Probabilities of the bins over their widths, the outer ones up to the ends."""

    index: CovariateIndex
    model: Multinomial

    def heights(self, X: FloatArray) -> FloatArray:
        """Heights at both ends and at the bins' middles, (n_units, n_bins + 2)."""
        shares = np.exp(self.model.log_probabilities(self.index.evaluate(X)))
        return np.pad(shares, ((0, 0), (1, 1)), mode="edge")
