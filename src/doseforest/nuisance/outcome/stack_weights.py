"""Weights of the members of the outcome stack: by what they say of outcomes, and of effects.

A member may predict outcomes well by their levels and say little about the dose, or the other way
round. Effects are what the library is asked for, so half of the say goes to the risk of effects

    mean of (y - m(x) - sum_k w_k (h_k(x, t) - e_k(x)))^2,    e_k(x) = E[h_k(x, T) | x],

m the mean outcome by the members that predict outcomes best: what a member says of a unit whatever
its dose cancels. That risk is the noisier one of the two, hence the other half.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.boxes import has_levels
from doseforest.nuisance.cross_fit import HELD_OUT, FoldModels
from doseforest.nuisance.encoding.category_encoding import CategoryCounts
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

N_POSSIBLE = 16  # doses that stand for those which a unit could have had
EFFECT_SAY = 0.5  # of the weights by the risk of effects
TIE = 1e-3  # how firmly shares are held where nothing else decides
MOST_JUDGED = 4_000  # rows of that risk: more would hardly change the weights


def stack_weights(
    observed: FloatArray,
    usual: FloatArray,
    y: FloatArray,
    weights: FloatArray | None = None,
    rows: IntArray | None = None,
) -> FloatArray:
    """Convex weights of members, by the risk of outcomes and by the risk of effects.

    Parameters
    ----------
    observed : array of shape (n_rows, n_members)
        Out-of-fold predictions at the dose of each row.
    usual : array of shape (n_judged, n_members)
        Their means over the doses that a row could have had.
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    rows : array of shape (n_judged,), optional
        Places of the rows of `usual`; by default all.

    Examples
    --------
    The second member knows the effect and no level, the first a level and no effect.

    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=(2, 2000))
    >>> members, means = np.column_stack([3 * x, t]), np.column_stack([3 * x, 0 * t])
    >>> stack_weights(members, means, 3 * x + t).round(2)
    array([0.45, 0.55])
    """
    by_outcome = convex_weights(observed, y, weights)
    judged = slice(None) if rows is None else rows
    counted = np.ones(len(usual)) if weights is None else weights[judged]
    columns, target = observed[judged] - usual, y[judged] - usual @ by_outcome
    # Members that say the same of effects, or nothing, keep the shares that outcomes give them.
    pull = TIE * max(float(np.sqrt((counted * target**2).sum())), np.finfo(float).tiny)
    by_effect = convex_weights(
        np.vstack([columns, pull * np.eye(len(by_outcome))]),
        np.append(target, pull * by_outcome),
        np.append(counted, np.ones(len(by_outcome))),
    )
    return (1.0 - EFFECT_SAY) * by_outcome + EFFECT_SAY * by_effect


def usual_outcomes(
    drawn: FoldModels[Mapping[str, OutcomeModel]],
    X: FloatArray,
    asked: DoseArray,
    rows: IntArray,
    n_threads: int = 1,
) -> FloatArray:
    """What each member says of rows on average over doses, out of fold: (len(rows), n_members).

    Parameters
    ----------
    drawn : FoldModels
        Members without each fold.
    X : array of shape (n_rows, n_features)
    asked : array of shape (n_doses,) or (n_rows, n_doses)
        As of `possible_doses`.
    rows : array of ints
        Places of the rows that are asked about.
    """
    out: list[FloatArray] = []
    places: list[IntArray] = []
    for models, own in drawn.with_rows():
        place = np.flatnonzero(np.isin(rows, own))
        if len(place) == 0:  # a member need not answer for no row
            continue
        doses = asked if asked.ndim == 1 else asked[rows[place]]
        units = X[rows[place]]
        curves = (model.curves(units, doses, n_threads=n_threads) for model in models.values())
        out.append(np.stack([curve.mean(axis=1) for curve in curves], axis=1))
        places.append(place)
    in_order: FloatArray = np.concatenate(out)[np.argsort(np.concatenate(places))]
    return in_order


def possible_doses(
    X: FloatArray,
    dose: DoseArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    counts: CategoryCounts | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> DoseArray:
    """Doses that stand for those which units could have had, (n_doses,) or (n_rows, n_doses).

    Around a cross-fitted mean dose of each row lie quantiles of what is left of the doses. Doses of
    few levels or of several components are those of rows, the same for everybody: there the mean
    over them is not quite that given the covariates, but it is the same for all doses of a row.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 500, axis=0)
    >>> dose = 10 * x[:, 0] + np.tile(np.linspace(-1, 1, 500), 2)
    >>> asked = possible_doses(x, dose, np.arange(1000) % 4)
    >>> asked.shape, asked[[0, -1], 8].round()
    ((1000, 16), array([ 0., 10.]))
    """
    seen = np.flatnonzero((folds != HELD_OUT) & (True if weights is None else weights > 0))
    places = (np.arange(N_POSSIBLE) + 0.5) / N_POSSIBLE
    if dose.dtype.names is not None:
        joint: DoseArray = dose[np.random.default_rng(seed).permutation(seen)[:N_POSSIBLE]]
        return joint
    if has_levels(dose, weights):
        grid: DoseArray = np.quantile(dose[seen], places, method="nearest")
        return grid
    centre = cross_fit_means(
        X, dose[:, None], folds, weights=weights, counts=counts, seed=seed, n_threads=n_threads
    )
    spread = np.quantile(dose[seen] - centre[seen, 0], places)
    around: DoseArray = np.clip(centre + spread, dose[seen].min(), dose[seen].max())
    return around
