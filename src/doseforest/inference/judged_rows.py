"""Rows with curves that have not seen them: the training rows out of bag, or new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.data import checks
from doseforest.doses.dose_values import Doses
from doseforest.estimator.corrections.projection import fit_projection
from doseforest.estimator.fit_plan import FitPlan, fold_numbers
from doseforest.estimator.fitted import Fitted
from doseforest.estimator.trained_parts import out_of_bag
from doseforest.estimator.training_rows import TrainingRows, check_training
from doseforest.estimator.treatment_means import treatment_means
from doseforest.inference.judgeable import require_out_of_bag
from doseforest.nuisance.treatment.conditional_means import cross_fit_means
from doseforest.nuisance.treatment.density_registry import is_estimated


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRows:
    """Rows, and the curves that are judged by them."""

    rows: TrainingRows
    plan: FitPlan
    curves: Callable[[DoseArray], FloatArray]  # (n_rows, n_doses) of doses (n_doses,)
    observed: FloatArray  # (n_rows,) the curve at each row's own dose

    @property
    def residual(self) -> FloatArray:
        """Outcome less curve."""
        return self.rows.y - self.observed

    def residual_without_level(self) -> FloatArray:
        """Outcome less curve, less what the covariates still explain of it, cross-fitted.

        What depends on the covariates alone is an error of the level, which is not judged.
        """
        return self.without_level(self.residual)

    def without_level(self, values: FloatArray) -> FloatArray:
        """Values of the rows, (n_rows,), less what the covariates explain of them, cross-fitted."""
        rows, plan = self.rows, self.plan
        means = cross_fit_means(
            rows.X,
            values[:, None],
            fold_numbers(rows.ids, plan),
            weights=rows.weights,
            counts=rows.category_counts(),
            seed=plan.seed,
            n_threads=plan.n_threads,
        )
        return values - means[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class CurveShapes:
    """Curves as functions of the dose, free of what the covariates explain of them.

    A curve is sum_k c_k B_k(t); its shape at a row's own dose is sum_k c_k (B_k(T) - E[B_k | X]).
    """

    functions: FloatArray  # (n_rows, n_functions) B(T) - E[B(T) | X], the constant left out
    coefficients: FloatArray  # (n_rows, n_functions) of each row's curve
    residual: FloatArray  # (n_rows,) outcome less curve, both without their means given X

    @property
    def own(self) -> FloatArray:
        """Shape of each row's own curve, (n_rows,)."""
        shape: FloatArray = (self.functions * self.coefficients).sum(axis=1)
        return shape


def curve_shapes(judged: JudgedRows, *, of_shapes: bool = False) -> CurveShapes:
    """Shapes of the judged curves at the rows' doses; means given the covariates cross-fitted.

    With `of_shapes` residuals are those of the curves as sums of the functions of the dose: what
    the functions cannot follow of a curve would else be on both sides of a regression of outcomes
    on shapes.
    """
    rows, plan = judged.rows, judged.plan
    folds = fold_numbers(rows.ids, plan)
    projection = fit_projection(plan.basis, rows.dose, rows.weights)
    functions = plan.basis.evaluate(rows.dose.values)[:, 1:]
    at_nodes = judged.curves(projection.nodes)
    coefficients = projection.coefficients(at_nodes)
    left = judged.residual
    if of_shapes:
        shapes = coefficients @ plan.basis.evaluate(projection.nodes)[:, 1:].T
        level = (at_nodes - shapes).mean(axis=1)
        left = rows.y - level - (functions * coefficients).sum(axis=1)
    return CurveShapes(
        functions=functions - treatment_means(rows, folds, plan).values,
        coefficients=coefficients,
        residual=judged.without_level(left),
    )


def training_rows_judged(fitted: Fitted, what: str, *, or_new_rows: bool = False) -> JudgedRows:
    """The training rows with their out-of-bag curves; `what` asks for them, in errors."""
    parts, plan = fitted.parts, fitted.plan
    require_out_of_bag(plan, what, or_new_rows=or_new_rows)
    _, observed = out_of_bag(parts, plan.grid[:1])
    return JudgedRows(parts[0].rows, plan, lambda doses: out_of_bag(parts, doses)[0], observed)


def new_rows_judged(
    fitted: Fitted,
    X: Any,
    y: Any,
    treatment: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> JudgedRows:
    """Rows that the forest has not seen, with its curves for them.

    Doses beyond those of the training rows are taken for the nearest of them. What is known of
    the training rows' assignment alone, an array or strata, says nothing about other rows: their
    weights are chosen, and their means estimated, as where nothing is known.
    """
    model, trained, plan = fitted.model, fitted.rows, fitted.plan
    coded = model.checked_table(X)
    table = np.concatenate([block for _, block in coded.blocks()])
    doses = checks.checked_columns(treatment, "treatment", len(table), model.n_components)
    if doses.shape[1] != model.n_components:
        raise ValueError(
            f"The 'treatment' parameter must have {model.n_components} components, as in fit. "
            f"Got {doses.shape[1]} instead."
        )
    result = check_training(table, y, treatment, sample_weight=sample_weight, groups=groups)
    _check_folds(result, plan.n_folds, "X" if groups is None else "groups")
    rows = replace(
        result,
        names=trained.names,
        dose=Doses(model.support.clip(result.dose.values)),
        effect_columns=trained.effect_columns,
        treatment_columns=trained.treatment_columns,
        categories=trained.categories,
    )
    known = is_estimated(plan.density) or callable(plan.density)
    own_plan = plan if known else replace(plan, density="auto")
    observed = model.curves(rows.X, rows.dose.values[:, None])[:, 0]
    return JudgedRows(rows, own_plan, lambda asked: model.curves(rows.X, asked), observed)


def _check_folds(rows: TrainingRows, n_folds: int, name: str) -> None:
    """Means given the covariates are cross-fitted: every fold needs a row or group of its own."""
    n_apart, what = len(np.unique(rows.ids)), "groups" if name == "groups" else "rows"
    if n_apart < n_folds:
        raise ValueError(
            f"The {name!r} parameter must have at least as many {what} as there are folds "
            f"({n_folds}). Got {n_apart} instead."
        )
