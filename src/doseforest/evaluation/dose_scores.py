"""Scores of the outcome of each row at each dose, whose means are averages without bias.

A score is a noisy measurement of what the unit's outcome would be: means over units that are
picked by their covariates, or by predictions made elsewhere, are about those of the outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import checked_columns, checked_weights
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.grids import check_doses
from doseforest.evaluation.qini.dose_arms import one_dose, own_chances
from doseforest.inference.heterogeneity.contrast_scores import said_by_residuals
from doseforest.inference.judged_rows import training_rows_judged


@dataclass(frozen=True, slots=True, eq=False)
class DoseScores:
    """Scores at several doses: their means estimate average outcomes, as if all rows had that dose.

    Attributes
    ----------
    doses : array of shape (n_doses,) or (n_doses, n_components)
        The doses.
    values : array of shape (n_rows, n_doses)
        Score of each row at each dose.

    Examples
    --------
    >>> scores = randomised_scores([1, 2, 3, 5], [0, 0, 1, 1], [0, 1])
    >>> scores.values
    array([[0.5, 4. ],
           [2.5, 4. ],
           [1.5, 2. ],
           [1.5, 6. ]])
    >>> float(scores.contrast(1, 0).mean())
    2.5
    >>> scores.at([1, 0]).values[0]
    array([4. , 0.5])
    """

    doses: FloatArray  # (n_doses,)
    values: FloatArray  # (n_rows, n_doses)

    def contrast(self, dose: Any, baseline: Any = 0.0) -> FloatArray:
        """Scores of the effect of one of the doses against another.

        Parameters
        ----------
        dose : dose
            One of the doses.
        baseline : dose, default=0.0
            Another one.

        Returns
        -------
        array of shape (n_rows,)
            The differences.
        """
        places = self._place(dose, "dose"), self._place(baseline, "baseline")
        difference: FloatArray = self.values[:, places[0]] - self.values[:, places[1]]
        return difference

    def at(self, doses: Any) -> DoseScores:
        """The scores at some of the doses.

        Parameters
        ----------
        doses : array of shape (n_doses,) or (n_doses, n_components)
            Some of the doses, in the order that you want.

        Returns
        -------
        DoseScores
            Theirs.
        """
        asked = np.asarray(doses, np.float64)
        return DoseScores(asked, self.values[:, [self._place(dose, "doses") for dose in asked]])

    def _place(self, dose: Any, name: str) -> int:
        doses = self.doses.reshape(len(self.doses), -1)
        same = (doses == one_dose(dose, name, doses)).all(axis=1)
        if not same.any():
            raise ValueError(
                f"The {name!r} parameter must be one of the doses that have scores. "
                f"Got {dose!r} instead."
            )
        return int(np.argmax(same))


def randomised_scores(
    y: Any, treatment: Any, doses: Any, *, propensity: Any = None, sample_weight: Any = None
) -> DoseScores:
    """Scores of an experiment: mean of the arm, plus the weighted residual of its rows.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Doses, drawn at random.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Levels that rows had.
    propensity : array of shape (n_rows,) or dict, optional
        Chance of each row's dose, or of each dose; by default the share of rows that had it.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.

    Returns
    -------
    DoseScores
        A score for each row and dose.

    Examples
    --------
    >>> randomised_scores([1, 2, 3, 5], [0, 0, 1, 1], [0, 1]).values.mean(axis=0)
    array([1.5, 4. ])
    """
    outcome = checked_columns(y, "y", len(np.asarray(y)), 1)[:, 0].astype(np.float64)
    columns = checked_columns(treatment, "treatment", len(outcome), MAX_COMPONENTS)
    columns = columns.astype(np.float64)
    levels = _levels(doses, columns)
    given = checked_weights(sample_weight, len(outcome))
    weights = np.ones(len(outcome)) if given is None else given.astype(np.float64)
    arms = np.stack([(columns == level).all(axis=1) for level in levels], axis=1)
    empty = ~(weights[:, None] * arms).any(axis=0)
    if empty.any():
        raise ValueError(
            "The 'doses' parameter must hold doses that rows of positive weight had. "
            f"Got {levels[empty][0].tolist()} instead."
        )
    chances = own_chances(propensity, columns, np.asarray(arms.any(axis=1)))
    values = np.empty(arms.shape)
    for place, arm in enumerate(arms.T):
        arm_weights = weights * arm / chances
        mean = float(arm_weights @ outcome / arm_weights.sum())
        share = arm_weights.sum() / weights.sum() if propensity is None else 1.0
        values[:, place] = mean + arm * (outcome - mean) / (chances * share)
    return DoseScores(levels[:, 0] if levels.shape[1] == 1 else levels, values)


def robust_scores(
    X: Any,
    y: Any,
    treatment: Any,
    doses: Any,
    *,
    density: Any = "auto",
    outcome_model: Any = "stack",
    sample_weight: Any = None,
    groups: Any = None,
    categorical_features: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> DoseScores:
    """Doubly robust scores, from an outcome model and treatment weights cross-fitted on the rows.

    Right where either the outcome model or the weights are; for continuous doses, by local lines.
    The rows must be others than those of the models that they score, so that no model is compared
    with its outcome model. In experiments they are sharper than `randomised_scores`.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Features, as for `GeneralizedCausalForest.fit`.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Doses to score at.
    density : str or density, default="auto"
        Density of the dose given the features, as of `GeneralizedCausalForest`. Pass that of the
        assignment where it is fixed by the experiment: weights are then exact.
    outcome_model : "stack" or regressor, default="stack"
        Model of the outcome, as of `GeneralizedCausalForest`. A single regressor is faster; what it
        misses makes scores noisier.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Labels of rows that share a fold.
    categorical_features : sequence of names or places, optional
        Columns of codes, as in `CurveForest`.
    random_state : int, default=0
        Seed of the folds and the models.
    n_jobs : int, optional
        Threads; by default every core. Never changes the result.

    Returns
    -------
    DoseScores
        A score for each row and dose.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=200, seed=0)
    >>> scores = robust_scores(
    ...     data.X, data.y, data.treatment, [1.0, 3.0], density="gaussian",
    ...     outcome_model=LinearRegression())
    >>> bool(abs(scores.contrast(3.0, 1.0).mean() - 4.0) < 1.0)  # 2 per unit of dose
    True
    """
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

    forest = GeneralizedCausalForest(
        correction="none",
        outcome_model=outcome_model,
        density=density,
        categorical_features=categorical_features,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=False,
    )
    forest.fit(X, y, treatment=treatment, sample_weight=sample_weight, groups=groups)
    return scores_of_forest(forest, doses)


def scores_of_forest(forest: Any, doses: Any) -> DoseScores:
    """Scores of a forest's own training rows, from what has not seen them.

    NaN where a row had no weight: nothing judges it.
    """
    judged = training_rows_judged(forest._fitted, "Scores of training rows")
    rows = judged.rows
    n_given = rows.n_given
    width = forest.n_components
    levels = _levels(doses, np.empty((0, width)))
    checked = check_doses(Doses.of_table(levels), forest.support_)
    forest.model_.require_levels(doses=checked)
    asked = checked.values
    weights = forest._fitted.averager.weights.r
    own = judged.curves(asked) + said_by_residuals(judged, asked, weights)
    values = np.full((n_given, len(levels)), np.nan)
    values[slice(None) if rows.given is None else rows.given] = own
    return DoseScores(levels[:, 0] if width == 1 else levels, values)


def _levels(doses: Any, columns: FloatArray) -> FloatArray:
    """Doses with a row each, (n_doses, n_components)."""
    given = np.asarray(doses, np.float64)
    levels = given[:, None] if given.ndim == 1 else given
    if levels.ndim != 2 or not len(levels) or levels.shape[1] != columns.shape[1]:
        shape = "(n_doses,)" if columns.shape[1] == 1 else f"(n_doses, {columns.shape[1]})"
        raise ValueError(
            f"The 'doses' parameter must have shape {shape}. Got shape {given.shape} instead."
        )
    if not np.isfinite(levels).all():
        raise ValueError(f"The 'doses' parameter must be finite. Got {doses!r} instead.")
    return levels
