"""The printed algorithm with one thing changed at a time, and the steps from it to the default.

Variants of the printed algorithm share its halves and mu-hat; the steps after it share the rows,
folds and outcome model of the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import doseforest
from bench.designs import Simulation
from bench.studies.ablation_variants import (
    DEFAULT,
    FORMULA,
    NO_FORESTS,
    NOT_STABILIZED,
    STABILIZED,
    WEIGHTS_ALONE,
    VariantCurves,
    train,
    variant_curves,
)
from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import no_correction
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome

PRINTED, STEPS = "printed", "steps"
PAPER = "paper()"
MU_HAT = "its mu-hat alone"


@dataclass(frozen=True, slots=True, eq=False)
class Printed:
    """Rows, plan and mu-hat of a fit of `paper()`."""

    rows: TrainingRows
    plan: FitPlan
    outcome: CrossFittedOutcome


def fit_printed(data: Simulation, seed: int, n_trees: int = 500) -> tuple[Any, Printed]:
    """Fit `paper()`; also what its variants start from."""
    forest = doseforest.GeneralizedCausalForest.paper(
        n_trees=n_trees,
        doses=data.doses,
        baseline=data.baseline,
        random_state=seed,
        n_jobs=1,
    )
    forest.fit(data.X, data.y, treatment=data.treatment)
    (part,) = forest._fitted.parts
    return forest, Printed(part.rows, forest._fitted.plan, part.outcome)


def printed(own: Printed, **other: Any) -> FittedCorrection:
    """Algorithm 1 with other fields of `doseforest.corrections.Paper`."""
    recipe: Any = own.plan.correction
    return replace(recipe, **other).fit(own.rows, own.outcome, own.plan)


def quarter_of_the_rule(own: Printed) -> float:
    """A quarter of the bandwidth that the rule of thumb gives to the rows that grow."""
    growing = own.rows.where(_growing(own.rows))
    return rule_of_thumb(growing.dose, own.plan.kernel, growing.weights) / 4


def one_leaf(own: Printed, **other: Any) -> FittedCorrection:
    """Trees without a split: the kernel average of everyone."""
    return printed(own, leaf_size=own.rows.n_rows, **other)


def without_linear_terms(own: Printed) -> FittedCorrection:
    """Leaves filled with outcomes less what is linear in the covariates: no confounding by these.

    The rows that grow keep their outcomes, so that the trees are the same.
    """
    rows = own.rows
    functions = own.plan.basis.evaluate(rows.dose.values)[:, 1:]
    y = less_linear_terms(rows.X, functions, rows.y)
    return printed(replace(own, rows=replace(rows, y=np.where(_growing(rows), rows.y, y))))


def less_linear_terms(X: FloatArray, functions: FloatArray, y: FloatArray) -> FloatArray:
    """Outcomes less the covariates' part of a least-squares fit on them and on dose functions.

    Examples
    --------
    >>> X = np.array([[1.0], [0.0], [1.0], [0.0]])
    >>> functions = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> less_linear_terms(X, functions, 3 * X[:, 0] + 2 * functions[:, 0]).round(6)
    array([1.5, 1.5, 3.5, 3.5])
    """
    centred = X - X.mean(axis=0)
    columns = np.column_stack([np.ones(len(X)), functions, centred])
    coefficients = np.linalg.lstsq(columns, y, rcond=None)[0]
    left: FloatArray = y - centred @ coefficients[-centred.shape[1] :]
    return left


def _growing(rows: TrainingRows) -> Any:
    assert rows.grows is not None  # Omega1 was drawn
    return rows.grows


PRINTED_VARIANTS: Mapping[str, Callable[[Printed], FittedCorrection]] = {
    PAPER: printed,
    "a quarter of the bandwidth": lambda own: printed(own, bandwidth=quarter_of_the_rule(own)),
    "bandwidth: left-one-out": lambda own: printed(own, bandwidth="leave_one_out"),
    "leaves of 50": lambda own: printed(own, leaf_size=50),
    "everyone in one leaf": one_leaf,
    "everyone in one leaf, a quarter of the bandwidth": lambda own: one_leaf(
        own, bandwidth=quarter_of_the_rule(own)
    ),
    "outcomes in leaves less linear terms of the covariates": without_linear_terms,
    "split by derivatives": lambda own: printed(own, criterion="pdrf"),
    "without sigma(pi-hat)": lambda own: printed(own, zeta=0.0),
    MU_HAT: lambda own: no_correction(),
}
LATER_STEPS = (FORMULA, NOT_STABILIZED, WEIGHTS_ALONE, STABILIZED, DEFAULT, NO_FORESTS)


def fit_steps(data: Simulation, seed: int) -> dict[str, VariantCurves]:
    """Every variant of the printed algorithm and every step after it, by "group: variant"."""
    _, own = fit_printed(data, seed)
    _, trained = train(data, seed)
    variants = {
        f"{PRINTED}: {name}": VariantCurves(own.outcome.full, variant(own))
        for name, variant in PRINTED_VARIANTS.items()
    }
    return variants | {f"{STEPS}: {name}": variant_curves(trained, name) for name in LATER_STEPS}
