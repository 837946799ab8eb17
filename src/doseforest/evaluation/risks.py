"""How well curves bend, judged by data alone: the R-risk on rows that the model has not seen.

An outcome is noise, a level that the covariates explain and what the dose does. The R-risk takes
the level off both the outcomes and the curves, so that a model is judged by its effects only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.base.estimates import Estimate
from doseforest.base.intervals import error_of_groups
from doseforest.base.machine import thread_count
from doseforest.data import checks
from doseforest.data.categories import learn_categories
from doseforest.data.feature_table import BlockSource, as_table, categories_of
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.grids import FEW_LEVELS, check_count, dose_sample
from doseforest.evaluation.effect_errors import CurveModel
from doseforest.nuisance.cross_fit import HELD_OUT, draw_folds
from doseforest.nuisance.encoding.category_encoding import fit_encoder
from doseforest.nuisance.outcome.boosting import LINEAR_TREES, PLAIN_TREES, fit_boosting
from doseforest.nuisance.outcome.cross_fitted_outcome import cross_fit_outcome
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.treatment.conditional_means import cross_fit_means

N_CELLS = {1: 10, 2: 4, 3: 3}  # of a quantity, with equal shares of the rows, by components
LEAST_CHANCE = 1e-6  # of a cell, before they are made to add up to 1


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EffectRisk(Estimate):
    """Mean squared error of a model's shape at the observed doses, noise included.

    Only differences mean something: `first.minus(second)` has the standard error of the comparison.

    Attributes
    ----------
    value : float
        The risk; less is better.
    standard_error : float
        Standard error of the risk.
    degrees : float
        Degrees of freedom of the standard error.
    per_row : array of shape (n_rows,)
        Squared errors.
    weights : array of shape (n_rows,)
        Weights of the rows, of sum 1.
    clusters : array of int of shape (n_rows,)
        Rows that are not independent share a number.

    Examples
    --------
    >>> first = EffectRisk(1.0, 0.1, per_row=np.array([0.9, 1.1]), weights=np.full(2, 0.5),
    ...                    clusters=np.arange(2))
    >>> first.minus(first).value
    0.0
    """

    per_row: FloatArray  # (n_rows,)
    weights: FloatArray  # (n_rows,)
    clusters: IntArray  # (n_rows,)

    def minus(self, other: EffectRisk) -> EffectRisk:
        """Difference to another model's risk on the same rows, paired row by row.

        What both share, the noise of the outcomes, cancels.

        Parameters
        ----------
        other : EffectRisk
            Of the same yardstick.

        Returns
        -------
        EffectRisk
            The difference; below 0 where this model is better.
        """
        same = len(self.per_row) == len(other.per_row) and all(
            np.array_equal(each, others)
            for each, others in ((self.weights, other.weights), (self.clusters, other.clusters))
        )
        if not same:
            raise ValueError(
                "The 'other' parameter must be a risk on the same rows, weights and groups. "
                f"Got one on {len(other.per_row)} rows to compare with {len(self.per_row)} instead."
            )
        return mean_risk(self.per_row - other.per_row, self.weights, self.clusters)


@dataclass(frozen=True, slots=True, eq=False)
class EffectYardstick:
    """What curves are compared with on some rows, the same for all models; see `fit_yardstick`.

    With T a row's dose and m, p estimates in which its outcome has no part, a curve f is compared
    with y - m(X) by its shape f(T, X) - sum_k p_k(X) f(t_k, X).

    Attributes
    ----------
    X : table of shape (n_rows, n_features)
        Features, as they were passed: models may want the names of columns.
    dose : array of shape (n_rows,)
        Observed doses.
    target : array of shape (n_rows,)
        Outcomes less their means given the covariates.
    cells : array of shape (n_cells,)
        Doses that stand for all.
    chances : array of shape (n_rows, n_cells)
        Chance of each of them given the covariates, of sum 1.
    weights : array of shape (n_rows,)
        Weights of the rows, of sum 1.
    clusters : array of int of shape (n_rows,)
        Rows that are not independent share a number.

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve
    >>> dose = np.array([0.0, 1.0, 0.0, 1.0])  # drawn from two levels, with an effect of 2
    >>> yardstick = EffectYardstick(
    ...     X=np.zeros((4, 1)), dose=dose, target=2 * dose - 1, cells=np.array([0.0, 1.0]),
    ...     chances=np.full((4, 2), 0.5), weights=np.full(4, 0.25), clusters=np.arange(4))
    >>> yardstick.risk(AverageCurve(lambda t: 2 * t)).value
    0.0
    """

    X: Any  # (n_rows, n_features)
    dose: DoseArray  # (n_rows,)
    target: FloatArray  # (n_rows,)
    cells: DoseArray  # (n_cells,)
    chances: FloatArray  # (n_rows, n_cells)
    weights: FloatArray  # (n_rows,)
    clusters: IntArray  # (n_rows,)

    def risk(self, model: CurveModel) -> EffectRisk:
        """Risk of a fitted model.

        Doses beyond those that the model was fitted on (its `support` or `support_`, where it has
        one) are taken for the nearest that was.

        Parameters
        ----------
        model : object with `dose_response(X, doses)`
            Fitted on other rows.

        Returns
        -------
        EffectRisk
            The risk with its standard error.
        """
        shape = self._curves(model, self.dose[:, None])[:, 0]
        shape -= (self.chances * self._curves(model, self.cells)).sum(axis=1)
        none = np.zeros(len(shape))
        losses = effect_losses(shape, none, self.target, none)
        return mean_risk(losses, self.weights, self.clusters)

    def _curves(self, model: CurveModel, doses: DoseArray) -> FloatArray:
        within = getattr(model, "support_", getattr(model, "support", None))
        asked = doses if within is None else within.clip(doses)
        curves = np.array(model.dose_response(self.X, Doses.of(asked).plain), np.float64)
        if curves.shape != (len(self.dose), doses.shape[-1]) or not np.isfinite(curves).all():
            raise ValueError(
                "The 'model' parameter must give a finite outcome for each row and dose, shape "
                f"{(len(self.dose), doses.shape[-1])}. Got shape {curves.shape} with "
                f"{int((~np.isfinite(curves)).sum())} that are not finite instead."
            )
        return curves


def fit_yardstick(
    X: Any,
    y: Any,
    treatment: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    categorical_features: Any = None,
    n_folds: int = 4,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> EffectYardstick:
    """Fit on held-out rows what models of effects are compared with; the models have no part in it.

    The chances of ten cells of the dose (or of each level, where there are few) and the mean
    outcome given the covariates come from boosting, cross-fitted on these rows. The mean outcome is
    that of a reference model of the outcome over the same chances, plus what its residuals still
    owe to the covariates: errors of the chances then cancel for a curve that is right. A function
    of the covariates alone, added to a model's curves, changes nothing.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        Features.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Rows of a group share a fold and are one draw in standard errors.
    categorical_features : sequence of names or places, optional
        Columns of codes; text and categorical columns of a frame need not be named.
    n_folds : int, default=4
        Folds of the cross-fitting. More folds leave more rows to each fit, and take longer.
    random_state : int, default=0
        Seed of the folds and of boosting.
    n_jobs : int, optional
        Threads; by default every core. Never changes the result.

    Returns
    -------
    EffectYardstick
        Its `risk` scores any number of models on the same rows.

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve, ZeroEffect
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=100, seed=0)  # a slope of 2 for everyone
    >>> yardstick = fit_yardstick(data.X, data.y, data.treatment, n_folds=2)
    >>> right, none = AverageCurve(lambda dose: 2 * dose), ZeroEffect().fit(data.X, data.y)
    >>> gap = yardstick.risk(right).minus(yardstick.risk(none))
    >>> gap.value < -3 * gap.standard_error
    True
    """
    table = as_table(X, with_categories=True)
    n_rows = table.n_rows
    outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
    columns = checks.checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS)
    dose = Doses.of_table(columns.astype(np.float64)).values
    weights = checks.checked_weights(sample_weight, n_rows)
    given = None if weights is None else weights.astype(np.float64)
    coded = learn_categories(table, categorical_features)
    features = _numbers(coded, outcome, dose, given, random_state)
    clusters = np.arange(n_rows) if groups is None else checks.group_codes(groups, n_rows)
    folds = _folds(clusters, given, n_folds, random_state)
    common: dict[str, Any] = {
        "weights": given,
        "seed": random_state,
        "n_threads": thread_count(n_jobs),
    }
    cells, inside = _cells(dose, given)
    chances = np.maximum(cross_fit_means(features, inside, folds, **common), LEAST_CHANCE)
    chances /= chances.sum(axis=1, keepdims=True)
    level = _mean_outcomes(features, dose, outcome, folds, cells, chances, common)
    row_weights = np.ones(n_rows) if given is None else given
    return EffectYardstick(
        X, dose, outcome - level, cells, chances, row_weights / row_weights.sum(), clusters
    )


def effect_risk(
    model: CurveModel,
    X: Any,
    y: Any,
    treatment: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    categorical_features: Any = None,
    n_folds: int = 4,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> EffectRisk:
    """R-risk of a fitted model on rows that it has not seen; less is better.

    To compare several models fit one yardstick with `fit_yardstick`: ``yardstick.risk(model)`` is
    this function.

    Parameters
    ----------
    model : object with `dose_response(X, doses)`
        Fitted on other rows.
    X : table of shape (n_rows, n_features)
        Features.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Labels of rows that share a fold and are one draw in standard errors.
    categorical_features : sequence of names or places, optional
        Columns of codes; text and categorical columns of a frame need not be named.
    n_folds : int, default=4
        Folds of the yardstick. More folds leave more rows to each fit, and take longer.
    random_state : int, default=0
        Seed of the folds and of boosting.
    n_jobs : int, optional
        Threads; by default every core. Never changes the result.

    Returns
    -------
    EffectRisk
        The risk with its standard error.

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=60, seed=0)  # a slope of 2 for everyone
    >>> rows = data.X, data.y, data.treatment
    >>> right = effect_risk(AverageCurve(lambda dose: 2 * dose), *rows, n_folds=2)
    >>> wrong = effect_risk(AverageCurve(lambda dose: -2 * dose), *rows, n_folds=2)
    >>> right.value < wrong.value
    True
    """
    yardstick = fit_yardstick(
        X,
        y,
        treatment,
        sample_weight=sample_weight,
        groups=groups,
        categorical_features=categorical_features,
        n_folds=n_folds,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return yardstick.risk(model)


def effect_losses(
    curve_at_dose: FloatArray,
    curve_mean_given_x: FloatArray,
    y: FloatArray,
    y_mean_given_x: FloatArray,
) -> FloatArray:
    """Loss of each row: squared error of its curve's shape at its dose.

    From the outcome and from the curve what the covariates explain is taken off, so that only how
    the curve bends with the dose counts: a constant added to a unit's curve changes nothing.

    Parameters
    ----------
    curve_at_dose : array of shape (n_rows,)
        Each row's curve at its observed dose, from models that have not seen its outcome.
    curve_mean_given_x : array of shape (n_rows,)
        Mean of each row's curve over the doses that units like it have.
    y, y_mean_given_x : arrays of shape (n_rows,)
        Outcomes and their means given the covariates.

    Returns
    -------
    array of shape (n_rows,)
        The losses.

    Examples
    --------
    >>> dose, mean_dose = np.array([0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 2.0, 2.0])
    >>> effect_losses(2 * dose, 2 * mean_dose, 5 + 3 * dose, 5 + 3 * mean_dose)
    array([1., 1., 1., 1.])
    """
    arrays = {
        "curve_at_dose": curve_at_dose,
        "curve_mean_given_x": curve_mean_given_x,
        "y_mean_given_x": y_mean_given_x,
    }
    for name, values in arrays.items():
        if np.shape(values) != np.shape(y):
            raise ValueError(
                f"The {name!r} parameter must have one number per outcome ({len(y)}). "
                f"Got shape {np.shape(values)} instead."
            )
    losses: FloatArray = ((y - y_mean_given_x) - (curve_at_dose - curve_mean_given_x)) ** 2
    return losses


def mean_risk(per_row: FloatArray, weights: FloatArray, clusters: IntArray) -> EffectRisk:
    """Weighted mean of what rows bring, with a standard error that knows of clusters.

    Examples
    --------
    >>> mean_risk(np.array([1.0, 3.0]), np.array([0.5, 0.5]), np.array([0, 1]))
    2 (s.e. 1)
    """
    value = float(weights @ per_row)
    sums = np.bincount(clusters, weights=weights * (per_row - value)).astype(np.float64)
    n_drawn = int(np.count_nonzero(np.bincount(clusters, weights=weights) > 0))
    return EffectRisk(value, error_of_groups(sums, n_drawn), per_row, weights, clusters)


def _numbers(
    table: BlockSource, y: FloatArray, dose: DoseArray, weights: FloatArray | None, seed: int
) -> FloatArray:
    """The table's numbers, and numbers in place of its categories, learned out of fold."""
    values = np.concatenate([block for _, block in table.blocks()])
    counts = {column: len(labels) for column, labels in categories_of(table).items()}
    if not counts:
        return values
    doses = Doses.of(dose).table
    targets = np.column_stack([y, doses])
    return fit_encoder(values, counts, targets, doses=doses, weights=weights, seed=seed)[1]


