"""Weights from a classifier that tells observed pairs of dose and covariates from permuted ones."""

from __future__ import annotations

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.cross_fit import fold_splits
from doseforest.nuisance.treatment.balance_functions import BalanceTerms, fit_balance_terms
from doseforest.nuisance.treatment.tied_classifier import Multinomial, fit_multinomial
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights

ROWS = 40_000  # permutations are repeated up to this many rows
MAX_PERMUTATIONS = 5
BINARY = np.array([[0.0], [1.0]])  # loadings of observed and permuted


def permutation_weights(
    X: FloatArray,
    dose: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> TreatmentWeights:
    """Odds of "permuted" against "observed", cross-fitted by fold.

    Permuted doses have the distribution p(t) p(x) and the observed ones p(t, x), so the odds are
    p(t) / pi(t | x). Both have the same marginals: the classifier is a logistic regression on
    products, where a tree would find no first split.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> t = x[:, 0] + rng.normal(size=1000)
    >>> r = permutation_weights(x, t, np.arange(1000) % 4).r
    >>> bool(abs(np.cov(x[:, 0], t, aweights=r)[0, 1]) < 0.5 * np.cov(x[:, 0], t)[0, 1])
    True
    """
    terms = fit_balance_terms(X, dose, weights=weights, seed=seed, n_threads=n_threads)
    row_weights = np.ones(len(dose)) if weights is None else weights
    log_odds = np.empty(len(dose))
    fitted: Multinomial | None = None
    for split in fold_splits(folds):
        out = split.left_out
        fitted = _fit_odds(terms, split.kept, row_weights, fitted, seed)
        columns = terms.columns(out, out)
        log_odds[out] = fitted.coefficients[0] + columns @ fitted.coefficients[1:][:, 0]
    log_odds -= log_odds.max()  # exponents of strangers to the others' fit may be large
    r = np.exp(log_odds)
    r = r / np.average(r, weights=row_weights)
    return TreatmentWeights.capping("permutation", r, weights=weights)


def _fit_odds(
    terms: BalanceTerms, kept: IntArray, weights: FloatArray, last: Multinomial | None, seed: int
) -> Multinomial:
    rng = np.random.default_rng(seed)
    n_permutations = min(max(ROWS // len(kept), 1), MAX_PERMUTATIONS)
    permuted = [rng.permutation(kept) for _ in range(n_permutations)]
    columns = [terms.columns(kept, kept), *(terms.columns(kept, each) for each in permuted)]
    labels = np.repeat([0, 1], [len(kept), n_permutations * len(kept)])
    # A permuted row has the weights of both its parts; all permutations weigh as much as the data.
    row_weights = [weights[kept]]
    for each in permuted:
        product = weights[kept] * weights[each]
        row_weights.append(product * weights[kept].sum() / (product.sum() * n_permutations))
    return fit_multinomial(
        np.concatenate(columns),
        labels,
        BINARY,
        weights=np.concatenate(row_weights),
        # The ridge is chosen once, and the solution of another fold is near.
        ridge=None if last is None else last.ridge,
        start=None if last is None else last.coefficients,
        seed=seed,
    )
