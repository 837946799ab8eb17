"""The Qini curve of several doses at once: gain against spend when a model decides who gets what.

Sun, Du and Wager (2021): at each budget every unit gets the dose that the model's predicted values
and the costs call for, see `policy`; what that gains is measured by scores of the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.intervals import normal_quantile
from doseforest.base.late import late
from doseforest.data.checks import group_codes
from doseforest.evaluation.dose_scores import DoseScores, randomised_scores
from doseforest.evaluation.qini.scored import Scored
from doseforest.evaluation.qini.spend_paths import SpendPath, policy_path, untargeted_path
from doseforest.evaluation.row_estimates import RowEstimate, row_digest, without_rounding
from doseforest.policy.policy_inputs import checked_problem

BAND_POINTS = 20
WINDOW = 0.05  # of the budget, on either side, for what the next bit of spend brings


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BudgetedQini(Scored):
    """Gain over the baseline dose, per unit, against spend per unit.

    `score` is the mean over all budgets up to `budget` of what the model's doses gain beyond the
    best that needs no model: shares of the units drawn at random get the doses of best average
    value, as far as the budget goes. `budgeted_qini` makes it.

    Attributes
    ----------
    path : SpendPath
        Gain and spend of the model's doses.
    no_model : SpendPath
        The same of the best without a model.
    budget : float
        Largest spend, per unit.
    estimate : RowEstimate
        The score with its standard error.
    n_rows : int
        Number of rows.
    rows : str
        Digest of scores, costs and groups: only results on the same rows can be compared.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, dose = rng.uniform(size=2000), rng.integers(0, 2, 2000)
    >>> qini = budgeted_qini(x * dose, dose, np.outer(x, [0, 1]), [0, 1], doses=[0, 1])
    >>> qini.budget, qini.score > 0
    (1.0, True)
    """

    path: SpendPath = field(repr=False)
    no_model: SpendPath = field(repr=False)
    budget: float
    estimate: RowEstimate
    n_rows: int
    rows: str = field(repr=False)

    @property
    def question(self) -> str:
        """What is asked of the rows: curves with the same question can be compared."""
        return f"budget {self.budget!r} {self.rows}"

    @property
    def mean_gain(self) -> RowEstimate:
        """Mean over budgets of the gain itself."""
        return self._mean(self.path)

    def at(self, spend: Any) -> FloatArray:
        """Gain of the model's doses at a spend.

        Parameters
        ----------
        spend : float or array
            Spends per unit; beyond the end the gain is that of the model's last dose for all.

        Returns
        -------
        array of the shape of `spend`
            Gains per unit.
        """
        return self.path.at(spend)

    def untargeted(self, spend: Any) -> FloatArray:
        """Gain of the best that needs no model.

        Parameters
        ----------
        spend : float or array
            Spends per unit.

        Returns
        -------
        array of the shape of `spend`
            Gains per unit.
        """
        return self.no_model.at(spend)

    def band(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Pointwise intervals of the gain.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which each interval covers the truth.

        Returns
        -------
        spends, low, high : arrays of one shape
            Spends, and ends of the gain there, each for itself.
        """
        spends = self.budget * np.arange(1, BAND_POINTS + 1) / BAND_POINTS
        errors = np.array([self._error_at(float(spend)) for spend in spends])
        reach, middle = normal_quantile(coverage) * errors, self.at(spends)
        return spends, middle - reach, middle + reach

    def plot(self, *, label: str | None = None, ax: Any | None = None) -> Any:
        """Draw gain against spend with its 95 % band; needs the `plot` extra.

        Parameters
        ----------
        label : str, optional
            Name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.qini_plots:plot_budgeted")({label or "model": self}, ax=ax)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"Budgeted Qini score {self.score:.4g} [{low:.4g}, {high:.4g}]: mean gain per unit "
            f"beyond that without a model, over budgets up to {self.budget:.4g} per unit "
            f"({self.n_rows:,} rows)"
        )

    __repr__ = __str__

    def _mean(self, path: SpendPath) -> RowEstimate:
        value, influence = path.area(self.budget)
        return RowEstimate(value / self.budget, influence / self.budget, self.estimate.clusters)

    def _error_at(self, spend: float) -> float:
        influence = self.path.influence_at(spend, WINDOW * self.budget)
        return RowEstimate(0.0, influence, self.estimate.clusters).standard_error


def budgeted_qini(
    y: Any,
    treatment: Any,
    value: Any,
    cost: Any,
    *,
    doses: Any,
    budget: float | None = None,
    propensity: Any = None,
    scores: DoseScores | None = None,
    groups: Any = None,
) -> BudgetedQini:
    """Score a model by what its doses gain at every budget.

    Parameters
    ----------
    y, treatment : arrays of shape (n_rows,)
        Outcomes and doses of rows that the model was not fitted on; with `scores` they may be
        None.
    value : array of shape (n_rows, n_doses)
        Predicted outcome (or effect) at each dose.
    cost : array of shape (n_doses,) or (n_rows, n_doses)
        What each dose costs for each unit, fixed beforehand and the same for all models that are
        compared; the baseline, the first dose, costs least.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Doses to choose from, the baseline first.
    budget : float, optional
        Largest spend per unit beyond the baseline's; by default that of the costliest dose for
        everyone.
    propensity : array of shape (n_rows,) or dict, optional
        As for `qini_curve`.
    scores : DoseScores, optional
        At these doses, maybe at others too, as from `robust_scores`; by default
        `randomised_scores`.
    groups : array of shape (n_rows,), optional
        Rows of a group are one draw in standard errors.

    Returns
    -------
    BudgetedQini
        Gain at every spend, and the score with its standard error.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, dose = rng.uniform(size=5000), rng.integers(0, 3, 5000)
    >>> y = x * np.sqrt(dose) + 0.1 * rng.normal(size=5000)
    >>> right = np.outer(x, np.sqrt([0, 1, 2]))
    >>> qini = budgeted_qini(y, dose, right, [0, 1, 2], doses=[0, 1, 2])
    >>> qini.score > 3 * qini.standard_error
    True
    """
    problem = checked_problem(value, cost)
    n_rows, n_doses = problem.value.shape
    if scores is None:
        known = randomised_scores(y, treatment, doses, propensity=propensity)
    elif propensity is None:
        known = scores.at(doses)
    else:
        raise ValueError(
            "The 'propensity' parameter must be None with scores, which know it already. "
            f"Got {propensity!r} instead."
        )
    if known.values.shape != (n_rows, n_doses):
        raise ValueError(
            f"The 'value' parameter must have a row per outcome and a column per dose, shape "
            f"{known.values.shape}. Got shape {(n_rows, n_doses)} instead."
        )
    if not np.isfinite(known.values).all():
        row = int(np.argmin(np.isfinite(known.values).all(axis=1)))
        raise ValueError(
            "The 'scores' parameter must be finite; rows without weight have none. "
            f"Got {known.values[row].tolist()} in row {row} instead."
        )
    costs = np.asarray(problem.cost, np.float64)
    if (costs < costs[:, :1]).any():
        row = int(np.argmax((costs < costs[:, :1]).any(axis=1)))
        raise ValueError(
            "The 'cost' parameter must be least at the first dose, the baseline. "
            f"Got {costs[row].tolist()} in row {row} instead."
        )
    extra, gained = costs - costs[:, :1], known.values - known.values[:, :1]
    most = float(extra.max(axis=1).mean())
    limit = most if budget is None else _checked_budget(budget)
    if not limit > 0:
        raise ValueError("The 'cost' parameter must be above 0 for some dose. Got only zeros.")
    clusters: IntArray | None = None if groups is None else group_codes(groups, n_rows)
    path, no_model = policy_path(problem, extra, gained), untargeted_path(extra, gained)
    (own, influence), (other, others) = path.area(limit), no_model.area(limit)
    estimate = RowEstimate((own - other) / limit, (influence - others) / limit, clusters)
    estimate = without_rounding(estimate, float(np.abs(path.gains).max()))
    rows = row_digest(gained, extra, clusters)
    return BudgetedQini(path, no_model, limit, estimate, n_rows, rows)


def _checked_budget(budget: Any) -> float:
    number = isinstance(budget, int | float | np.number) and not isinstance(budget, bool)
    if not number or not 0 < budget < np.inf:
        raise ValueError(
            f"The 'budget' parameter must be a finite float above 0. Got {budget!r} instead."
        )
    return float(budget)
