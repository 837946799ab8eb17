"""What models are selected by, one line each in `METRICS`; the higher the better.

A metric looks at held-out rows once, before any model, and then scores each model on them; scores
carry the influence of every row, so that models can be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.evaluation.dose_scores import DoseScores, randomised_scores, robust_scores
from doseforest.evaluation.predicted_curves import predicted_curves
from doseforest.evaluation.qini.budgeted_qini import budgeted_qini
from doseforest.evaluation.qini.qini_table import qini_table
from doseforest.evaluation.risks import fit_yardstick
from doseforest.evaluation.row_estimates import RowEstimate, mean_of_rows

Judge = Callable[[Any], RowEstimate]  # of a fitted model


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """Rows that no candidate has seen, and what is known of them."""

    X: Any  # (n_rows, n_features)
    y: FloatArray  # (n_rows,)
    treatment: FloatArray  # (n_rows,) or (n_rows, n_components)
    doses: FloatArray  # (n_doses,) or (n_doses, n_components), without the baseline
    baseline: Any
    groups: IntArray | None  # (n_rows,)
    propensity: FloatArray | None  # (n_rows,) of each row's own dose
    cost: FloatArray | None  # (n_rows, 1 + n_doses), the baseline's first
    budget: float | None
    scores: DoseScores | None  # given for these rows
    randomised: bool
    score_options: dict[str, Any]
    random_state: int
    n_jobs: int | None

    @property
    def grid(self) -> FloatArray:
        """The baseline and the doses."""
        return np.concatenate([np.asarray(self.baseline, np.float64)[None], self.doses])

    def dose_scores(self) -> DoseScores:
        """Scores at the baseline and the doses."""
        if self.scores is not None:
            return self.scores
        if self.randomised:
            return randomised_scores(self.y, self.treatment, self.grid, propensity=self.propensity)
        return robust_scores(
            self.X,
            self.y,
            self.treatment,
            self.grid,
            groups=self.groups,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            **({} if self.propensity is None else {"density": self.propensity})
            | self.score_options,
        )

    def costs(self) -> FloatArray:
        """Costs, which must have been given."""
        if self.cost is None:
            raise ValueError("The 'cost' parameter must be given for metric='budgeted_qini'.")
        return self.cost


@dataclass(frozen=True, slots=True)
class Metric:
    """A way to judge models."""

    name: str  # in tables
    prepare: Callable[[HeldOutRows], Judge]
    zero_is_chance: bool  # whether a score of 0 is what a model without any knowledge has


def qini(rows: HeldOutRows) -> Judge:
    """Mean Qini score over the doses."""
    scores = rows.scores
    if scores is None and not rows.randomised:
        scores = rows.dose_scores()

    def judge(model: Any) -> RowEstimate:
        table = qini_table(
            {"model": model},
            rows.X,
            rows.y,
            rows.treatment,
            doses=rows.doses,
            baseline=rows.baseline,
            propensity=None if scores is not None else rows.propensity,
            scores=scores,
            groups=rows.groups,
        )
        return table.mean("model")

    return judge


def budgeted(rows: HeldOutRows) -> Judge:
    """Mean gain beyond that without a model, over budgets."""
    scores, costs, grid = rows.dose_scores(), rows.costs(), rows.grid

    def judge(model: Any) -> RowEstimate:
        return budgeted_qini(
            None,
            None,
            predicted_curves(model, rows.X, grid),
            costs,
            doses=grid,
            budget=rows.budget,
            scores=scores,
            groups=rows.groups,
        ).estimate

    return judge


def policy_value(rows: HeldOutRows) -> Judge:
    """Mean outcome, less cost, where every unit gets the dose of highest predicted value."""
    scores, grid = rows.dose_scores().values, rows.grid
    costs = np.zeros(scores.shape) if rows.cost is None else rows.cost

    def judge(model: Any) -> RowEstimate:
        chosen = np.argmax(predicted_curves(model, rows.X, grid) - costs, axis=1)
        places = np.arange(len(chosen)), chosen
        return mean_of_rows(scores[places] - costs[places], None, rows.groups)

    return judge


def minus_r_risk(rows: HeldOutRows) -> Judge:
    """Minus the R-risk, see `fit_yardstick`."""
    yardstick = fit_yardstick(
        rows.X,
        rows.y,
        rows.treatment,
        groups=rows.groups,
        random_state=rows.random_state,
        n_jobs=rows.n_jobs,
    )

    def judge(model: Any) -> RowEstimate:
        if not hasattr(model, "dose_response"):
            raise TypeError(
                "The 'model' parameter must have a method dose_response(X, doses) for the R-risk. "
                f"Got {type(model).__name__} instead."
            )
        risk = yardstick.risk(model)
        return mean_of_rows(-risk.per_row, risk.weights, rows.groups)

    return judge


METRICS: dict[str, Metric] = {
    "qini": Metric("mean Qini score", qini, zero_is_chance=True),
    "budgeted_qini": Metric("budgeted Qini score", budgeted, zero_is_chance=True),
    "policy_value": Metric("value of the chosen doses", policy_value, zero_is_chance=False),
    "r_risk": Metric("minus R-risk", minus_r_risk, zero_is_chance=False),
}