def _folds(clusters: IntArray, weights: FloatArray | None, n_folds: int, seed: int) -> IntArray:
    """Fold of each row; those without weight are held out."""
    check_count(n_folds, 2, "n_folds")
    check_count(seed, 0, "random_state")
    seen = np.ones(len(clusters), bool) if weights is None else weights > 0
    if (n_drawn := len(np.unique(clusters[seen]))) < n_folds:
        raise ValueError(
            "The 'n_folds' parameter must be at most the number of rows (or groups) of positive "
            f"weight, {n_drawn}. Got {n_folds} instead."
        )
    folds = np.full(len(clusters), HELD_OUT)
    folds[seen] = draw_folds(clusters[seen], n_folds, seed)
    return folds


def _cells(dose: DoseArray, weights: FloatArray | None) -> tuple[DoseArray, FloatArray]:
    """Doses that stand for cells, shape (n_cells,), and the cell of each row as indicators.

    Of several components the cells are combinations of each one's.
    """
    columns = Doses.of(dose).columns
    places = [_nearest(column, weights, N_CELLS[len(columns)]) for column in columns]
    combined = np.stack([cells[nearest] for cells, nearest in places], axis=1)
    distinct, codes = np.unique(combined, axis=0, return_inverse=True)
    inside = (codes.reshape(-1, 1) == np.arange(len(distinct))).astype(np.float64)
    return Doses.of_table(distinct).values, inside


