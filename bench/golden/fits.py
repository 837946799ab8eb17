"""Golden fits: each is one line of `FITS`, its answers and the parts of the algorithm behind them.

A fit is small, so that all of them take half a minute. Most replace the stack of outcome models,
which takes most of the time of a fit, by a line; a few keep it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from bench.golden import data
from doseforest import CurveForest, GeneralizedCausalForest
from doseforest.baselines import (
    AverageCurve,
    KennedyCurve,
    LinearCausalForest,
    OutcomeRegressor,
    ZeroEffect,
    boosting,
    random_forest,
)
from doseforest.corrections import Orthogonal
from doseforest.engine import SplitByRatios, SplitByScores, TreatmentGuard
from doseforest.evaluation import (
    budgeted_qini,
    effect_importance,
    fit_yardstick,
    qini_table,
    randomised_scores,
    robust_scores,
)
from doseforest.inference import shaped_forest
from doseforest.policy import (
    DoseCost,
    DosePolicy,
    Explore,
    PartPrices,
    Response,
    optimize_doses,
)

Answers = dict[str, NDArray[np.float64]]


class LineWithProducts(RegressorMixin, BaseEstimator):
    """Least squares on the features, the dose and their products, zeros in place of gaps."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LineWithProducts:
        """Fit on features and dose, which is the last column."""
        self.line_ = LinearRegression().fit(self._columns(X), y, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted outcomes."""
        return self.line_.predict(self._columns(X))

    def _columns(self, X: Any) -> Any:
        filled = np.nan_to_num(X)
        return np.hstack([filled, filled[:, :-1] * filled[:, -1:]])


def small(n_jobs: int, **parameters: Any) -> GeneralizedCausalForest:
    """A forest of 60 trees on a line."""
    settings = {
        "n_trees": 60,
        "outcome_model": LineWithProducts(),
        "density": "location_scale",
        "random_state": 0,
        "n_jobs": n_jobs,
        "progress": False,
    }
    return GeneralizedCausalForest(**{**settings, **parameters})


def effect_answers(forest: Any, units: Any, dose: Any, baseline: Any) -> Answers:
    """What a fitted forest answers about units and about the population."""
    average = forest.average_effect(dose, baseline)
    corrected = forest.average_effect(dose, baseline, bias_correction=True)
    curve = forest.average_dose_response()
    return {
        "doses": np.array(np.asarray(forest.doses_).tolist(), dtype=np.float64),
        "dose_response": forest.dose_response(units),
        "effect": forest.effect(units, dose=dose, baseline=baseline),
        "supported": forest.supported(units),
        "average_effect": np.array([average.value, average.standard_error]),
        "average_effect_bias_corrected": np.array([corrected.value, corrected.standard_error]),
        "average_dose_response": np.stack([curve.values, curve.standard_errors]),
    }


# --- forests of units' curves ---------------------------------------------------------------------


def continuous_dose(n_jobs: int) -> Answers:
    own = data.continuous()
    forest = small(n_jobs, outcome_model="stack", density="auto")
    forest.fit(own.X, own.y, treatment=own.dose)
    return {
        **effect_answers(forest, own.units, 3.0, 2.0),
        "partial_effect": forest.partial_effect(own.units, 2.0, 3.0),
        "elasticity": forest.elasticity(own.units, 3.0),
        "outcome_model": forest.outcome_model_.dose_response(own.units),
        "outcome_weights": np.array(list(forest.outcome_weights_.values())),
        "feature_importance": effect_importance(forest).values,
    }


def binary_outcome(n_jobs: int) -> Answers:
    own = data.continuous(seed=11)
    forest = small(n_jobs, outcome_model="stack")
    forest.fit(own.X, (own.y > 14).astype(float), treatment=own.dose)
    return effect_answers(forest, own.units, 3.0, 2.0)


def few_levels(n_jobs: int) -> Answers:
    own, _ = data.levels()
    forest = small(n_jobs).fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 2.0, 0.0)


def point_mass_at_zero(n_jobs: int) -> Answers:
    own = data.point_mass()
    forest = small(n_jobs).fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 3.0, 0.0)


def two_doses_at_once(n_jobs: int) -> Answers:
    own = data.joint()
    forest = small(n_jobs, baseline=[2.0, 2.0], doses=[[1.0, 1.0], [2.0, 2.0], [2.0, 3.0]])
    forest.fit(own.X, own.y, treatment=own.dose)
    found = effect_answers(forest, own.units, [2.0, 3.0], [2.0, 2.0])
    return {**found, "elasticity": forest.elasticity(own.units, [2.0, 3.0], component=1)}


def arms_with_doses(n_jobs: int) -> Answers:
    own = data.arms()
    grid = [[0.0, 0.0], [1.0, 2.0], [2.0, 12.0], [2.0, 15.0]]
    forest = small(n_jobs, baseline=[0.0, 0.0], doses=grid)
    forest.fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, [2.0, 15.0], [0.0, 0.0])


def categories_and_gaps(n_jobs: int) -> Answers:
    import pandas as pd

    own = data.continuous(seed=12)
    rng = np.random.default_rng(13)
    code = rng.integers(0, 6, len(own.X))
    X = np.where(rng.random(own.X.shape) < 0.05, np.nan, own.X)
    frame = pd.DataFrame(X, columns=["age", "income", "visits", "distance"])
    frame["city"] = [
        None if gap else f"city {place}" for place, gap in zip(code, X[:, 0] > 0.9, strict=True)
    ]
    forest = small(n_jobs, outcome_model="stack")
    forest.fit(frame, own.y + code % 2 * own.dose, treatment=own.dose)
    return effect_answers(forest, frame[:8], 3.0, 2.0)


def weights_and_groups(n_jobs: int) -> Answers:
    own = data.continuous(seed=14)
    weights = np.random.default_rng(15).integers(0, 4, len(own.X)) / 2
    forest = small(n_jobs, n_repeats=2, effect_features=[0, 1], controls=[2, 3])
    groups = np.arange(len(own.X)) // 3
    forest.fit(own.X, own.y, treatment=own.dose, sample_weight=weights, groups=groups)
    return effect_answers(forest, own.units, 3.0, 2.0)


def known_propensities(n_jobs: int) -> Answers:
    own, chances = data.levels(seed=16)
    forest = small(n_jobs, density=chances).fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 2.0, 0.0)


def swapped_halves(n_jobs: int) -> Answers:
    own = data.continuous(seed=17)
    forest = small(n_jobs, honesty="swap", correction=Orthogonal(leaf_sizes=(5, 20)))
    forest.fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 3.0, 2.0)


def other_correction(n_jobs: int, **parameters: Any) -> Answers:
    own = data.continuous(seed=18)
    forest = small(n_jobs, **parameters).fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 3.0, 2.0)


def paper(n_jobs: int, **parameters: Any) -> Answers:
    own = data.continuous(seed=19)
    settings = {
        "n_trees": 60,
        "outcome_model": LineWithProducts(),
        "random_state": 0,
        "n_jobs": n_jobs,
    }
    forest = GeneralizedCausalForest.paper(**settings, **parameters, progress=False)
    forest.fit(own.X, own.y, treatment=own.dose)
    return effect_answers(forest, own.units, 3.0, 2.0)


def densities(n_jobs: int) -> Answers:
    """Treatment weights of every kind, by their average effects and weights of rows."""
    own = data.continuous(seed=20)
    found = {}
    for name in ("location_scale", "binned", "gaussian", "forest", "entropy", "permutation"):
        forest = small(n_jobs, correction="none", density=name)
        forest.fit(own.X, own.y, treatment=own.dose)
        average = forest.average_effect(3.0, 2.0)
        found[name] = np.array([average.value, average.standard_error])
        found[f"{name}_weights"] = forest.average.treatment_weights.r[:8]
    return found


# --- as a user has them by default ----------------------------------------------------------------


def defaults(n_jobs: int, make: Callable[..., Any], **parameters: Any) -> Answers:
    """Curves of an estimator whose parameters are left as they are, but for what is not measured.

    Other fits have small forests on a line: a default that changes does not show in them.
    """
    own = data.continuous(n=120, seed=26)
    model = make(**parameters, random_state=0, n_jobs=n_jobs)
    model.fit(own.X, own.y, treatment=own.dose)
    return {"dose_response": model.dose_response(own.units, np.array([1.0, 2.0, 3.0, 4.0]))}


def regressions(n_jobs: int) -> Answers:
    """Regressions of the outcome on features and dose."""
    models = {
        "random_forest": random_forest,
        "boosting": boosting,
        "stopped_boosting": lambda **settings: boosting(100, early_stopping=True, **settings),
    }
    own = data.continuous(n=120, seed=27)
    return {
        name: make(random_state=0)
        .fit(own.X, own.y, treatment=own.dose)
        .dose_response(own.units, np.array([1.0, 2.0, 3.0, 4.0]))
        for name, make in models.items()
    }


def reference_curves(n_jobs: int) -> Answers:
    """Curves that all units share."""
    own, grid = data.continuous(n=120, seed=27), np.array([1.0, 2.0, 3.0, 4.0])
    models = {"average": AverageCurve(np.square), "zero": ZeroEffect()}
    return {
        name: model.fit(own.X, own.y, treatment=own.dose).dose_response(own.units, grid)
        for name, model in models.items()
    }


# --- how models are compared ----------------------------------------------------------------------


def comparisons(n_jobs: int) -> Answers:
    """R-risk and Qini scores of two regressions, where no truth is known."""
    own, _ = data.levels(seed=28)
    grid = np.array([0.0, 1.0, 2.0, 4.0])
    models = {
        "line": OutcomeRegressor(LineWithProducts()).fit(own.X, own.y, treatment=own.dose),
        "level": OutcomeRegressor(LinearRegression()).fit(
            own.X[::2], own.y[::2], treatment=own.dose[::2]
        ),
    }
    yardstick = fit_yardstick(own.X, own.y, own.dose, random_state=0, n_jobs=n_jobs)
    table = qini_table(models, own.X, own.y, own.dose, doses=[1.0, 2.0], baseline=0.0)
    curves = models["line"].dose_response(own.X, grid)
    cost = np.outer(1 + (own.X[:, 2] > 0), grid)
    robust = robust_scores(
        own.X,
        own.y,
        own.dose,
        grid,
        outcome_model=LineWithProducts(),
        random_state=0,
        n_jobs=n_jobs,
    )
    found = {
        "randomised": randomised_scores(own.y, own.dose, grid).values[:8],
        "robust": robust.values[:8],
    }
    for name, model in models.items():
        risk, mean = yardstick.risk(model), table.mean(name)
        found[name] = np.array([risk.value, risk.standard_error, mean.value, mean.standard_error])
    budgeted = budgeted_qini(own.y, own.dose, curves, cost, doses=grid)
    found["budgeted"] = np.array([budgeted.score, budgeted.standard_error])
    return found


# --- intervals and tests --------------------------------------------------------------------------


def intervals_by_bags(n_jobs: int) -> Answers:
    own = data.continuous(seed=21)
    forest = small(n_jobs, inference="bags").fit(own.X, own.y, treatment=own.dose)
    found = forest.intervals.effect(own.units, doses=[2.0, 3.0, 3.5], baseline=2.5)
    return {
        "estimate": found.values,
        "standard_error": found.standard_errors,
        "interval": np.stack(found.interval(0.95)),
        "band": np.stack(found.band(0.9)),
        "effect_interval": np.stack(forest.effect_interval(own.units, 3.0, 2.0)),
        "elasticity_interval": np.stack(forest.intervals.elasticity(own.units, 3.0).interval()),
    }


def changes_and_tests(n_jobs: int) -> Answers:
    own = data.continuous(seed=22)
    forest = small(n_jobs).fit(own.X, own.y, treatment=own.dose)
    slope, moved = forest.average.derivative(), forest.average.shift_effect(0.25)
    line = forest.average.best_linear_projection([0, 1], dose=3.0, baseline=2.0)
    calibration = forest.tests.calibration()
    heterogeneity = forest.tests.heterogeneity()
    ranked = forest.tests.rate(3.0, 2.0, n_bootstrap=50)
    shape = forest.tests.shape("increasing", n_draws=500)
    doubt = forest.tests.sensitivity(2.0, 3.0)
    return {
        "average_derivative": np.array([slope.value, slope.standard_error]),
        "shift_effect": np.array([moved.value, moved.standard_error]),
        "best_linear_projection": np.stack([line.values, line.standard_errors]),
        "calibration": np.stack([calibration.values, calibration.standard_errors]),
        "heterogeneity": np.array([heterogeneity.statistic, heterogeneity.p_value]),
        "rate": np.array([ranked.value, ranked.standard_error]),
        "shape": np.array([shape.statistic, shape.critical_value, shape.p_value]),
        "sensitivity": np.array(
            [doubt.value, doubt.residual_variance, doubt.representer_square, doubt.robustness_value]
        ),
        "increasing": shaped_forest(forest, "increasing").dose_response(own.units),
    }


# --- the engine alone -----------------------------------------------------------------------------


def engine(n_jobs: int, *, categories: bool = False, **parameters: Any) -> Answers:
    """Curves of a forest, in and out of bag, and what its trees look like."""
    X, y, doses = data.curves()
    weights = np.random.default_rng(7).integers(1, 4, len(X)) / 2
    if categories:
        X[:, 4] = np.arange(len(X)) * 7 % 90
        y = y + (X[:, 4:] % 3 == 0) * doses
        parameters["categorical_features"] = [4]
    forest = CurveForest(n_trees=20, min_node_size=5, random_state=0, n_jobs=n_jobs, **parameters)
    forest.fit(X, y, doses=doses, sample_weight=weights, groups=np.arange(len(X)) // 2)
    return engine_answers(forest, X)


def engine_of_statistics(n_jobs: int, *, scores: bool = False, **parameters: Any) -> Answers:
    """The same where nodes are compared by ratios of columns, or by scores of a regression."""
    X, y, _ = data.curves(seed=8)
    dose = np.random.default_rng(9).integers(0, 1024, len(X)) / 512 - 1
    outcome = y[:, 4] + dose * y[:, 3]
    if scores:  # products of a level and the dose, then both times the outcome
        columns = [np.ones(len(X)), dose, dose**2, outcome, dose * outcome]
        statistic, doses = SplitByScores((0.0, 0.125)), None
    else:
        near = [(np.abs(dose - middle) < 0.5) + 0.25 for middle in (-0.5, 0.0, 0.5)]
        columns = [*(own * outcome for own in near), *near]
        statistic, doses = SplitByRatios(), [-0.5, 0.0, 0.5]
    forest = CurveForest(
        20, statistic=statistic, min_node_size=5, random_state=0, n_jobs=n_jobs, **parameters
    )
    forest.fit(X, np.column_stack(columns), doses=doses, treatment=dose)
    return engine_answers(forest, X)


def engine_answers(forest: CurveForest, X: Any) -> Answers:
    """Averages of leaves and what trees look like."""
    grown = forest.forest_
    return {
        "predict": forest.predict(X[:8]),
        "average_oob": forest.average_oob(X)[:8],
        "leaves": forest.apply(X[:8]),
        "feature_importance": forest.feature_importance().values,
        "roots": grown.roots,
        "first_splits": np.stack([grown.nodes["threshold"][:8], grown.gains[:8]]),
    }


# --- what is made of forests ----------------------------------------------------------------------


def distilled_forest(n_jobs: int) -> Answers:
    own = data.continuous(seed=23)
    forest = small(n_jobs).fit(own.X, own.y, treatment=own.dose)
    compact = forest.distill(n_trees=20, verbose=False)
    return {
        "dose_response": compact.dose_response(own.units),
        "effect": compact.effect(own.units, 3.0, 2.0),
        "out_of_bag": np.array([compact.error, compact.spread]),
    }


def policy_decisions(n_jobs: int) -> Answers:
    own = data.continuous(seed=24)
    forest = small(n_jobs, doses=[1.0, 2.0, 3.0, 4.0], baseline=2.0)
    forest.fit(own.X, own.y, treatment=own.dose)
    value, cost = Response("margin"), DoseCost(1.0)
    region = np.where(own.units[:, 2] > 0, "north", "south")
    context = {"margin": 2 + own.units[:, 3], "region": region, "unit": np.arange(8)}
    policy = DosePolicy(
        forest,
        value=value,
        cost=cost,
        budget_price=0.5,
        group_prices=PartPrices("region", {"north": 0.25, "south": 0.0}),
        max_dose=3.5,
    )
    explored = Explore(policy, 0.5, [0.25] * 4, key="unit", salt="spring")
    found = {}
    for kind, decisions in (
        ("policy", policy.decide(own.units, context)),
        ("explored", explored.decide(own.units, context)),
    ):
        for name in ("dose_index", "value", "cost", "net", "effect", "propensity", "reason_code"):
            found[f"{kind}_{name}"] = getattr(decisions, name)
    weighed = policy.alternatives(own.units, context)
    plan = optimize_doses(weighed.value, weighed.cost, budget=18.0, doses=policy.doses)
    found["plan"] = plan.dose_index
    found["shadow_price"] = np.array([plan.shadow_price.budget])
    return found


def baselines(n_jobs: int) -> Answers:
    own = data.continuous(seed=25)
    models = {
        "line": OutcomeRegressor(LinearRegression()),
        "kennedy": KennedyCurve(LinearRegression(), LinearRegression()),
        "linear_causal_forest": LinearCausalForest(n_trees=40, n_jobs=n_jobs),
    }
    grid = np.array([1.0, 2.0, 3.0, 4.0])
    return {
        name: model.fit(own.X, own.y, treatment=own.dose).dose_response(own.units, grid)
        for name, model in models.items()
    }


# --- the registry ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GoldenFit:
    """A function of the number of threads, and the parts of the algorithm that it covers."""

    answers: Callable[[int], Answers]
    parts: frozenset[str]
    searches: bool = False  # for lengths of processes, a search that enlarges last digits

    @property
    def exact(self) -> bool:
        """Whether every machine must answer the same bits: the engine's sums are of integers."""
        return self.parts == {"engine"}


def golden(
    answers: Callable[..., Answers], parts: str, *, searches: bool = False, **parameters: Any
) -> GoldenFit:
    """A line of the registry; parameters go to the function."""
    return GoldenFit(
        lambda n_jobs: answers(n_jobs, **parameters), frozenset(parts.split()), searches
    )


FOREST = "engine outcome density orthogonal averages"

FITS: dict[str, GoldenFit] = {
    "continuous dose": golden(continuous_dose, FOREST, searches=True),
    "binary outcome": golden(binary_outcome, FOREST, searches=True),
    "few levels": golden(few_levels, FOREST),
    "point mass at zero": golden(point_mass_at_zero, FOREST),
    "two doses at once": golden(two_doses_at_once, FOREST),
    "arms with doses": golden(arms_with_doses, FOREST),
    "categories and gaps": golden(categories_and_gaps, FOREST, searches=True),
    "weights and groups": golden(weights_and_groups, FOREST),
    "known propensities": golden(known_propensities, FOREST),
    "swapped halves": golden(swapped_halves, FOREST),
    "stabilized": golden(
        other_correction, "engine outcome density kernel averages", correction="stabilized"
    ),
    "kernel": golden(
        other_correction, "engine outcome density kernel averages", correction="kernel"
    ),
    "no correction": golden(other_correction, "outcome density averages", correction="none"),
    "paper": golden(paper, "engine outcome density paper averages"),
    "paper, derivatives": golden(
        paper, "engine outcome density paper averages", criterion="pdrf", distance="l1"
    ),
    "all defaults": golden(defaults, "defaults", searches=True, make=GeneralizedCausalForest),
    "paper, all defaults": golden(
        defaults, "paper_defaults", searches=True, make=GeneralizedCausalForest.paper
    ),
    "densities": golden(densities, "density averages"),
    "intervals by bags": golden(intervals_by_bags, "engine outcome orthogonal inference"),
    "changes and tests": golden(changes_and_tests, f"{FOREST} inference"),
    "engine": golden(engine, "engine"),
    "engine, L1 of drawn features": golden(engine, "engine", distance="l1", mtry=2),
    "engine, Linf of categories": golden(engine, "engine", distance="linf", categories=True),
    "engine, bootstrap": golden(
        engine, "engine", sampling="bootstrap", honesty="none", mtry=3, mtry_scope="tree"
    ),
    "engine, ratios": golden(engine_of_statistics, "engine"),
    "engine, scores under a guard": golden(
        engine_of_statistics,
        "engine",
        scores=True,
        guard=TreatmentGuard(min_treatment_variance=0.9),
    ),
    "distilled forest": golden(distilled_forest, "engine outcome orthogonal distilling"),
    "policy": golden(policy_decisions, "engine outcome density orthogonal policy"),
    "baselines": golden(baselines, "engine baselines"),
    "linear causal forest, all defaults": golden(
        defaults, "linear_forest", make=LinearCausalForest
    ),
    "Kennedy, all defaults": golden(defaults, "kennedy", make=KennedyCurve),
    "Kennedy as coded": golden(defaults, "kennedy", make=KennedyCurve, as_coded=True, n_folds=2),
    "regressions": golden(regressions, "regressions"),
    "reference curves": golden(reference_curves, "reference"),
    "comparisons": golden(comparisons, "comparisons"),
}


def run(name: str, n_jobs: int = 1) -> Answers:
    """The answers of a golden fit as float64, without the warnings that small fits give.

    Linear algebra has one thread: with more of them it adds in another order. ``n_jobs`` is of the
    forests and must not matter.
    """
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = FITS[name].answers(n_jobs)
    return {key: np.ascontiguousarray(own, dtype=np.float64) for key, own in found.items()}
