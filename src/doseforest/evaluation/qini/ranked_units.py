"""Judge rankings of units by the outcomes of an experiment or by scores; compare two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data import checks
from doseforest.evaluation.qini.budgeted_qini import BudgetedQini
from doseforest.evaluation.qini.dose_arms import choose_arms
from doseforest.evaluation.qini.gains import ARM_GAINS, Gains, ScoreGains, rank_rows
from doseforest.evaluation.qini.qini_curve import BY_SCORES, QiniCurve, make_curve
from doseforest.evaluation.row_estimates import RowEstimate, centred, row_digest


def qini_curve(
    y: Any,
    treatment: Any,
    predicted_effect: Any,
    *,
    dose: Any,
    baseline: Any = 0.0,
    propensity: Any = None,
    scores: Any = None,
    bandwidth: float | None = None,
    estimator: str = "means",
    sample_weight: Any = None,
    groups: Any = None,
) -> QiniCurve:
    """Score a ranking of units by their predicted effect of a dose.

    Units of equal prediction enter together and the curve is straight between points: with scores
    that is the mean over all orders among them. The first units form one group until both arms
    have a row. The rows must not be those that the model was fitted on.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Doses. Rows of other doses than the two compared have no part, unless `scores` are given.
    predicted_effect : array of shape (n_rows,)
        Of `dose` against `baseline`; only its order counts.
    dose : float or array of shape (n_components,)
        The dose whose effect is predicted.
    baseline : float or array of shape (n_components,), default=0.0
        The dose that it is compared with.
    propensity : array of shape (n_rows,) or dict, optional
        Chance (for a continuous dose, density) of each row's dose, or of each dose; rows are
        weighted by its inverse. By default rows of a dose had it with the same chance, whatever it
        is.
    scores : array of shape (n_rows,), optional
        Doubly robust scores of the effect, as from `robust_scores`: for data that are only
        observed, and sharper ones from experiments. They take the place of `y` and `treatment`,
        which may be None.
    bandwidth : float, optional
        Of a continuous dose: rows count by how near they are to dose and baseline. By default the
        rule of thumb, at most half of the distance between the two; levels match exactly. Raise it
        for smaller standard errors, at the cost of blurring the two doses.
    estimator : {"means", "radcliffe"}, default="means"
        "means": share of units x difference of the two arms' means among them. "radcliffe": that
        difference x the share of the treated, the published counts over the number of treated.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Rows of a group are one draw in standard errors.

    Returns
    -------
    QiniCurve
        Gain at every share, and the score with its standard error.

    Examples
    --------
    Of four units, the two with the highest predictions gain 1 each, the others nothing:

    >>> curve = qini_curve(
    ...     y=[1, 0, 1, 1, 0, 0, 1, 1],
    ...     treatment=[1, 0, 1, 1, 1, 0, 0, 0],
    ...     predicted_effect=[4, 4, 3, 1, 2, 3, 1, 2],
    ...     dose=1,
    ... )
    >>> curve.shares, curve.gain
    (array([0.  , 0.25, 0.5 , 0.75, 1.  ]), array([0.  , 0.25, 0.5 , 0.25, 0.25]))
    >>> round(curve.score, 4)
    0.1562
    """
    predicted = _predictions(predicted_effect)
    n_rows = len(predicted)
    weights = checks.checked_weights(sample_weight, n_rows)
    row_weights = np.ones(n_rows) if weights is None else weights.astype(np.float64)
    clusters = None if groups is None else checks.group_codes(groups, n_rows)
    if scores is not None:
        _refuse_with_scores(propensity=propensity, bandwidth=bandwidth)
        numbers = checks.as_numbers(scores, "scores")
        if numbers.shape == row_weights.shape:  # rows without weight need no score
            numbers = np.where(row_weights > 0, numbers, 0.0)
        known = checks.checked_columns(numbers, "scores", n_rows, 1)[:, 0].astype(np.float64)
        ranking = rank_rows(predicted, row_weights)
        gains: Gains = ScoreGains(ranking, known[ranking.order])
        kind, counts, width = BY_SCORES, (len(ranking.order),) * 2, None
        rows = row_digest(known, row_weights, clusters)
    else:
        if estimator not in ARM_GAINS:
            raise ValueError(
                f"The 'estimator' parameter must be one of {', '.join(ARM_GAINS)}. "
                f"Got {estimator!r} instead."
            )
        outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
        arms = choose_arms(
            treatment,
            n_rows,
            dose,
            baseline,
            propensity=propensity,
            bandwidth=bandwidth,
            sample_weight=row_weights,
        )
        ranking = rank_rows(predicted, arms.weights, arms.treated)
        apart = centred(outcome, arms.weights)  # effects stay, and large outcomes round less
        gains = ARM_GAINS[estimator](ranking, apart[ranking.order], arms.treated[ranking.order])
        rows = row_digest(apart * (arms.weights > 0), arms.weights, arms.treated, clusters)
        kind, counts, width = estimator, (arms.n_treated, arms.n_control), arms.bandwidth
    asked = (dose, baseline), kind, counts, width, rows
    return make_curve(ranking, gains, clusters, n_rows, *asked)


def compare_qini(first: QiniCurve | BudgetedQini, second: QiniCurve | BudgetedQini) -> RowEstimate:
    """Score of one model less that of another, paired: with standard error and p-value.

    Both must be of the same rows and the same two doses, or up to the same budget. What both
    share, the noise of the outcomes, cancels.

    Parameters
    ----------
    first, second : QiniCurve or BudgetedQini
        Results on the same rows.

    Returns
    -------
    RowEstimate
        The difference; above 0 where the first is better.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, treatment = rng.normal(size=2000), rng.integers(0, 2, 2000)
    >>> y = x * treatment + rng.normal(size=2000)
    >>> good, blind = (
    ...     qini_curve(y, treatment, effect, dose=1) for effect in (x, rng.normal(size=2000))
    ... )
    >>> gap = compare_qini(good, blind)
    >>> gap.value > 0.2, gap.p_value < 1e-6
    (True, True)
    """
    if first.question != second.question:
        raise ValueError(
            "The 'second' parameter must be a curve on the same rows, doses and estimator (or "
            f"budget) as the first. Got {second} to compare with {first} instead."
        )
    return first.estimate.minus(second.estimate)


def _predictions(values: Any) -> FloatArray:
    array = checks.as_numbers(values, "predicted_effect")
    if array.ndim != 1 or not len(array):
        raise ValueError(
            "The 'predicted_effect' parameter must have one number per row. "
            f"Got shape {array.shape} instead."
        )
    checked = checks.checked_columns(array, "predicted_effect", len(array), 1)
    return checked[:, 0].astype(np.float64)


def _refuse_with_scores(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"The {name!r} parameter must be None with scores, which know it already. "
                f"Got {value!r} instead."
            )
