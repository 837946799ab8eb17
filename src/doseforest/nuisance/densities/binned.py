"""A classifier of the dose's bin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.dtypes import FloatArray
from doseforest.nuisance.densities.classifier import Multinomial, fit_multinomial
from doseforest.nuisance.densities.covariate_index import CovariateIndex, fit_covariate_index
from doseforest.nuisance.densities.mixed import MixedDensity, fit_mixed
from doseforest.nuisance.densities.relative import RelativeDensity, overall_density
from doseforest.nuisance.densities.support import DoseSupport
from doseforest.treatments.grids import DoseRange, check_count


@dataclass(frozen=True, slots=True)
class BinnedClassifier:
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
        """Fit the classifier."""
        return fit_mixed(self._fit_rest, X, dose, support, weights, seed, n_threads)

    def _fit_rest(
        self,
        X: FloatArray,
        dose: FloatArray,
        ends: DoseRange,
        weights: FloatArray,
        seed: int,
        n_threads: int,
    ) -> RelativeDensity:
        overall = overall_density(dose, weights, ends)
        labels = np.minimum((overall.cdf(dose) * self.n_bins).astype(np.int64), self.n_bins - 1)
        middles = (np.arange(self.n_bins) + 0.5) / self.n_bins
        index = fit_covariate_index(X, [dose], weights=weights, seed=seed, n_threads=n_threads)
        loadings = np.polynomial.legendre.legvander(
            2 * middles - 1, min(self.degree, self.n_bins - 1)
        )
        loadings = loadings[:, 1:] / np.sqrt((loadings[:, 1:] ** 2).mean(axis=0))
        model = fit_multinomial(index.training, labels, loadings, weights=weights, seed=seed)
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
