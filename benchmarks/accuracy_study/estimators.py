"""What is compared: to add a row of the tables, add a line to `ESTIMATORS`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import doseforest
from accuracy_study.apart import ApartForests
from doseforest.baselines import AverageCurve, EconMLForest, ZeroEffect, boosting, random_forest
from doseforest.simulation import Simulation

ROOT = Path(__file__).resolve().parents[2]
OURS = "doseforest"
OUTCOME = "its outcome model alone"
ALGORITHM = "paper(), as printed"
ALGORITHM_OUTCOME = "mu-hat of paper() alone"
ALGORITHM_BANDWIDTH = "paper(), bandwidth left-one-out"
ALGORITHM_PDRF = "paper(), split by derivatives"
EXACT_AVERAGE = "ADRF only"
ZERO = "zero"
APART = "two forests, apart"


@dataclass(frozen=True, slots=True)
class Estimator:
    """A model, fitted once for all of its rows."""

    row: str  # its name in tables
    make: Callable[[Simulation, int], Any]  # of the data and a seed, not yet fitted
    packages: tuple[str, ...] = ()  # whose versions its results depend on
    parts: dict[str, str] = field(default_factory=dict)  # further rows: attributes once fitted
    own: bool = False  # whether its results depend on the sources of this repository
    in_table: bool = True  # whether it is in the table of designs by default

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of all of its rows."""
        return self.row, *self.parts

    def fit(self, data: Simulation, seed: int) -> dict[str, Any]:
        """Fit, and return the model of each row."""
        model = self.make(data, seed).fit(data.X, data.y, treatment=data.treatment)
        return {self.row: model} | {row: getattr(model, name) for row, name in self.parts.items()}


def _ours(data: Simulation, seed: int) -> Any:
    return doseforest.GeneralizedCausalForest(random_state=seed, n_jobs=1)


def _paper(data: Simulation, seed: int) -> Any:
    return doseforest.GeneralizedCausalForest.paper(
        doses=data.doses, baseline=data.baseline, random_state=seed, n_jobs=1
    )


def _paper_bandwidth(data: Simulation, seed: int) -> Any:
    return _paper(data, seed).set_params(bandwidth="leave_one_out")


def _paper_pdrf(data: Simulation, seed: int) -> Any:
    return _paper(data, seed).set_params(criterion="pdrf")


def _random_forest(data: Simulation, seed: int) -> Any:
    return random_forest(random_state=seed)


def _boosting(data: Simulation, seed: int) -> Any:
    return boosting(random_state=seed)


def _stopped_boosting(data: Simulation, seed: int) -> Any:
    return boosting(2000, max_leaf_nodes=16, random_state=seed, early_stopping=True)


def _econml(data: Simulation, seed: int) -> Any:
    return EconMLForest(random_state=seed)


def _exact_average(data: Simulation, seed: int) -> Any:
    return AverageCurve(data.average)


def _apart(data: Simulation, seed: int) -> Any:
    return ApartForests(random_state=seed)


def _zero(data: Simulation, seed: int) -> Any:
    return ZeroEffect()


ESTIMATORS = {
    "doseforest": Estimator(
        OURS, _ours, ("numpy", "lightgbm"), parts={OUTCOME: "outcome_model_"}, own=True
    ),
    "paper": Estimator(
        ALGORITHM,
        _paper,
        ("numpy", "lightgbm"),
        parts={ALGORITHM_OUTCOME: "outcome_model_"},
        own=True,
        in_table=False,
    ),
    "paper_bandwidth": Estimator(
        ALGORITHM_BANDWIDTH, _paper_bandwidth, ("numpy", "lightgbm"), own=True, in_table=False
    ),
    "paper_pdrf": Estimator(
        ALGORITHM_PDRF, _paper_pdrf, ("numpy", "lightgbm"), own=True, in_table=False
    ),
    "random_forest": Estimator("random forest, leaf 5", _random_forest, ("scikit-learn",)),
    "boosting": Estimator("boosting", _boosting, ("scikit-learn",)),
    "stopped_boosting": Estimator(
        "boosting, stopped early", _stopped_boosting, ("scikit-learn",), in_table=False
    ),
    "econml": Estimator("EconML CausalForestDML, splines", _econml, ("econml", "scikit-learn")),
    "apart": Estimator(APART, _apart, ("numpy", "lightgbm"), own=True, in_table=False),
    "adrf": Estimator(EXACT_AVERAGE, _exact_average),
    "zero": Estimator(ZERO, _zero),
}
TABLE = tuple(name for name, estimator in ESTIMATORS.items() if estimator.in_table)
ROWS = tuple(row for estimator in ESTIMATORS.values() for row in estimator.rows)
PEERS = tuple(ESTIMATORS[name].row for name in ("random_forest", "boosting", "econml"))
ESTIMATED = (OURS, OUTCOME, *PEERS)  # the others know the truth, or nothing


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def source_digest() -> str:
    """Digest of the Python and C++ sources, the same as long as our results cannot change."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "src/doseforest").rglob("*.py"), *(ROOT / "cpp").iterdir()]):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def state(name: str) -> str:
    """What the results of an estimator depend on besides the data: versions and settings."""
    estimator = ESTIMATORS[name]
    versions = {package: installed(package) for package in estimator.packages}
    if estimator.own:
        return digest_of(versions, source_digest())
    settings = estimator.make(_no_data(), 0).get_params(deep=False)
    plain = {key: repr(value) for key, value in settings.items() if not callable(value)}
    return digest_of(versions, plain)


def digest_of(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _no_data() -> Simulation:
    return doseforest.simulation.DESIGNS["linear"].draw(n=10, seed=0)
