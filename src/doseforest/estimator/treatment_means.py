"""Means of the dose functions given the covariates: known in an experiment, else estimated.

The orthogonal correction takes them off the functions of the dose. Where the assignment is known so
are they, and nothing is estimated; rows whose assignment is not known have a model of their own,
fitted to them alone. What is left, B - E[B | X, kind of row], has mean zero given the covariates in
both kinds of rows, so that both add to the same moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.training_rows import FEWEST_ROWS, TrainingRows
from doseforest.estimator.weighting import given_density
from doseforest.nuisance.treatment.conditional_means import cross_fit_means
from doseforest.nuisance.treatment.density_registry import is_estimated
from doseforest.nuisance.treatment.known_densities import known_rows

KNOWN, PARTLY_KNOWN, ESTIMATED = "known", "partly known", "estimated"


@dataclass(frozen=True, slots=True, eq=False)
class TreatmentMeans:
    """Means of the dose functions for every row, and where they come from."""

    values: FloatArray  # (n_rows, n_functions), the constant left out
    source: str  # "known", "partly known" or "estimated"


def treatment_means(rows: TrainingRows, folds: IntArray, plan: FitPlan) -> TreatmentMeans:
    """Means E[B_k(T) | X_i] of the plan's dose functions, exact where the density is known.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from doseforest.estimator.training_rows import check_training
    >>> from doseforest.estimator.fit_plan import fit_basis
    >>> rows = check_training(np.zeros((40, 1)), np.zeros(40), np.arange(40) % 2)
    >>> shares = np.tile([0.4, 0.6], (40, 1))
    >>> plan = SimpleNamespace(density=shares, basis=fit_basis("auto", rows))
    >>> means = treatment_means(rows, np.arange(40) % 4, plan)
    >>> means.source, means.values[:2]
    ('known', array([[0.6],
           [0.6]]))
    """
    functions = plan.basis.evaluate(rows.dose.values)[:, 1:]
    everyone = np.ones(rows.n_rows, bool)
    if is_estimated(plan.density):
        return TreatmentMeans(_estimated(everyone, functions, rows, folds, plan), ESTIMATED)
    density = given_density(rows, plan.density)
    given = known_rows(density, rows.treatment_features, rows.dose.values, rows.weights)
    exact = given.means(lambda doses: plan.basis.evaluate(doses)[:, 1:])
    if exact is not None and given.known.all():
        return TreatmentMeans(exact, KNOWN)
    # Where values alone are known they do not tell the means, but the rows are of two kinds still.
    kinds = [~given.known] if exact is not None else [given.known, ~given.known]
    kinds = [kind for kind in kinds if kind.any()]
    if min(int(kind.sum()) for kind in kinds) < FEWEST_ROWS:
        kinds = [everyone]
    values = np.empty(functions.shape) if exact is None else exact
    for kind in kinds:
        values[kind] = _estimated(kind, functions, rows, folds, plan)
    return TreatmentMeans(values, ESTIMATED if exact is None else PARTLY_KNOWN)


def _estimated(
    kind: NDArray[np.bool_],
    functions: FloatArray,
    rows: TrainingRows,
    folds: IntArray,
    plan: FitPlan,
) -> FloatArray:
    """Cross-fitted means of rows of one kind, from fits to rows of that kind."""
    # A copy would change the last bits of some regressors.
    own = slice(None) if kind.all() else kind
    return cross_fit_means(
        rows.treatment_features[own],
        functions[own],
        folds[own],
        weights=None if rows.weights is None else rows.weights[own],
        regressor=plan.treatment_model,
        counts=rows.category_counts(rows.treatment_columns),
        seed=plan.seed,
        n_threads=plan.n_threads,
    )
