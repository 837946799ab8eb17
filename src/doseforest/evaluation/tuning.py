"""Parameters of a forest by the R-risk on rows left out, and whether any beat those it has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from statistics import NormalDist
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.base.estimates import Estimate
from doseforest.base.progress import ProgressBar
from doseforest.base.seeds import draw, stream
from doseforest.data import checks
from doseforest.doses.grids import check_count
from doseforest.estimator.early_checks import check_given
from doseforest.evaluation.risks import EffectRisk, EffectYardstick, fit_yardstick, mean_risk
from doseforest.evaluation.tuned_parameters import checked_params
from doseforest.nuisance.cross_fit import draw_folds, fold_splits
from doseforest.nuisance.treatment.density_registry import is_estimated
from doseforest.nuisance.treatment.known_densities import Strata

LEVEL = 0.05  # at which a candidate beats the forest as it is, all candidates together
DRAW_TRIALS = 11  # purpose of the hash that picks among many combinations
MOST_COMBINATIONS = 100_000
YARDSTICK_FOLDS = 4  # within each fold held out


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting, and its R-risk beside that of the forest as it was passed.

    Attributes
    ----------
    params : mapping
        Parameters by name; empty for the forest as it is.
    risk : float
        R-risk; less is better.
    difference : Estimate
        Risk less that of the forest as it is, paired row by row; below 0 is better.
    seconds : float
        Time of the fits.

    Examples
    --------
    >>> trial = Trial({"mtry": 3}, risk=1.2, difference=Estimate(-0.1, 0.02), seconds=5.0)
    >>> trial.difference.value
    -0.1
    """

    params: Mapping[str, Any]
    risk: float
    difference: Estimate
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """What was tried, and what came of it; printed, a table.

    Attributes
    ----------
    trials : tuple of Trial
        The forest as it is first, then the settings as they were tried.
    chosen : dict
        Parameters to use: the best of those that are surely better, or none.
    forest : estimator
        Unfitted, with the parameters to use.

    Examples
    --------
    >>> start = Trial({}, risk=1.3, difference=Estimate(0.0, 0.0), seconds=5.0)
    >>> other = Trial({"mtry": 3}, risk=1.2, difference=Estimate(-0.1, 0.2), seconds=5.0)
    >>> tuning = Tuning((start, other), chosen={}, forest=None)
    >>> tuning.best, tuning.beats_default
    ({'mtry': 3}, False)
    """

    trials: tuple[Trial, ...]
    chosen: dict[str, Any]
    forest: Any

    @property
    def beats_default(self) -> bool:
        """Whether some setting beats the forest as it is beyond noise, as one of so many."""
        return bool(self.chosen)

    @property
    def best(self) -> dict[str, Any]:
        """Parameters of least risk; empty where that is the forest as it is."""
        return dict(min(self.trials, key=lambda trial: trial.risk).params)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A line for each trial, the best first, as a frame takes them."""
        return [
            {
                **trial.params,
                "risk": trial.risk,
                "difference": trial.difference.value,
                "standard_error": trial.difference.standard_error,
                "seconds": trial.seconds,
            }
            for trial in sorted(self.trials, key=lambda trial: trial.risk)
        ]

    def __str__(self) -> str:
        lines = [f"{'risk':>10} {'difference':>11} {'error':>9} {'seconds':>8}  parameters"]
        for trial in sorted(self.trials, key=lambda trial: trial.risk):
            named = ", ".join(f"{name}={param!r}" for name, param in trial.params.items())
            gap = trial.difference
            lines.append(
                f"{trial.risk:>10.5g} {gap.value:>+11.3g} {gap.standard_error:>9.2g} "
                f"{trial.seconds:>8.1f}  {named or 'as given'}"
            )
        named = ", ".join(f"{name}={each!r}" for name, each in self.chosen.items())
        lines.append(
            f"Chosen: {named}." if named else "No candidate beats the forest as given beyond noise."
        )
        return "\n".join(lines)


def tune(
    forest: Any,
    X: Any,
    y: Any,
    *,
    treatment: Any,
    params: Mapping[str, Sequence[Any]] | None = None,
    n_trials: int = 20,
    n_folds: int = 3,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: int = 0,
    progress: bool | None = None,
) -> Tuning:
    """Try parameters of a forest by the R-risk on rows that it has not seen.

    Rows (groups) are dealt to folds. Each setting is fitted without a fold and scored on it, by a
    yardstick that is fitted there once for all settings (`fit_yardstick`). The difference to the
    forest as it was passed is paired row by row. The best of many settings is better by chance too:
    it is chosen only where its difference is below zero at a level of 5 %, shared by all of them
    (Bonferroni). That makes ``(settings + 1) x n_folds`` fits.

    Parameters
    ----------
    forest : GeneralizedCausalForest, or an estimator with ``fit(X, y, treatment=)``
        What is tuned; it is cloned. Other estimators need `dose_response` too.
    X : table of shape (n_rows, n_features)
        Features, as in `fit` of the forest.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    params : mapping from names to lists of values, optional
        Every combination is a setting. By default what acts in the forest's mode of correction:
        min_node_size, mtry, honesty_fraction, bandwidth (kernel corrections and "paper") and zeta
        ("paper"). Parameters that do nothing in that mode are refused.
    n_trials : int, default=20
        Settings tried beside the forest as it is; of more combinations so many are drawn. More of
        them take longer, and each must be better by more to count.
    n_folds : int, default=3
        Folds. Raise it where rows are few, so that fits have more of them; time grows in
        proportion.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Labels of rows that stay in one fold and are one draw in standard errors.
    random_state : int, default=0
        Seed of the folds, the draw of settings and the yardstick; the forest keeps its seed.
    progress : bool, optional
        Show a progress bar; by default on a terminal.

    Returns
    -------
    Tuning
        All trials, the parameters to use, and an unfitted forest that has them.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from doseforest.baselines import AverageCurve
    >>> from doseforest.datasets import DESIGNS
    >>> class Line(BaseEstimator):  # curves with a slope that is tuned
    ...     def __init__(self, slope=0.0):
    ...         self.slope = slope
    ...     def fit(self, X, y, treatment):
    ...         return self
    ...     def dose_response(self, X, doses):
    ...         return AverageCurve(lambda t: self.slope * t).dose_response(X, doses)
    >>> data = DESIGNS["linear"].draw(n=200, seed=0)
    >>> rows = {"treatment": data.treatment, "n_folds": 2}
    >>> tuning = tune(Line(), data.X, data.y, params={"slope": [1.0, 2.0]}, **rows)
    >>> tuning.chosen
    {'slope': 2.0}
    """
    check_count(n_trials, 1, "n_trials")
    check_count(n_folds, 2, "n_folds")
    check_count(random_state, 0, "random_state")
    if not (progress is None or isinstance(progress, bool)):
        raise ValueError(
            f"The 'progress' parameter must be None, True or False. Got {progress!r} instead."
        )
    check_given(treatment, "tune")
    outcome = checks.as_numbers(y, "y")
    for name, each in (("X", X), ("treatment", treatment)):
        n_own = 0 if isinstance(each, str) or not hasattr(each, "__len__") else len(each)
        if n_own != len(outcome):
            raise ValueError(
                f"The {name!r} parameter must have a row for each outcome in 'y' ({len(outcome)}). "
                f"Got {n_own} instead."
            )
    tried = checked_params(forest, params, treatment)
    settings = _settings(forest, tried, n_trials, random_state)
    n_rows = len(outcome)
    weights = checks.checked_weights(sample_weight, n_rows)
    clusters = np.arange(n_rows) if groups is None else checks.group_codes(groups, n_rows)
    folds = _folds(clusters, n_folds, random_state)
    rows = _Rows(X, outcome, np.asarray(treatment), sample_weight, groups, weights, clusters)
    losses = np.full((len(settings) + 1, n_rows), np.nan)
    seconds = np.zeros(len(losses))
    with ProgressBar(len(losses) * n_folds, "tuning", "fit", progress) as bar:
        for split in fold_splits(folds):
            train, held = split.kept, split.left_out
            yardstick = rows.yardstick(forest, held, random_state)
            for number, setting in enumerate([{}, *settings]):
                start = perf_counter()
                losses[number, held] = rows.losses(forest, setting, train, yardstick, split.fold)
                seconds[number] += perf_counter() - start
                bar.advance(1)
    row_weights = np.ones(n_rows) if weights is None else weights.astype(np.float64)
    risks = [mean_risk(row, row_weights / row_weights.sum(), clusters) for row in losses]
    return _result(forest, settings, risks, seconds)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of a tuning, dealt out by their places."""

    X: Any
    y: FloatArray
    treatment: DoseArray
    sample_weight: Any
    groups: Any
    weights: Any
    clusters: IntArray

    def some(self, places: IntArray) -> dict[str, Any]:
        """What `fit` takes of some rows, beside X and y."""
        optional = {"sample_weight": self.sample_weight, "groups": self.groups}
        return {
            "treatment": self.treatment[places],
            **{
                name: _safe_indexing(checks.as_labels(each, name), places)
                for name, each in optional.items()
                if each is not None
            },
        }

    def yardstick(self, forest: Any, held: IntArray, seed: int) -> EffectYardstick:
        """What settings are judged by on the rows held out."""
        given = self.some(held)
        return fit_yardstick(
            _safe_indexing(self.X, held),
            self.y[held],
            given.pop("treatment"),
            categorical_features=getattr(forest, "categorical_features", None),
            n_jobs=getattr(forest, "n_jobs", None),
            n_folds=YARDSTICK_FOLDS,
            random_state=seed,
            **given,
        )

    def losses(
        self,
        forest: Any,
        setting: Mapping[str, Any],
        train: IntArray,
        yardstick: EffectYardstick,
        fold: int,
    ) -> FloatArray:
        """Losses of one setting on the rows held out, (n_held,)."""
        model = clone(forest, safe=False).set_params(**{**_quiet(forest), **setting})
        density = getattr(model, "density", "auto")  # a setting may have its own
        if isinstance(density, Strata):
            labels = checks.as_labels(density.labels, "labels")
            model.set_params(density=Strata(labels[train]))
        elif not is_estimated(density) and not callable(density):
            model.set_params(density=np.asarray(density)[train])
        try:
            with warnings.catch_warnings():
                if setting or fold:  # what the forest as it is warns of is said once
                    warnings.simplefilter("ignore")
                model.fit(_safe_indexing(self.X, train), self.y[train], **self.some(train))
        except ValueError as error:
            if not setting:
                raise
            raise ValueError(
                f"The 'params' parameter must have settings that can be fitted. Got {setting!r}, "
                f"of which the fit says: {error}"
            ) from error
        return yardstick.risk(model).per_row


