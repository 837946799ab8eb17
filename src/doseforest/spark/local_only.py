"""What the local estimator has and Spark has not: one table, and the errors that say so.

Every parameter and every public name of the local estimator is in one of these tables, or on the
model: a test holds them to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doseforest.estimator.effect_forest import EffectForest

FIT_LOCALLY = (
    "fit with doseforest.GeneralizedCausalForest on one machine, and score frames with "
    "SparkCausalForestModel.fromLocal"
)

# Parameters, and arguments of fit, that have another name on Spark.
COUNTERPARTS = {
    "n_trees": "nTrees",
    "correction": "correction",
    "outcome_model": "outcomeModel",
    "basis": "basis",
    "correction__leaf_sizes": "leafSizes",
    "correction__n_rounds": "nRounds",
    "n_folds": "nFolds",
    "honesty_fraction": "honestyFraction",
    "sample_fraction": "sampleFraction",
    "doses": "doses",
    "baseline": "baseline",
    "max_bins": "maxBins",
    "categorical_features": "categoricalCols",
    "progress": "progress",
    "random_state": "seed",
    "treatment": "treatmentCol",
    "sample_weight": "weightCol",
    "groups": "groupCol",
}


@dataclass(frozen=True, slots=True)
class LocalOnly:
    """Why Spark has no such parameter, and what to do instead."""

    why: str
    instead: str = FIT_LOCALLY


_OF_LOCAL_CORRECTIONS = LocalOnly("whose corrections, 'orthogonal' and 'none', do not use it")
_OF_ROLES = LocalOnly(
    "where every feature has every role", f"leave the column out of 'featureCols', or {FIT_LOCALLY}"
)

PARAMETERS: dict[str, LocalOnly] = {
    "treatment_model": LocalOnly("where means given the covariates are of a ridge and a forest"),
    "density": LocalOnly("where the density of the dose is by location and scale"),
    "n_repeats": LocalOnly("where folds are drawn once", "raise 'nFolds'"),
    "honesty": LocalOnly("where halves of each tree's rows grow it and fill its leaves"),
    "mtry": LocalOnly("where splits may use all features"),
    "kernel": _OF_LOCAL_CORRECTIONS,
    "average_bandwidth": LocalOnly("where averages have the bandwidth of the rule of thumb"),
    "effect_features": _OF_ROLES,
    "controls": _OF_ROLES,
    "density_features": _OF_ROLES,
    "inference": LocalOnly("where units have no intervals"),
    "n_jobs": LocalOnly(
        "which shares out the cores", "set spark.executor.cores and spark.executor.instances"
    ),
    "memory_limit": LocalOnly("where memory is by task", "set 'taskMemoryMB'"),
    "verbose": LocalOnly(
        "which tells of its jobs in its web UI", "set 'progress', or read model.summary"
    ),
}

VALUES: dict[str, tuple[str, ...]] = {"correction": ("stabilized", "kernel", "paper")}

# Public names of the fitted local estimator that need its training rows.
ANSWERS: dict[str, str] = {
    "average": "averageCurve() after a fit with overlap=True",
    "average_dose_response": "averageCurve() after a fit with overlap=True",
    "average_effect": "averageCurve() after a fit with overlap=True",
    "overlap_report": "overlapReport()",
    "supported": "overlapReport()",
    "distill": "",
    "score": "",
    "tests": "",
}


def refuse_parameter(name: str, value: Any) -> None:
    """Raise TypeError where a parameter is the local estimator's alone, or is named otherwise.

    >>> refuse_parameter("n_jobs", 4)
    Traceback (most recent call last):
    TypeError: The 'n_jobs' parameter must be left out on Spark, which shares out the cores. Got 4
    instead: set spark.executor.cores and spark.executor.instances.
    """
    local = {each: each for each in (*PARAMETERS, *COUNTERPARTS)}
    local |= {_camel(each): each for each in local}
    known = local.get(name)
    if known in PARAMETERS:
        result = PARAMETERS[known]
        raise TypeError(
            f"The {name!r} parameter must be left out on Spark, {result.why}. "
            f"Got {value!r} instead: {result.instead}."
        )
    if known is not None:
        raise TypeError(
            f"The {name!r} parameter must be given as {COUNTERPARTS[known]!r} on Spark. "
            f"Got {name}={value!r} instead."
        )


def local_value(name: str, value: Any) -> str:
    """What to do where a value is one that the local estimator alone takes; else nothing."""
    return f"; for that {FIT_LOCALLY}" if value in VALUES.get(name, ()) else ""


def local_answer(name: str) -> str | None:
    """What to do for an answer that the local estimator has; None: it has none of the name.

    >>> local_answer("elasticity")
    'call toLocal().elasticity'
    """
    if hasattr(EffectForest, name):
        return f"call toLocal().{name}"
    if name not in ANSWERS:
        return None
    return f"use {ANSWERS[name]}" if ANSWERS[name] else FIT_LOCALLY


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
