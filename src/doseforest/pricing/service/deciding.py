"""Decisions on units: by the active policy, in an experiment, or by the fallback dose."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.pricing.service.online_experiments.running_arms import (
    RunningExperiment,
    choose_in_arms,
)
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import ALL_FALLBACKS, Choices, ServedPolicy
from doseforest.pricing.service.served_doses import (
    Components,
    Dose,
    PlainDose,
    components_of,
    has_components,
    in_order,
    named_dose,
    plain_dose,
)

Chances = list[tuple[PlainDose, float]]  # every dose that was possible, with its probability
NUMBERS = ("effect", "low", "high", "value", "cost", "shadow_price")


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


@dataclass(frozen=True, slots=True)
class Decision:
    """A dose for one unit, and what is known of it."""

    dose: PlainDose
    components: Components  # names, where the dose has several
    propensity: float
    propensities: Chances
    reason: str
    version: int | None
    experiment: str | None
    experiment_id: int | None
    arm: str | None
    supported: bool | None
    numbers: dict[str, float | None]  # NUMBERS

    @property
    def fallback(self) -> bool:
        """Whether the dose is one for those who cannot be decided on."""
        return self.reason in ALL_FALLBACKS

    @property
    def named_dose(self) -> Dose:
        """The dose as it is answered and stored."""
        return named_dose(self.dose, self.components)


def decide(
    deciders: Deciders,
    units: Sequence[ServedUnit],
    on_failure: Callable[[Exception], None] = lambda error: None,
) -> list[Decision]:
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
    return first + decide(deciders, units[middle:], on_failure)


def decide_or_raise(deciders: Deciders, units: Sequence[ServedUnit]) -> list[Decision]:
    """A decision for each unit; where a policy fails, its error."""
    if deciders.experiment is not None:
        return _in_experiment(deciders.experiment, units)
    if deciders.policy is not None:
        return _by_policy(deciders.policy, units)
    return _fallback(deciders, units, "no_policy")


def _by_policy(served: ServedPolicy, units: Sequence[ServedUnit]) -> list[Decision]:
    choices = served.choose(units)
    columns = _columns(choices)
    chances = _pairs(served.doses, choices.chances)
    return [_decision(columns, row, chances[row], served) for row in range(len(units))]


def _in_experiment(experiment: RunningExperiment, units: Sequence[ServedUnit]) -> list[Decision]:
    mixed = choose_in_arms(experiment, units)
    columns = [_columns(own) for own in mixed.choices]
    chances = _pairs(mixed.doses, mixed.chances)
    decisions = []
    for row, place in enumerate(mixed.place.tolist()):
        arm = experiment.arms[place]
        decisions.append(
            _decision(columns[place], row, chances[row], arm.served, experiment, arm.name)
        )
    return decisions


def _fallback(deciders: Deciders, units: Sequence[ServedUnit], reason: str) -> list[Decision]:
    dose = _fallback_dose(deciders)
    if dose is None:
        raise CannotDecideError("No policy can decide, and there is no fallback dose for it.")
    plain = plain_dose(dose)
    own = Decision(
        dose=plain,
        components=components_of(dose),
        propensity=1.0,
        propensities=[(plain, 1.0)],
        reason=reason,
        version=None if deciders.policy is None else deciders.policy.version,
        experiment=None,
        experiment_id=None,
        arm=None,
        supported=None,
        numbers=dict.fromkeys(NUMBERS),
    )
    experiment = deciders.experiment
    if experiment is None:
        return [own] * len(units)
    # All arms get this dose, so its probability is 1, and the units stay in the experiment.
    arms = [experiment.arms[place] for place in experiment.places(units).tolist()]
    inside = replace(own, experiment=experiment.name, experiment_id=experiment.id)
    return [replace(inside, arm=arm.name, version=arm.served.version) for arm in arms]


def _fallback_dose(deciders: Deciders) -> Dose | None:
    """The fallback dose, or else the policy's baseline: of the components that clients know."""
    deciding, policy = deciders.deciding, deciders.policy
    if deciding is None:
        return deciders.fallback_dose
    for dose in (deciders.fallback_dose, None if policy is None else policy.baseline):
        if dose is not None and has_components(dose, deciding.components):
            return in_order(dose, deciding.components)
    return None


def _columns(choices: Choices) -> dict[str, list[Any]]:
    """Plain values; unknown numbers are None, which JSON and databases have."""
    columns: dict[str, list[Any]] = {
        name: [None if value != value else value for value in getattr(choices, name).tolist()]
        for name in (*NUMBERS, "supported")
    }
    return columns | {"dose": choices.dose.tolist(), "reason": choices.reason}


def _pairs(doses: DoseArray, chances: FloatArray) -> list[Chances]:
    plain = doses.tolist()
    return [
        [(plain[place], row[place]) for place, chance in enumerate(row) if chance > 0]
        for row in chances.tolist()
    ]


def _decision(
    columns: dict[str, list[Any]],
    row: int,
    chances: Chances,
    served: ServedPolicy,
    experiment: RunningExperiment | None = None,
    arm: str | None = None,
) -> Decision:
    dose, supported = columns["dose"][row], columns["supported"][row]
    return Decision(
        dose=dose,
        components=served.components,
        propensity=min(dict(chances)[dose], 1.0),
        propensities=chances,
        reason=columns["reason"][row],
        version=served.version,
        experiment=None if experiment is None else experiment.name,
        experiment_id=None if experiment is None else experiment.id,
        arm=arm,
        supported=None if supported is None else bool(supported),
        numbers={name: columns[name][row] for name in NUMBERS},
    )


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
