"""The default estimator and the kernel forms with one part switched off or replaced at a time.

The variants of a draw share what they do not change: rows, folds, outcome models, means of the
dose functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import doseforest
from bench.designs import Simulation
from doseforest.base.dtypes import CHANNEL_DTYPE, Array, FloatArray, IntArray
from doseforest.corrections import CORRECTIONS
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.doses.bases.polynomials import Legendre
from doseforest.doses.curve_effects import CurveEffects, dose_table, each_its_own
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.estimator.corrections.fitted_correction import FittedCorrection
from doseforest.estimator.corrections.kernel_curves import PublishedCorrection
from doseforest.estimator.corrections.kernel_growth import KernelSettings, grow_curves
from doseforest.estimator.corrections.orthogonal import OrthogonalSettings, fit_orthogonal
from doseforest.estimator.corrections.published_kernels import doubly_robust_curves
from doseforest.estimator.corrections.shape_stack import ShapeStack, stack_shapes
from doseforest.estimator.corrections.stabilized_kernels import residual_weights
from doseforest.estimator.effect_forest import CorrectedOutcome
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.trained_parts import no_correction
from doseforest.estimator.training_rows import TrainingRows
from doseforest.estimator.treatment_means import treatment_means
from doseforest.estimator.weighting import conditional_density, weigh_treatments
from doseforest.nuisance.cross_fit import FoldModels
from doseforest.nuisance.outcome.boosting import PLAIN_TREES, fit_boosting
from doseforest.nuisance.outcome.cross_fitted_outcome import CrossFittedOutcome, cross_fit_outcome
from doseforest.nuisance.outcome.mixtures import convex_weights
from doseforest.nuisance.outcome.outcome_models import OutcomeModel
from doseforest.nuisance.outcome.outcome_stack import member_fit
from doseforest.nuisance.outcome.spline_core import fit_spline_core
from doseforest.nuisance.treatment.chained import joint_support

DEFAULT = "the default"
NO_FORESTS = "outcome model alone"
STACK, SPLINES, BOOSTING = "stack", "splines alone", "boosting alone"  # outcome models
NO_POWERS = "stack without parabolas and cubics"
WITH, WITHOUT = "with parabolas and cubics", "without"  # on other slopes than the paper's
STABILIZED = "stabilised"
FORMULA = "published formula"
NOT_STABILIZED = "residual at the observed dose, not stabilised"
WEIGHTS_ALONE = "residual at the observed dose, stabilised weights"
KERNEL = "kernel"


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """A fit's rows and plan, and one of its outcome models."""

    rows: TrainingRows
    plan: FitPlan
    outcome: CrossFittedOutcome
    means: FloatArray  # (n_rows, n_functions - 1) of the dose functions given the covariates

    @property
    def n_trees(self) -> int:
        """Trees of all leaf sizes."""
        return self.plan.growth.n_trees * self.plan.correction.n_sizes


