"""A running experiment: policies as arms, cells assigned to them by a salted hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.pricing.experiments.hashed_arms import assign_arms
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import Choices, ServedPolicy


@dataclass(frozen=True, slots=True)
class Arm:
    """One policy of an experiment."""

    name: str
    share: float  # of the cells
    served: ServedPolicy


@dataclass(frozen=True, slots=True)
class RunningExperiment:
    """Arms and the salt that spreads cells over them."""

    id: int
    name: str
    salt: str
    arms: tuple[Arm, ...]

    def places(self, units: Sequence[ServedUnit]) -> IntArray:
        """Place of every unit's arm: that of its cell, always the same one."""
        shares = {arm.name: arm.share for arm in self.arms}
        named = assign_arms([own.cell for own in units], self.salt, shares)
        order = {arm.name: place for place, arm in enumerate(self.arms)}
        return np.array([order[name] for name in named.tolist()], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class MixedChoices:
    """What every arm would do, and the arm of each unit."""

    arms: tuple[Arm, ...]
    place: IntArray  # (n_units,)
    choices: tuple[Choices, ...]  # of every arm, for all units
    doses: DoseArray  # (n_doses,) of all arms, ascending
    chances: FloatArray  # (n_units, n_doses): over assignment and draws


def choose_in_arms(experiment: RunningExperiment, units: Sequence[ServedUnit]) -> MixedChoices:
    """Let every arm decide: the probability of a dose is that over the assignment too.

    Who learns from an experiment needs the probability with which a unit could have had each dose
    before its cell was assigned: the sum of the arms' probabilities, weighted by their shares.
    """
    choices = tuple(arm.served.choose(units) for arm in experiment.arms)
    doses = np.unique(np.concatenate([arm.served.doses for arm in experiment.arms]))
    chances: FloatArray = np.zeros((len(units), len(doses)))
    for arm, own in zip(experiment.arms, choices, strict=True):
        chances[:, np.searchsorted(doses, arm.served.doses)] += arm.share * own.chances
    return MixedChoices(experiment.arms, experiment.places(units), choices, doses, chances)