def _nearest(
    dose: FloatArray, weights: FloatArray | None, n_cells: int
) -> tuple[FloatArray, IntArray]:
    """Levels of a component, or medians of its cells, and which of them each row is nearest to."""
    sample = dose_sample(dose, weights)
    cells, _ = sample.levels()
    if len(cells) > FEW_LEVELS:
        edges = np.unique(sample.quantiles(np.arange(1, n_cells) / n_cells))
        place = np.searchsorted(edges, dose)
        cells = np.array([np.median(dose[place == cell]) for cell in np.unique(place)])
    return cells, np.argmin(np.abs(dose[:, None] - cells), axis=1)


def _mean_outcomes(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    folds: IntArray,
    cells: FloatArray,
    chances: FloatArray,
    common: Mapping[str, Any],
) -> FloatArray:
    """Mean outcome given the covariates, shape (n_rows,), see `fit_yardstick`."""
    reference = cross_fit_outcome(_reference_members, X, dose, y, folds[None], **common)
    curves = reference.curves_out_of_fold(X, cells, common["n_threads"])
    owed = cross_fit_means(X, (y - reference.observed)[:, None], folds, **common)[:, 0]
    level: FloatArray = (chances * curves).sum(axis=1) + owed
    return level


def _reference_members(
    X: FloatArray,
    dose: FloatArray,
    y: FloatArray,
    *,
    weights: FloatArray | None,
    binary: bool,
    seed: int,
    n_threads: int,
) -> Mapping[str, OutcomeModel]:
    """The quick members of the outcome stack."""
    recipes = {"linear trees": LINEAR_TREES, "trees": PLAIN_TREES}
    return {
        name: fit_boosting(
            X, dose, y, recipe, weights=weights, binary=binary, seed=seed, n_threads=n_threads
        )
        for name, recipe in recipes.items()
    }
