"""Which model is better, on rows that none of them has seen; or that the data cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from doseforest.base.dtypes import IntArray
from doseforest.evaluation.candidates import checked_candidates, fit_candidates
from doseforest.evaluation.row_estimates import RowEstimate
from doseforest.evaluation.selection_metrics import METRICS, Metric
from doseforest.evaluation.selection_rows import (
    AllRows,
    check_rows,
    draw_split,
    refuse_for_r_risk,
)
from doseforest.evaluation.verdicts import ModelSelection, decide


def select_model(
    candidates: Mapping[str, Any],
    X: Any,
    y: Any,
    treatment: Any,
    *,
    metric: str = "qini",
    doses: Any = None,
    baseline: Any = 0.0,
    cost: Any = None,
    budget: float | None = None,
    propensity: Any = None,
    scores: Any = None,
    score_options: Mapping[str, Any] | None = None,
    groups: Any = None,
    selection_size: float = 0.25,
    test_size: float = 0.25,
    cv: int | None = None,
    level: float = 0.05,
    refit: bool = True,
    n_jobs: int | None = None,
    progress: bool | None = None,
    random_state: int = 0,
) -> ModelSelection:
    """Fit candidates on some rows, compare them on others, and say who wins, if anybody.

    The best candidate wins when its paired difference to every other one is beyond noise (and,
    for Qini scores, its score beyond chance). That is a test at `level` that the winner is
    truly the best, though the data have named it: two-sided comparisons with all others need no
    further correction (Gutmann and Maymi, 1987, for independent samples).

    Parameters
    ----------
    candidates : dict
        By name: estimators with `fit(X, y, treatment=…)` and the effect API, cloned before each
        fit; or functions of the places of training rows that return a fitted model, where fits
        need more of their rows than that.
    X : table of shape (n_rows, n_features)
        Features.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Doses.
    metric : {"qini", "budgeted_qini", "policy_value", "r_risk"}, default="qini"
        Mean Qini score over the doses; gain over budgets when the model decides; mean outcome
        less cost of the doses that look best; minus the R-risk.
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
        Doses to compare with the baseline; by default the levels of the treatment.
    baseline : dose, default=0.0
        The dose that effects are against.
    cost : array of shape (1 + n_doses,) or (n_rows, 1 + n_doses), optional
        Of the baseline and of each dose. For "budgeted_qini"; optional for "policy_value", in the
        unit of the outcome.
    budget : float, optional
        Largest spend per unit, for "budgeted_qini".
    propensity : array of shape (n_rows,), optional
        Chance (for a continuous dose, density) of each row's dose, in an experiment; the
        `density` of robust scores.
    scores : {"randomised", "robust"} or DoseScores, optional
        "randomised": doses were drawn at random, with the chances of `propensity` or the same for
        all. "robust": doubly robust scores, fitted on the rows that choose. By default the former
        where `propensity` is given, else the latter. Or scores of all rows at the baseline and
        the doses. The R-risk needs none, and refuses them, `propensity` and `score_options`.
    score_options : dict, optional
        Further parameters of `robust_scores`, such as `outcome_model`.
    groups : array of shape (n_rows,), optional
        Rows of a group stay together in every split and are one draw in standard errors; fits
        that take groups get them.
    selection_size : float, default=0.25
        Share of the rows that choose. Raise it for a sharper comparison of weaker fits.
    test_size : float, default=0.25
        Share of the rows that score the chosen anew: on the rows that have chosen it, it is too
        good by choice. The remaining rows are for fits.
    cv : int, optional
        Folds of a cross-validation in place of that split: every row chooses, by models that have
        not seen it, and no row is left to score the winner anew. Time grows in proportion.
    level : float, default=0.05
        How much chance a false winner may have. Lower it to name fewer winners.
    refit : bool, default=True
        Fit the winner again, on all rows; else `model` is the one that was compared (with `cv`,
        none).
    n_jobs : int, optional
        Fits at a time, in processes; by default one. Never changes the result.
    progress : bool, optional
        Show a progress bar; by default on a terminal, for work over two seconds.
    random_state : int, default=0
        Seed of the split and of robust scores.

    Returns
    -------
    ModelSelection
        ``winner`` (None where the data cannot tell), ``best``, ``tied``, ``reason``, ``model``,
        ``models``, ``estimates``, ``test``; printed, a table and the reason.

    Examples
    --------
    >>> from doseforest.baselines import ZeroEffect, boosting
    >>> from doseforest.datasets import DISCOUNT_DESIGNS
    >>> data = DISCOUNT_DESIGNS["threshold"].draw(n=30_000, seed=0)
    >>> candidates = {"boosting": boosting(100), "no effect": ZeroEffect()}
    >>> selection = select_model(candidates, data.X, data.y, data.treatment, scores="randomised")
    >>> selection.winner
    'boosting'
    """
    named = checked_candidates(candidates)
    if metric not in METRICS:
        raise ValueError(
            f"The 'metric' parameter must be one of {', '.join(METRICS)}. Got {metric!r} instead."
        )
    _check_level(level)
    if metric == "r_risk":
        ignored = {"propensity": propensity, "scores": scores, "score_options": score_options}
        refuse_for_r_risk(named, **ignored)
    rows = check_rows(
        X,
        y,
        treatment,
        doses=doses,
        baseline=baseline,
        cost=cost,
        budget=budget,
        propensity=propensity,
        scores=scores,
        score_options=score_options,
        groups=groups,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    split = draw_split(rows, selection_size, test_size, cv, random_state)
    asked = METRICS[metric]

    def fit(chosen: Mapping[str, Any], parts: list[IntArray]) -> list[dict[str, Any]]:
        data = (X, y, treatment, groups)
        return fit_candidates(chosen, *data, parts, n_jobs=n_jobs, progress=progress)

    fitted = fit(named, split.fits)
    estimates = _estimates(asked, rows, split.judges, fitted)
    verdict = decide(estimates, asked, level, sum(map(len, split.judges)))
    test = None
    if len(split.tells):
        test = asked.prepare(rows.at(split.tells))(fitted[0][verdict.best])
    models = fitted[0] if cv is None else {}
    model = None if verdict.winner is None else models.get(verdict.winner)
    if verdict.winner is not None and refit:
        only = {verdict.winner: named[verdict.winner]}
        model = fit(only, [np.arange(rows.n_rows)])[0][verdict.winner]
    return ModelSelection(asked.name, estimates, verdict, test, models, model)


def _estimates(
    metric: Metric, rows: AllRows, judges: list[IntArray], fitted: list[dict[str, Any]]
) -> dict[str, RowEstimate]:
    """Score of each candidate, the mean over folds where there are several."""
    values: dict[str, list[float]] = {name: [] for name in fitted[0]}
    influences = {name: np.zeros(rows.n_rows) for name in fitted[0]}
    for places, models in zip(judges, fitted, strict=True):
        judge = metric.prepare(rows.at(places))
        for name, model in models.items():
            verdict = judge(model)
            values[name].append(verdict.value)
            influences[name][places] += verdict.influence / len(judges)
    return {
        name: RowEstimate(float(np.mean(each)), influences[name], rows.groups)
        for name, each in values.items()
    }


def _check_level(level: Any) -> None:
    number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    if not number or not 0 < level < 1:
        raise ValueError(f"The 'level' parameter must be a float in (0, 1). Got {level!r} instead.")
