"""Decisions on units: by the active policy, in an experiment, or by the fallback dose."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.doses.dose_values import Doses
from doseforest.policy.artifact.policy_decisions import (
    ANSWERED,
    Decisions,
    joined,
    unpredicted,
)
from doseforest.pricing.service.online_experiments.running_arms import RunningExperiment
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from doseforest.pricing.service.served_doses import (
    Dose,
    PlainDose,
    components_of,
    has_components,
    in_order,
    named_dose,
)

Chances = list[tuple[PlainDose, float]]  # every dose that was possible, with its probability


class CannotDecideError(Exception):
    """There is no policy, or it failed, and no fallback dose of its components was given."""


@dataclass(frozen=True, slots=True)
class Deciders:
    """What decides at a moment; requests keep the one that they began with."""

    policy: ServedPolicy | None
    experiment: RunningExperiment | None
    fallback_dose: Dose | None

    @property
    def deciding(self) -> ServedPolicy | None:
        """The policy whose doses are given; arms of an experiment have the same components."""
        return self.policy if self.experiment is None else self.experiment.arms[0].served


@dataclass(frozen=True, slots=True, eq=False)
class ServedDecisions:
    """Decisions on the units of a request, and who made them."""

    made: Decisions  # as the policy made them; in an experiment by each unit's arm
    version: list[int | None]  # (n_units,): of the policy
    arm: list[str | None]  # (n_units,)
    experiment: RunningExperiment | None

    def __len__(self) -> int:
        return len(self.version)

    def at(self, units: slice) -> ServedDecisions:
        """Decisions on some units."""
        picked = self.version[units], self.arm[units]
        return ServedDecisions(self.made.at(units), *picked, self.experiment)

    def columns(self) -> dict[str, list[Any]]:
        """What is answered of each unit, as plain values: unknown numbers are None."""
        made, names = self.made, self.made.components
        doses = made.dose.tolist()
        experiment = None if self.experiment is None else self.experiment.name
        columns = {
            "dose": doses if names is None else [named_dose(dose, names) for dose in doses],
            "propensity": np.minimum(made.propensity, 1.0).tolist(),
            "reason": made.reason.tolist(),
            "fallback": made.fallback.tolist(),
            "policy_version": self.version,
            "experiment": [experiment] * len(doses),
            "arm": self.arm,
        }
        for name in ANSWERED:
            numbers = getattr(made, name).tolist()
            columns[name] = [None if number != number else number for number in numbers]
        marks = made.supported.tolist()
        columns["supported"] = [None if mark != mark else bool(mark) for mark in marks]
        return columns

    def chances(self) -> list[Chances]:
        """Every dose that each unit could have had, with its probability."""
        if self.made.drawn is None:
            return [[(dose, 1.0)] for dose in self.made.dose.tolist()]
        doses = self.made.doses.tolist()
        return [
            [(dose, chance) for dose, chance in zip(doses, row, strict=True) if chance > 0]
            for row in self.made.drawn.tolist()
        ]


def decide(
    deciders: Deciders,
    units: Sequence[ServedUnit],
    on_failure: Callable[[Exception], None] = lambda error: None,
) -> ServedDecisions:
    """A decision for each unit; the fallback dose for those on whom a policy fails."""
    try:
        return decide_or_raise(deciders, units)
    except CannotDecideError:
        raise
    except Exception as error:
        if len(units) <= 1:
            on_failure(error)
            return _fallback(deciders, units, "failed")
    middle = len(units) // 2  # the units that it fails on are found by halving
    first = decide(deciders, units[:middle], on_failure)
    second = decide(deciders, units[middle:], on_failure)
    return ServedDecisions(
        joined([first.made, second.made]),
        first.version + second.version,
        first.arm + second.arm,
        first.experiment,
    )


def decide_or_raise(deciders: Deciders, units: Sequence[ServedUnit]) -> ServedDecisions:
    """A decision for each unit; where a policy fails, its error."""
    experiment, policy = deciders.experiment, deciders.policy
    if experiment is not None:
        made, place = experiment.choose(units)
        return _in_arms(made, experiment, place.tolist())
    if policy is None:
        return _fallback(deciders, units, "no_policy")
    made = policy.choose(units)
    return ServedDecisions(made, [policy.version] * len(units), [None] * len(units), None)


def _fallback(deciders: Deciders, units: Sequence[ServedUnit], reason: str) -> ServedDecisions:
    dose = _fallback_dose(deciders)
    if dose is None:
        raise CannotDecideError("No policy can decide, and there is no fallback dose for it.")
    names = components_of(dose)
    numbers = list(dose.values()) if isinstance(dose, dict) else [dose]
    made = unpredicted(
        Doses.of_table(np.array([numbers])).values, names, reason, np.zeros(len(units), np.int64)
    )
    if deciders.experiment is not None:
        # All arms get this dose, so its probability is 1, and the units stay in the experiment.
        place = deciders.experiment.places(units).tolist()
        return _in_arms(made, deciders.experiment, place)
    version = None if deciders.policy is None else deciders.policy.version
    return ServedDecisions(made, [version] * len(units), [None] * len(units), None)


def _in_arms(made: Decisions, experiment: RunningExperiment, place: list[int]) -> ServedDecisions:
    arms = [experiment.arms[each] for each in place]
    versions: list[int | None] = [arm.served.version for arm in arms]
    return ServedDecisions(made, versions, [arm.name for arm in arms], experiment)


def _fallback_dose(deciders: Deciders) -> Dose | None:
    """The fallback dose, or else the policy's baseline: of the components that clients know."""
    deciding, policy = deciders.deciding, deciders.policy
    if deciding is None:
        return deciders.fallback_dose
    for dose in (deciders.fallback_dose, None if policy is None else policy.baseline):
        if dose is not None and has_components(dose, deciding.components):
            return in_order(dose, deciding.components)
    return None


def new_ids(count: int, at: int) -> list[str]:
    """Ids that grow with time, and with the place in a request, and cannot be guessed.

    48 bits of milliseconds, 16 of the place, 64 random ones.

    >>> first, second = new_ids(2, at=1_700_000_000_000)
    >>> len(first), first[:12] == second[:12], first < second
    (32, True, True)
    """
    random, start = os.urandom(8 * count).hex(), f"{at:012x}"
    return [
        f"{start}{place & 0xFFFF:04x}{random[16 * place : 16 * (place + 1)]}"
        for place in range(count)
    ]


def pseudonym(unit: str, key: bytes) -> str:
    """A keyed hash of a unit's id: the same unit has the same one, and it tells nothing else."""
    return hashlib.blake2b(unit.encode(), key=key, digest_size=16).hexdigest()
