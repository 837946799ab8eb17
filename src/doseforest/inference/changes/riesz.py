"""Riesz representers by regression: weights that turn residuals into corrections of an average.

An average E[sum_k c_k mu(d_k(T), X)], as of a shift of the dose, is E[a(T, X) mu(T, X)] for one
function a, its representer: a ratio of densities less one for a shift, the slope of the
log-density for a derivative. It has the least mean of a^2 - 2 sum_k c_k a(d_k(T), X), a
least-squares problem in the coefficients of a linear basis, without any density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.seeds import Purpose, derive
from doseforest.doses.bases.dose_basis import FittedBasis, Indicators
from doseforest.doses.bases.polynomials import Legendre
from doseforest.inference.changes.dose_moves import Contrast
from doseforest.nuisance.treatment.conditional_mean import fit_conditional_mean
from doseforest.nuisance.treatment.covariate_index import fit_covariate_index

RIDGES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # on columns of mean square 1
N_FUNCTIONS = 5  # of the dose, and of what the covariates leave of it
FURTHEST = 4.0  # standard deviations of the dose given the covariates
SMALLEST_LEFT = 0.05  # of the residuals' rms, below which their logarithm is all noise
SCALE_RANGE = 1.0  # log-scales may differ from their mean by this much
BLOCK_ROWS = 16_384
MAX_COLUMNS = 200  # of the covariates, those that the dose depends on most


@dataclass(frozen=True, slots=True, eq=False)
class RieszTerms:
    """Functions of the dose and of each training row's covariates.

    Beside functions of the dose and of the covariates there are functions of z, the dose less its
    mean given the covariates over its scale: where covariates only move and stretch the dose, both
    kinds of representers are functions of z and of the scale.
    """

    basis: FittedBasis  # of the dose
    z_basis: FittedBasis
    mean: FloatArray  # (n_rows,) of the dose given the covariates, out of fold
    scale: FloatArray  # (n_rows,)
    covariates: FloatArray  # (n_rows, n_columns) about standardised
    dose_modifiers: FloatArray  # (n_rows, n) that functions of the dose are multiplied by
    z_modifiers: FloatArray  # (n_rows, n) the same for functions of z

    def at(self, dose: FloatArray, rows: IntArray) -> FloatArray:
        """Columns of some rows at doses of theirs, the constant first, (n, n_terms)."""
        z = np.clip((dose - self.mean[rows]) / self.scale[rows], -FURTHEST, FURTHEST)
        columns = [np.ones((len(dose), 1)), self.covariates[rows]]
        for values, modifiers in (
            (self.basis.evaluate(dose)[:, 1:], self.dose_modifiers[rows]),
            (self.z_basis.evaluate(z)[:, 1:], self.z_modifiers[rows]),
        ):
            columns += [values, *(values * each[:, None] for each in modifiers.T)]
        return np.hstack(columns)


def fit_riesz_terms(
    X: FloatArray,
    dose: FloatArray,
    *,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    levels: bool = False,
    seed: int = 0,
    n_threads: int = 1,
) -> RieszTerms:
    """Fit mean and scale of the dose given the covariates, and the functions.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        NaN is missing.
    dose : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    groups : array of shape (n_rows,), optional
        Rows of a group are left out together.
    levels : bool
        Whether the dose has few levels: then they have indicators, whose products with the mean
        of the dose stand for chances that depend on the covariates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> terms = fit_riesz_terms(x, x[:, 0] + rng.normal(size=500))
    >>> terms.at(np.zeros(3), np.arange(3)).shape
    (3, 17)
    """
    common: dict[str, Any] = {"weights": weights, "groups": groups, "n_threads": n_threads}
    index = fit_covariate_index(X, [dose], seed=seed, **common)
    mean = index.means[0].out_of_fold
    left = dose - mean
    size = max(float(np.sqrt(np.average(left**2, weights=weights))), 1e-6 * float(np.ptp(dose)))
    log_scale = fit_conditional_mean(
        X,
        np.log(np.maximum(np.abs(left), SMALLEST_LEFT * size)),
        seed=derive(seed, Purpose.SCALE),
        **common,
    )
    drift = np.clip(log_scale.out_of_fold - log_scale.level, -SCALE_RANGE, SCALE_RANGE)
    scale = np.exp(drift)
    scale *= np.sqrt(np.average((left / scale) ** 2, weights=weights)) or 1.0
    z = np.clip(left / scale, -FURTHEST, FURTHEST)
    recipe = Indicators() if levels else Legendre(N_FUNCTIONS, masses="auto")
    return RieszTerms(
        basis=recipe.fit(dose, weights),
        z_basis=Legendre(N_FUNCTIONS).fit(z, weights),
        mean=mean,
        scale=scale,
        covariates=_closest(index.training, dose, weights),
        dose_modifiers=_varying(index.training[:, -2:] if levels else np.empty((len(dose), 0))),
        z_modifiers=_varying(drift[:, None]),
    )


def representer(
    terms: RieszTerms,
    dose: FloatArray,
    contrast: Contrast,
    folds: IntArray,
    *,
    shares: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Values a(T_i, X_i) of the representer of a contrast, cross-fitted, (n_rows,).

    Parameters
    ----------
    shares : array of shape (n_rows, 2), optional
        In place of the contrast's own: of the part that is to be represented.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 1))
    >>> dose = x[:, 0] + rng.normal(size=2000)
    >>> from doseforest.inference.changes.dose_moves import slope_contrast
    >>> values = representer(
    ...     fit_riesz_terms(x, dose), dose, slope_contrast(dose, None), np.arange(2000) % 4)
    >>> bool(np.corrcoef(values, dose - x[:, 0])[0, 1] > 0.9)  # exactly T - E[T | X]
    True
    """
    doses, own_shares = contrast.at(dose)
    own_shares = own_shares if shares is None else shares
    row_weights = np.ones(len(dose)) if weights is None else weights
    blocks = [_blocks(np.flatnonzero(folds == fold)) for fold in range(int(folds.max()) + 1)]
    moments = [_moments(terms, dose, doses, own_shares, row_weights, fold) for fold in blocks]
    gram, target, weight = (sum(parts) for parts in zip(*moments, strict=True))
    size = np.sqrt(np.diag(gram) / weight)
    size = np.where(size > 0, size, 1.0)
    best, least = None, np.inf
    for ridge in RIDGES:
        penalty = ridge * size**2
        solved = [_solve(gram - a, target - b, weight - c, penalty) for a, b, c in moments]
        loss = sum(
            float(line @ a @ line - 2 * line @ b)
            for line, (a, b, _) in zip(solved, moments, strict=True)
        )
        if best is None or loss < least:
            best, least = solved, loss
    assert best is not None  # there are penalties to try
    values = np.empty(len(dose))
    for fold, line in zip(blocks, best, strict=True):
        for rows in fold:
            values[rows] = terms.at(dose[rows], rows) @ line
    return values


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[first : first + BLOCK_ROWS] for first in range(0, len(rows), BLOCK_ROWS)]


