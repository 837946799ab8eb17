"""What is compared: to add a row of the tables, add a line to `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import doseforest
from bench.designs import DESIGNS, Simulation
from bench.studies.ablation_variants import (
    GROUPS,
    POWERS_SWITCHED,
    fit_powers,
    fit_variants,
)
from bench.studies.apart import ApartForests
from bench.studies.category_codes import WithIndicators, code_columns
from bench.studies.measures import digest_of_measure
from bench.studies.printed_variants import (
    LATER_STEPS,
    PRINTED,
    PRINTED_VARIANTS,
    STEPS,
    fit_steps,
)
from bench.studies.regression_peers import (
    catboost_defaults,
    gaussian_process,
    lightgbm_defaults,
    lightgbm_tuned,
)
from bench.studies.result_keys import FOREST, PAPER, result_key, source
from doseforest.base.versions import installed
from doseforest.baselines import (
    AverageCurve,
    EconMLForest,
    KennedyCurve,
    LinearCausalForest,
    ZeroEffect,
    boosting,
    random_forest,
    xgboost_trees,
)

OURS = "doseforest"
OUTCOME = "its outcome model alone"
CONSTANT = "its average curve for every unit"
ALGORITHM = "paper(), as printed"
ALGORITHM_OUTCOME = "mu-hat of paper() alone"
EXACT_AVERAGE = "ADRF only"
ZERO = "zero"
MANY, SOME, FEW = 100, 25, 12  # draws: of most methods, and of slow ones
APART = "two forests, apart"
NOT_MEASURED = ("random_state", "n_jobs", "progress")  # parameters: of a task, or without effect

Make = Callable[[Simulation, int], Any]  # of the data and a seed: an estimator, not yet fitted
Part = Callable[[Any, Simulation], Any]  # of a fitted model and its data: another curve model


@dataclass(frozen=True, slots=True)
class Method:
    """A model, fitted once for all of its rows."""

    row: str  # its name in tables
    make: Make
    uses: tuple[str, ...] = ()  # parts of the algorithm whose golden answers its results rest on
    packages: tuple[str, ...] = ()  # whose versions its results depend on
    parts: Mapping[str, Part] = field(default_factory=dict)  # further rows, once fitted
    files: tuple[str, ...] = ()  # that it is made of and no golden answer speaks for
    defaults: Callable[[], Any] | None = None  # the estimator whose defaults are golden answers
    draws: int = MANY  # of each data set in Table 1, where fits are slow fewer
    takes_codes: bool = False  # columns of categories as they are; else indicators of them

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of all of its rows."""
        return self.row, *self.parts

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that it needs and that are not installed."""
        return tuple(name for name in self.packages if installed(name) == "not installed")

    def fit(self, data: Simulation, seed: int) -> dict[str, Any]:
        """Fit, and return the model of each row."""
        model, codes = self.make(data, seed), code_columns(data)
        if codes and not self.takes_codes:
            model = WithIndicators(model, codes)
        model = model.fit(data.X, data.y, treatment=data.treatment)
        return {self.row: model} | {row: part(model, data) for row, part in self.parts.items()}


@dataclass(frozen=True, slots=True)
class Ablation:
    """A method whose rows are variants that share a draw's fits."""

    groups: Mapping[str, Iterable[str]]  # names of variants; rows are "group: variant"
    variants: Callable[[Simulation, int], Mapping[str, Any]]  # the model of each row
    files: tuple[str, ...]
    uses: tuple[str, ...]
    packages: tuple[str, ...] = ("numpy", "scipy", "scikit-learn", "lightgbm")
    missing: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of all variants."""
        return tuple(f"{group}: {name}" for group, names in self.groups.items() for name in names)

    @property
    def row(self) -> str:
        """The first of them."""
        return self.rows[0]

    def fit(self, data: Simulation, seed: int) -> dict[str, Any]:
        """Fit every variant."""
        return dict(self.variants(data, seed))


def _ours(data: Simulation, seed: int) -> Any:
    return doseforest.GeneralizedCausalForest(
        categorical_features=code_columns(data), random_state=seed, n_jobs=1
    )


def _paper(data: Simulation, seed: int) -> Any:
    return doseforest.GeneralizedCausalForest.paper(
        doses=data.doses,
        baseline=data.baseline,
        categorical_features=code_columns(data),
        random_state=seed,
        n_jobs=1,
    )


def _outcome_model(model: Any, data: Simulation) -> Any:
    return model.outcome_model_


def _mean_curve(model: Any, data: Simulation) -> Any:
    return AverageCurve(lambda doses: model.dose_response(data.X, doses).mean(axis=0))


BOOSTERS = ("numpy", "scipy", "scikit-learn", "lightgbm")
ABLATION = "bench/studies/ablation_variants.py"
REGRESSIONS = ("bench/studies/regression_peers.py",)
METHODS: dict[str, Method | Ablation] = {
    "doseforest": Method(
        OURS,
        _ours,
        (*FOREST, "reference"),
        BOOSTERS,
        parts={OUTCOME: _outcome_model, CONSTANT: _mean_curve},
        defaults=doseforest.GeneralizedCausalForest,
        takes_codes=True,
    ),
    "paper": Method(
        ALGORITHM,
        _paper,
        PAPER,
        BOOSTERS,
        parts={ALGORITHM_OUTCOME: _outcome_model},
        defaults=doseforest.GeneralizedCausalForest.paper,
        draws=FEW,
        takes_codes=True,
    ),
    "random_forest": Method(
        "random forest, leaf 5",
        lambda data, seed: random_forest(random_state=seed),
        ("regressions",),
        ("scikit-learn",),
    ),
    "random_forest_50": Method(
        "random forest, leaf 50",
        lambda data, seed: random_forest(min_samples_leaf=50, random_state=seed),
        ("regressions",),
        ("scikit-learn",),
    ),
    "boosting": Method(
        "boosting",
        lambda data, seed: boosting(random_state=seed),
        ("regressions",),
        ("scikit-learn",),
    ),
    "stopped_boosting": Method(
        "boosting, stopped early",
        lambda data, seed: boosting(
            2000, max_leaf_nodes=16, random_state=seed, early_stopping=True
        ),
        ("regressions",),
        ("scikit-learn",),
    ),
    "xgboost": Method(
        "XGBoost",
        lambda data, seed: xgboost_trees(random_state=seed),
        ("regressions",),
        ("xgboost-cpu",),
        files=("baselines/xgboost_trees.py",),
    ),
    "gaussian_process": Method(
        "Gaussian process",
        lambda data, seed: gaussian_process(seed),
        packages=("scikit-learn",),
        files=REGRESSIONS,
    ),
    "lightgbm": Method(
        "LightGBM",
        lambda data, seed: lightgbm_defaults(code_columns(data), seed),
        packages=("lightgbm",),
        files=REGRESSIONS,
        takes_codes=True,
    ),
    "lightgbm_tuned": Method(
        "LightGBM, tuned",
        lambda data, seed: lightgbm_tuned(code_columns(data), seed),
        packages=("lightgbm", "scikit-learn"),
        files=REGRESSIONS,
        takes_codes=True,
    ),
    "catboost": Method(
        "CatBoost",
        lambda data, seed: catboost_defaults(code_columns(data), seed),
        packages=("catboost",),
        files=REGRESSIONS,
        takes_codes=True,
    ),
    "linear_forest": Method(
        "linear causal forest",
        lambda data, seed: LinearCausalForest(random_state=seed, n_jobs=1),
        ("engine", "linear_forest"),
        ("numpy",),
    ),
    "kennedy": Method(
        "Kennedy",
        lambda data, seed: KennedyCurve(as_coded=True, n_folds=10, random_state=seed, n_jobs=1),
        ("kennedy",),
        ("numpy", "scikit-learn"),
        draws=SOME,
    ),
    "kennedy_cross_fitted": Method(
        "Kennedy, cross-fitted",
        lambda data, seed: KennedyCurve(random_state=seed, n_jobs=1),
        ("kennedy",),
        ("numpy", "scikit-learn"),
        draws=SOME,
    ),
    "econml_linear": Method(
        "EconML CausalForestDML, linear",
        lambda data, seed: EconMLForest.linear(random_state=seed),
        packages=("econml", "scikit-learn"),
        files=("baselines/econml_forest.py",),
        draws=FEW,
    ),
    "econml": Method(
        "EconML CausalForestDML, splines",
        lambda data, seed: EconMLForest(random_state=seed),
        packages=("econml", "scikit-learn"),
        files=("baselines/econml_forest.py",),
        draws=FEW,
    ),
    "apart": Method(
        APART,
        lambda data, seed: ApartForests(random_state=seed),
        FOREST,
        BOOSTERS,
        files=("bench/studies/apart.py",),
    ),
    "ablation": Ablation(GROUPS, fit_variants, (ABLATION,), (*FOREST, "kernel")),
    "ablation_powers": Ablation(POWERS_SWITCHED, fit_powers, (ABLATION,), FOREST),
    "ablation_printed": Ablation(
        {PRINTED: PRINTED_VARIANTS, STEPS: LATER_STEPS},
        fit_steps,
        (ABLATION, "bench/studies/printed_variants.py"),
        (*FOREST, *PAPER, "kernel"),
    ),
    "adrf": Method(EXACT_AVERAGE, lambda data, seed: AverageCurve(data.average), ("reference",)),
    "zero": Method(ZERO, lambda data, seed: ZeroEffect(), ("reference",)),
}
_SINGLE = {name: own for name, own in METHODS.items() if isinstance(own, Method)}
SINGLE_METHODS = tuple(name for name in _SINGLE if name != "apart")  # of a dose of one component
ROWS = tuple(dict.fromkeys(row for method in _SINGLE.values() for row in method.rows))
PARTS = tuple(row for method in _SINGLE.values() for row in method.parts)  # no fits of their own


@cache
def state(name: str, measure: str) -> str:
    """Key of results: golden answers, versions, settings, what is measured; not the data."""
    method = METHODS[name]
    others = settings_of(method), digest_of_measure(measure)
    files = [source(file) for file in method.files]
    return result_key(method.uses, packages=method.packages, files=files, others=others)


def settings_of(method: Method | Ablation) -> dict[str, str]:
    """Parameters of a method's estimator and of those inside it; ablations have them in files.

    Where the estimator's defaults have golden answers, those parameters alone that are others.
    """
    if isinstance(method, Ablation):
        return {}
    usual = method.defaults().get_params() if method.defaults else {}
    settings = method.make(_no_data(), 0).get_params()
    return {
        key: repr(value)
        for key, value in settings.items()
        if not callable(value) and key not in NOT_MEASURED
        if key not in usual or repr(usual[key]) != repr(value)
    }


def _no_data() -> Simulation:
    return DESIGNS["linear"].draw(n=10, seed=0)
