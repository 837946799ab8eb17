"""A running experiment: policies as arms, cells assigned to them by a salted hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import IntArray
from doseforest.policy.artifact.policy_decisions import Decisions, assigned
from doseforest.pricing.experiments.hashed_arms import assign_arms
from doseforest.pricing.service.registry.incoming_units import ServedUnit
from doseforest.pricing.service.registry.served_policy import ServedPolicy


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
        named = assign_arms([unit.cell for unit in units], self.salt, shares)
        order = {arm.name: place for place, arm in enumerate(self.arms)}
        return np.array([order[name] for name in named.tolist()], np.int64)

    def choose(self, units: Sequence[ServedUnit]) -> tuple[Decisions, IntArray]:
        """Every unit's decision by its arm, and the place of that arm."""
        place = self.places(units)
        pieces = [arm.served.choose(units) for arm in self.arms]
        return assigned(pieces, [arm.share for arm in self.arms], place), place
