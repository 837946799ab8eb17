"""Doubly robust scores of responses at doses, for rows that a forest has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.data import checks
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import given_doses
from doseforest.estimator.averages.average_curves import centred_influence
from doseforest.estimator.chosen_bandwidths import choose_bandwidth
from doseforest.estimator.fit_plan import dose_kernel
from doseforest.estimator.weighting import weigh_treatments
from doseforest.inference.judged_rows import new_rows_judged


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """What is known of held-out rows at every dose.

    The mean score of rows that were picked by their covariates is about their mean response at a
    dose, whatever was predicted; single scores are noisy.
    """

    predicted: FloatArray  # (n_rows, n_doses)
    scores: FloatArray  # (n_rows, n_doses)
    weights: FloatArray | None  # (n_rows,) of the sample
    clusters: IntArray  # (n_rows,)
    kept: Array  # (n_rows given,) booleans: rows of weight 0 are not


def scores_by_propensity(
    forest: Any,
    doses: Doses,
    X: Any,
    y: Any,
    treatment: Any,
    propensity: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> HeldOutScores:
    """Scores of an experiment: predictions plus residuals at the doses given, over propensities."""
    predicted = np.asarray(forest.dose_response(X, doses.plain), np.float64)
    n_rows = len(predicted)
    outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
    width = doses.n_components
    table = checks.checked_columns(treatment, "treatment", n_rows, width).astype(np.float64)
    if table.shape[1] != width:
        raise ValueError(
            f"The 'treatment' parameter must have {width} components, as the doses of the policy. "
            f"Got {table.shape[1]} instead."
        )
    at_dose = Doses.of_table(table)[:, None] == doses
    chance = _checked_propensity(propensity, at_dose)
    place = at_dose.argmax(axis=1)
    every = np.arange(n_rows)
    # A row at none of the doses says nothing about them: its residual has the weight 0.
    residual = outcome - predicted[every, place]
    scores = predicted + at_dose * (residual / chance)[:, None]
    clusters = every if groups is None else checks.group_codes(groups, n_rows)
    own = checks.checked_weights(sample_weight, n_rows)
    weights = None if own is None else own.astype(np.float64)
    return HeldOutScores(predicted, scores, weights, clusters, np.ones(n_rows, bool))


def _checked_propensity(propensity: Any, at_dose: Array) -> FloatArray:
    """Probability of each row's own dose, (n_rows,)."""
    given = checks.as_numbers(propensity, "propensity").astype(np.float64)
    if given.shape == at_dose.shape:
        given = given[np.arange(len(given)), at_dose.argmax(axis=1)]
    if given.shape != at_dose.shape[:1]:
        raise ValueError(
            "The 'propensity' parameter must have the probability of each row's own dose "
            f"({len(at_dose)},), or of every dose of the policy, {at_dose.shape}. "
            f"Got shape {np.shape(propensity)} instead."
        )
    bad = at_dose.any(axis=1) & ~((given > 0) & (given <= 1))
    if bad.any():
        raise ValueError(
            "The 'propensity' parameter must be above 0 and at most 1 where a dose was given. "
            f"Got {given[bad][0]} in row {int(np.flatnonzero(bad)[0])} instead."
        )
    return np.where(at_dose.any(axis=1), given, 1.0)


def scores_by_nuisances(
    forest: Any,
    doses: DoseArray,
    X: Any,
    y: Any,
    treatment: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> HeldOutScores:
    """Scores of rows that were only observed, by the treatment weights of a fitted forest.

    The weights are estimated on these rows as in the forest's fit. Residuals count near a dose, in
    a bandwidth by rule of thumb; levels are matched.
    """
    judged = new_rows_judged(
        forest._fitted, X, y, treatment, sample_weight=sample_weight, groups=groups
    )
    rows, plan = judged.rows, judged.plan
    predicted = judged.curves(doses)
    r = weigh_treatments(rows, judged.residual, plan).chosen.r
    kernel, smooth = dose_kernel(rows, plan)
    bandwidth = 1.0
    if smooth:
        bandwidth = choose_bandwidth("rule_of_thumb", rows, judged.residual, kernel, r)
    mean, influence = centred_influence(
        rows.dose.values,
        judged.residual,
        doses,
        kernel=kernel,
        bandwidth=bandwidth,
        treatment_weights=r,
        weights=rows.weights,
    )
    kept = np.ones(len(predicted), bool) if rows.given is None else rows.given
    return HeldOutScores(predicted, predicted + mean + influence, rows.weights, rows.ids, kept)


def check_seen(doses: Doses, needed: Array, treatment: Any) -> None:
    """Raise ValueError where a policy gives a dose that no row of an experiment had."""
    missing = doses[needed & ~np.isin(doses, given_doses(treatment, "treatment"))]
    if len(missing):
        raise ValueError(
            "The 'treatment' parameter must hold every dose that the policy gives, for residuals "
            f"to speak about it. Got no row with dose {dose_text(missing[0])} instead."
        )
