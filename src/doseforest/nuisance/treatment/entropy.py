"""Entropy balancing: the weights nearest to 1 under which dose and covariates do not correlate."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.nuisance.treatment.balance_functions import fit_balance_terms
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights

RIDGE = 6.0  # over sqrt(n): .2 at 1,000 rows, where .1 to .3 left the least error in average curves
MAX_STEPS = 500


def entropy_weights(
    X: FloatArray,
    dose: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> TreatmentWeights:
    """Balance dose functions, covariates, and their products.

    The outcome plays no part, so all rows are balanced at once and `folds` are not used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> t = x[:, 0] + rng.normal(size=1000)
    >>> r = entropy_weights(x, t, np.arange(1000) % 4).r
    >>> bool(abs(np.cov(x[:, 0], t, aweights=r)[0, 1]) < 0.25 * np.cov(x[:, 0], t)[0, 1])
    True
    """
    terms = fit_balance_terms(X, dose, weights=weights, seed=seed, n_threads=n_threads)
    rows = np.arange(len(dose))
    r = balanced(terms.columns(rows, rows), weights)
    return TreatmentWeights.capping("entropy", r, weights=weights)


def balanced(
    columns: FloatArray, weights: FloatArray | None = None, ridge: float | None = None
) -> FloatArray:
    """Weights exp(lambda'c_i), of mean 1, under which the columns c have means near 0.

    lambda minimises log mean exp(lambda'c) + ridge |lambda|^2 / 2, the dual of entropy balancing
    with a tolerance: the mean of c under the weights is -ridge lambda. By default the ridge is
    6 / sqrt(n), so the tolerance vanishes in large samples.

    >>> columns = np.array([[-1.0], [-1.0], [2.0], [3.0]])
    >>> r = balanced(columns, ridge=1e-9)
    >>> r.round(3), abs(r @ columns).round(6)
    (array([1.418, 1.418, 0.656, 0.508]), array([0.]))
    """
    row_weights = np.ones(len(columns)) if weights is None else weights
    shares = row_weights / row_weights.sum()
    penalty = RIDGE / np.sqrt(len(columns)) if ridge is None else ridge
    log_shares = np.log(np.maximum(shares, np.finfo(np.float64).tiny))

    def dual(lam: FloatArray) -> tuple[float, FloatArray]:
        exponents = columns @ lam + log_shares
        total = logsumexp(exponents)
        means = columns.T @ np.exp(exponents - total)
        return float(total + penalty * (lam @ lam) / 2), means + penalty * lam

    result = minimize(
        dual,
        np.zeros(columns.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": MAX_STEPS, "gtol": 1e-7, "ftol": 1e-13},
    )
    exponents = columns @ result.x
    # The normaliser goes first: exponents of unbalanced samples are large.
    r: FloatArray = np.exp(exponents - logsumexp(exponents + log_shares))
    return r