def _quiet(forest: Any) -> dict[str, Any]:
    return {"progress": False} if "progress" in forest.get_params() else {}


def _folds(clusters: IntArray, n_folds: int, seed: int) -> IntArray:
    n_apart = len(np.unique(clusters))
    if n_apart < YARDSTICK_FOLDS * n_folds:
        raise ValueError(
            f"The 'n_folds' parameter must leave {YARDSTICK_FOLDS} rows or groups to each fold, "
            f"for the folds of the yardstick: at most {n_apart // YARDSTICK_FOLDS} of {n_apart}. "
            f"Got {n_folds} instead."
        )
    return draw_folds(clusters, n_folds, seed)


def _settings(
    forest: Any, params: Mapping[str, Sequence[Any]], n_trials: int, seed: int
) -> list[dict[str, Any]]:
    """All combinations but what the forest has, or as many as asked for, drawn one by one."""
    names, now = list(params), forest.get_params()
    own = tuple(repr(now[name]) for name in names)
    every = [
        values
        for values in islice(product(*params.values()), MOST_COMBINATIONS)
        if tuple(map(repr, values)) != own
    ]
    if not every:
        raise ValueError(
            "The 'params' parameter must have a setting that the forest does not have already. "
            f"Got {dict(params)!r} instead."
        )
    if len(every) > n_trials:
        key = stream(seed, DRAW_TRIALS, np.zeros(1, np.uint64))
        order = np.argsort(draw(key, np.arange(len(every), dtype=np.uint64)), kind="stable")
        every = [every[place] for place in np.sort(order[:n_trials])]
    return [dict(zip(names, values, strict=True)) for values in every]


def _result(
    forest: Any, settings: list[dict[str, Any]], risks: list[EffectRisk], seconds: FloatArray
) -> Tuning:
    gaps = [risk.minus(risks[0]) for risk in risks]
    trials = tuple(
        Trial(setting, risk.value, Estimate(gap.value, gap.standard_error), float(spent))
        for setting, risk, gap, spent in zip([{}, *settings], risks, gaps, seconds, strict=True)
    )
    reach = NormalDist().inv_cdf(1 - LEVEL / len(settings))  # for all of them at once
    better = [
        trial
        for trial in trials[1:]
        if trial.difference.value < -reach * trial.difference.standard_error
    ]
    best = min(better, key=lambda trial: trial.risk, default=trials[0])
    chosen = clone(forest, safe=False).set_params(**best.params)
    return Tuning(trials, dict(best.params), chosen)