def _moments(
    terms: RieszTerms,
    dose: FloatArray,
    doses: FloatArray,
    shares: FloatArray,
    weights: FloatArray,
    blocks: list[IntArray],
) -> tuple[FloatArray, FloatArray, float]:
    """Weighted sums over some rows: products of columns, contrasts of columns, weights."""
    grams, targets, total = [], [], 0.0
    for rows in blocks:
        row_weights, columns = weights[rows], terms.at(dose[rows], rows)
        grams.append((columns * row_weights[:, None]).T @ columns)
        targets.append(
            sum(
                (row_weights * share) @ terms.at(moved, rows)
                for share, moved in zip(shares[rows].T, doses[rows].T, strict=True)
            )
        )
        total += float(row_weights.sum())
    return np.sum(grams, axis=0), np.sum(targets, axis=0), total


def _solve(gram: FloatArray, target: FloatArray, weight: float, penalty: FloatArray) -> FloatArray:
    free = np.append(1e-10, penalty[1:])  # the constant is free
    line = np.linalg.solve(gram / weight + np.diag(free), target / weight)
    return line.astype(np.float64, copy=False)


def _closest(columns: FloatArray, dose: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Columns that vary; of too many, those most correlated with the dose."""
    kept = _varying(columns)
    if kept.shape[1] <= MAX_COLUMNS:
        return kept
    row_weights = np.ones(len(dose)) if weights is None else weights
    centred = (dose - np.average(dose, weights=row_weights)) * row_weights
    order = np.argsort(-np.abs(centred @ kept), kind="stable")[:MAX_COLUMNS]
    return kept[:, np.sort(order)]


def _varying(columns: FloatArray) -> FloatArray:
    return columns[:, np.ptp(columns, axis=0) > 1e-9]