class VariantCurves(CurveEffects):
    """A corrected outcome model with the effect API."""

    def __init__(self, outcome: OutcomeModel, fitted: FittedCorrection) -> None:
        self.corrected = CorrectedOutcome(outcome, fitted.correction)

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Curves of units, shape (n_units, n_doses)."""
        table = dose_table(doses, len(X)).values
        asked = table if each_its_own(doses) else table[0]
        correct = self.corrected.correction
        return correct.curves(self.corrected.outcome, X, X, asked, 1)


def train(data: Simulation, seed: int, n_trees: int = 400) -> tuple[Any, Trained]:
    """Fit the default; also what its variants start from."""
    forest = doseforest.GeneralizedCausalForest(n_trees, random_state=seed, n_jobs=1)
    forest.fit(data.X, data.y, treatment=data.treatment)
    (part,), plan = forest._fitted.parts, forest._fitted.plan
    means = treatment_means(part.rows, part.outcome.folds, plan).values
    return forest, Trained(part.rows, plan, part.outcome, means)


def with_outcome(trained: Trained, fit: Callable[..., Mapping[str, OutcomeModel]]) -> Trained:
    """The same rows and folds with another outcome model."""
    rows, plan = trained.rows, trained.plan
    folds = trained.outcome.folds[None]
    outcome = cross_fit_outcome(fit, rows.X, rows.dose.values, rows.y, folds, seed=plan.seed)
    return replace(trained, outcome=outcome)


def splines_alone(
    X: FloatArray, dose: FloatArray, y: FloatArray, *, n_threads: int, **shared: Any
) -> dict[str, OutcomeModel]:
    """The first member of the stack."""
    return {SPLINES: fit_spline_core(X, dose, y, **shared)}


def boosting_alone(
    X: FloatArray, dose: FloatArray, y: FloatArray, **shared: Any
) -> dict[str, OutcomeModel]:
    """The last member of the stack."""
    return {BOOSTING: fit_boosting(X, dose, y, PLAIN_TREES, **shared)}


def sieve(
    trained: Trained,
    basis: FittedBasis | None = None,
    means: FloatArray | None = None,
    **other: Any,
) -> FittedCorrection:
    """The orthogonal correction with other settings, basis or means."""
    plan = trained.plan
    settings = OrthogonalSettings(
        growth=plan.growth,
        seed=plan.seed,
    )
    if basis is None:
        basis, means = plan.basis, trained.means if means is None else means
    return fit_orthogonal(
        trained.rows,
        trained.outcome,
        basis,
        replace(settings, **other),
        treatment_means=means,
        n_threads=1,
    )


def not_residualised(trained: Trained) -> FittedCorrection:
    """Dose functions less their mean over all rows, not given the covariates."""
    functions = trained.plan.basis.evaluate(trained.rows.dose.values)[:, 1:]
    return sieve(trained, means=np.tile(functions.mean(axis=0), (len(functions), 1)))


def other_basis(trained: Trained, n_functions: int) -> FittedCorrection:
    """As many polynomials of the dose."""
    recipe = Legendre(n_functions, masses="auto")
    return sieve(trained, basis=recipe.fit(trained.rows.dose.values, trained.rows.weights))


def one_leaf_size(trained: Trained, size: int) -> FittedCorrection:
    """All trees with leaves of one size."""
    growth = replace(trained.plan.growth, n_trees=trained.n_trees)
    return sieve(trained, leaf_sizes=(size,), growth=growth)


def dishonest(trained: Trained) -> FittedCorrection:
    """Leaves filled by the rows that grew them."""
    return sieve(trained, growth=replace(trained.plan.growth, honesty="none"))


def not_cross_fitted(trained: Trained) -> FittedCorrection:
    """Residuals of models that have seen the rows."""
    rows, full = trained.rows, trained.outcome.full
    n_models = len(trained.outcome.repeats[0].models)
    seen = FoldModels(trained.outcome.folds, (full,) * n_models, full)
    outcome = CrossFittedOutcome(full, {}, (seen,), full.predict(rows.X, rows.dose.values))
    return sieve(replace(trained, outcome=outcome))


def best_alone(
    shapes: FloatArray,
    target: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> ShapeStack:
    """The candidate with the smallest risk, or none, in place of a stack."""
    risks = np.average((target[:, None] - shapes) ** 2, axis=0, weights=weights)
    risk = float(np.average(target**2, weights=weights))
    shares = np.zeros(len(risks))
    shares[int(risks.argmin())] = float(risks.min() < risk)
    return ShapeStack(shares, 1.0, np.nan, risk, min(risk, float(risks.min())))


def not_shrunk(
    shapes: FloatArray,
    target: FloatArray,
    *,
    weights: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> ShapeStack:
    """Shares that add up to at most 1, however sure their gain is."""
    stack = stack_shapes(shapes, target, weights=weights, clusters=clusters)
    nothing = np.zeros((len(target), 1))  # takes the rest of a sum that is held to 1
    shares = convex_weights(np.hstack([shapes, nothing]), target, weights)[:-1]
    return replace(stack, shares=shares, strength=1.0)


SIEVE_VARIANTS: dict[str, Callable[[Trained], FittedCorrection]] = {
    DEFAULT: sieve,
    NO_FORESTS: lambda trained: no_correction(),
    "basis not residualised": not_residualised,
    "best candidate, not a stack": lambda trained: sieve(trained, stack=best_alone),
    "no shrinkage": lambda trained: sieve(trained, stack=not_shrunk),
    "one round": lambda trained: sieve(trained, n_rounds=1),
    "three rounds": lambda trained: sieve(trained, n_rounds=3),
    "not honest": dishonest,
    "leaves of 5 only": lambda trained: one_leaf_size(trained, 5),
    "leaves of 50 only": lambda trained: one_leaf_size(trained, 50),
    "a line of the dose": lambda trained: other_basis(trained, 2),
    "4 functions of the dose": lambda trained: other_basis(trained, 4),
    "11 functions of the dose": lambda trained: other_basis(trained, 11),
    "no cross-fitting": not_cross_fitted,
}


def kernel_form(trained: Trained, correction: str = "stabilized", **other: Any) -> FittedCorrection:
    """A kernel correction with other fields of its object, or of the plan."""
    recipe: Any = CORRECTIONS[correction]
    names = {field.name for field in fields(recipe)} & other.keys()
    recipe = replace(recipe, **{name: other.pop(name) for name in names})
    growth = replace(trained.plan.growth, n_trees=trained.n_trees // recipe.n_sizes)
    plan = replace(trained.plan, growth=growth, **other)
    fitted: FittedCorrection = recipe.fit(trained.rows, trained.outcome, plan)
    return fitted


def times_rule(trained: Trained, factor: float) -> FittedCorrection:
    """A bandwidth of so many times the rule of thumb; the default has 2."""
    rule = rule_of_thumb(trained.rows.dose, "epanechnikov", trained.rows.weights)
    return kernel_form(trained, bandwidth=factor * rule)


def residual_at_observed_dose(trained: Trained) -> FittedCorrection:
    """mu-hat(t, X) + K_h(T - t) / pi-hat(T | X) (Y - mu-hat(T, X)): not yet stabilised."""
    rows, grid = trained.rows, trained.plan.grid
    density = conditional_density(rows, trained.plan).observed
    said = doubly_robust_curves(
        np.zeros((rows.n_rows, len(grid))),
        rows.dose.values,
        rows.y - trained.outcome.observed,
        grid,
        np.tile(density[:, None], (1, len(grid))),
        kernel="epanechnikov",
        bandwidth=rule_of_thumb(rows.dose, "epanechnikov", rows.weights),
        masses=[own.masses for own in joint_support(rows.dose, rows.weights)],
    )
    return mean_curves(trained, said)


def stabilised_weights_alone(trained: Trained) -> FittedCorrection:
    """mu-hat(t, X) + W (Y - mu-hat(T, X)), with the stabilised form's W and nothing else of it.

    One leaf size, the bandwidth of the rule, means of curves in the leaves, no safety net.
    """
    rows, plan = trained.rows, trained.plan
    residual = rows.y - trained.outcome.observed
    bandwidth = rule_of_thumb(rows.dose, "epanechnikov", rows.weights)
    weights = weigh_treatments(rows, residual, plan).chosen.r
    smoothers = residual_weights(
        rows.dose.values, plan.grid, bandwidth, "epanechnikov", weights, rows.weights
    )
    return mean_curves(trained, smoothers * residual[:, None])


def mean_curves(trained: Trained, said: Array) -> FittedCorrection:
    """A forest grown on curves of mu-hat plus what residuals say; its mean curves answer."""
    rows, plan = trained.rows, trained.plan
    curves = trained.outcome.curves_out_of_fold(rows.X, plan.grid) + said
    curves = curves.astype(CHANNEL_DTYPE)
    growth = replace(plan.growth, n_trees=trained.n_trees)
    settings = KernelSettings(growth=growth, seed=plan.seed)
    forest = grow_curves(rows, curves, curves, plan.grid, settings, settings.leaf_sizes[0])
    return replace(no_correction(), correction=PublishedCorrection(plan.grid, forest.forest))


KERNEL_VARIANTS: dict[str, Callable[[Trained], FittedCorrection]] = {
    STABILIZED: kernel_form,
    FORMULA: lambda trained: kernel_form(trained, "kernel"),
    NOT_STABILIZED: residual_at_observed_dose,
    WEIGHTS_ALONE: stabilised_weights_alone,
    "weights: none": lambda trained: kernel_form(trained, density="none"),
    "weights: location-scale": lambda trained: kernel_form(trained, density="location_scale"),
    "weights: entropy balancing": lambda trained: kernel_form(trained, density="entropy"),
    "weights: permutation": lambda trained: kernel_form(trained, density="permutation"),
    "distance L1": lambda trained: kernel_form(trained, distance="l1"),
    "distance Linf": lambda trained: kernel_form(trained, distance="linf"),
    "Gaussian kernel": lambda trained: kernel_form(trained, kernel="gaussian"),
    "uniform kernel": lambda trained: kernel_form(trained, kernel="uniform"),
    "bandwidth: rule of thumb": lambda trained: times_rule(trained, 1.0),
    "bandwidth: 4 times the rule": lambda trained: times_rule(trained, 4.0),
    "bandwidth: left-one-out": lambda trained: kernel_form(trained, bandwidth="leave_one_out"),
}


GROUPS: dict[str, tuple[str, ...]] = {
    STACK: tuple(SIEVE_VARIANTS),
    BOOSTING: tuple(SIEVE_VARIANTS),
    NO_POWERS: (DEFAULT, NO_FORESTS),
    SPLINES: (DEFAULT, NO_FORESTS),
    KERNEL: tuple(KERNEL_VARIANTS),
}
POWERS_SWITCHED = {WITH: (DEFAULT, NO_FORESTS), WITHOUT: (DEFAULT, NO_FORESTS)}


def without_powers(stacked: Trained) -> Trained:
    """The same rows and folds with a stack whose core has no parabolas and cubics."""
    return with_outcome(stacked, member_fit("stack", powers=False))


def fit_powers(data: Simulation, seed: int) -> dict[str, CurveEffects]:
    """The default and its outcome model with and without powers, by "group: variant"."""
    _, stacked = train(data, seed)
    trained = {WITH: stacked, WITHOUT: without_powers(stacked)}
    return {
        f"{group}: {name}": variant_curves(trained[group], name)
        for group, names in POWERS_SWITCHED.items()
        for name in names
    }


def fit_variants(data: Simulation, seed: int) -> dict[str, CurveEffects]:
    """Every variant of every group, by "group: variant"."""
    _, stacked = train(data, seed)
    boosted = with_outcome(stacked, boosting_alone)
    trained = {
        STACK: stacked,
        BOOSTING: boosted,
        NO_POWERS: without_powers(stacked),
        SPLINES: with_outcome(stacked, splines_alone),
        KERNEL: boosted,
    }
    return {
        f"{group}: {name}": variant_curves(trained[group], name)
        for group, names in GROUPS.items()
        for name in names
    }


def variant_curves(own: Trained, name: str) -> VariantCurves:
    """One variant on one outcome model."""
    return VariantCurves(own.outcome.full, {**SIEVE_VARIANTS, **KERNEL_VARIANTS}[name](own))
