"""How much worse the curves get when a feature's values are shuffled between the units."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimates
from doseforest.doses.grids import check_count
from doseforest.engine.forest import UnseenRowsWarning
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.estimator.averages.average_curves import average_of_units
from doseforest.estimator.corrections.projection import Projection, fit_projection
from doseforest.estimator.fit_plan import FitPlan, fold_numbers
from doseforest.estimator.out_of_bag import changed_curves
from doseforest.estimator.trained_parts import TrainedPart, out_of_bag
from doseforest.estimator.treatment_means import treatment_means
from doseforest.evaluation.risks import effect_losses
from doseforest.nuisance.treatment.conditional_means import cross_fit_means


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PermutationImportance(Estimates):
    """Rise of the curves' R-risk when a feature is shuffled; it prints as a table.

    Attributes
    ----------
    values : array of shape (n_features,)
        Means over repeats; they may be below 0 by noise.
    standard_errors : array of shape (n_features,)
        For other rows and shuffles, by groups.
    degrees : float or array of shape (n_features,)
        Degrees of freedom of the standard errors.
    repeat_standard_errors : array of shape (n_features,)
        For other shuffles of the same rows, or NaN.
    risk : float
        R-risk without a shuffle; what no curve explains, mostly noise.
    n_repeats : int
        Shuffles of each feature.
    names : tuple of str or None
        Names of the features, where the training table had them.

    Examples
    --------
    >>> rises, errors = np.array([0.1, 2.0]), np.array([0.1, 0.2])
    >>> PermutationImportance(rises, errors, errors / 2, 4.0, 5, ("age", "income")).ranked()
    [('income', 2.0), ('age', 0.1)]
    """

    repeat_standard_errors: FloatArray  # (n_features,)
    risk: float
    n_repeats: int
    names: tuple[str, ...] | None

    def ranked(self) -> list[tuple[str, float]]:
        """Names and values, the most important first.

        Returns
        -------
        list of (str, float)
            Features; x[0] stands for the first one where features have no names.
        """
        order = np.argsort(-self.values, kind="stable")
        return [(feature_label(self.names, int(f)), float(self.values[f])) for f in order]

    def _labels(self) -> list[str]:
        return [feature_label(self.names, feature) for feature in range(len(self.values))]


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """What curves of the training rows are judged by."""

    projection: Projection
    functions: FloatArray  # (n_rows, n_functions) of the observed doses
    means: FloatArray  # (n_rows, n_functions) of these functions given the covariates
    y: FloatArray  # (n_rows,)
    y_mean: FloatArray  # (n_rows,) of the outcomes given the covariates

    def losses(self, curves: FloatArray) -> FloatArray:
        """Loss of each row of curves at the projection's nodes."""
        coefficients = self.projection.coefficients(curves)
        return effect_losses(
            (self.functions * coefficients).sum(axis=1),
            (self.means * coefficients).sum(axis=1),
            self.y,
            self.y_mean,
        )


def permutation_importance(
    parts: tuple[TrainedPart, ...], plan: FitPlan, *, n_repeats: int, seed: int
) -> PermutationImportance:
    """Shuffle every feature in turn; see `doseforest.evaluation.effect_importance`.

    The functions of the dose that a correction is made of stand for the curves. Their means given
    the covariates are estimated once, so a shuffled curve costs no fit.
    """
    check_count(n_repeats, 1, "n_repeats")
    check_count(seed, 0, "random_state")
    rows = parts[0].rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenRowsWarning)  # said at fit
        judge = _judge(parts, plan)
        own = judge.losses(_curves(parts, plan, judge, rows.X))
        values, errors, repeat_errors = np.empty((3, rows.X.shape[1]))
        for feature in range(rows.X.shape[1]):
            rises = np.empty((n_repeats, rows.n_rows))
            for repeat in range(n_repeats):
                shuffled = rows.X.copy()
                order = np.random.default_rng([seed, feature, repeat]).permutation(rows.n_rows)
                shuffled[:, feature] = rows.X[order, feature]
                rises[repeat] = judge.losses(_curves(parts, plan, judge, shuffled)) - own
            result = average_of_units(rises.mean(axis=0)[:, None], rows.weights, rows.ids)
            values[feature], errors[feature] = result.values[0], result.standard_errors[0]
            repeat_errors[feature] = _error_over(np.average(rises, axis=1, weights=rows.weights))
    return PermutationImportance(
        values,
        errors,
        repeat_errors,
        float(np.average(own, weights=rows.weights)),
        int(n_repeats),
        rows.names,
    )


def _judge(parts: tuple[TrainedPart, ...], plan: FitPlan) -> _Judge:
    rows = parts[0].rows
    folds = fold_numbers(rows.ids, plan)
    projection = fit_projection(plan.basis, rows.dose, rows.weights)
    functions = plan.basis.evaluate(rows.dose.values)[:, 1:]
    shared: dict[str, Any] = {
        "weights": rows.weights,
        "seed": plan.seed,
        "n_threads": plan.n_threads,
    }
    means = treatment_means(rows, folds, plan).values
    curves, observed = out_of_bag(parts, projection.nodes)
    residual = (rows.y - observed)[:, None]
    counts = rows.category_counts()
    left = cross_fit_means(rows.X, residual, folds, counts=counts, **shared)[:, 0]
    # The curves know more of the outcomes' means than a model of the outcomes alone would.
    level = observed - ((functions - means) * projection.coefficients(curves)).sum(axis=1)
    return _Judge(projection, functions, means, rows.y, level + left)


def _curves(
    parts: tuple[TrainedPart, ...], plan: FitPlan, judge: _Judge, X: FloatArray
) -> FloatArray:
    return changed_curves(parts, X, judge.projection.nodes, plan.n_threads)


def _error_over(repeats: FloatArray) -> float:
    if len(repeats) == 1:
        return float("nan")
    return float(repeats.std(ddof=1) / np.sqrt(len(repeats)))
