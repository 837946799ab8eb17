"""A policy that serves: units in, decisions with all probabilities out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.files.policy_file import Policy
from doseforest.policy import ConstantPolicy, DosePolicy, ExplorationPolicy, Explore
from doseforest.policy.artifact.policy_decisions import CODES, Decisions
from doseforest.pricing.service.registry.incoming_units import (
    ServedUnit,
    UnitColumns,
    checked_request,
    forest_of,
    needed_columns,
)
from doseforest.pricing.service.served_doses import Components, Dose, named_dose

KINDS = {
    DosePolicy: "dose_policy",
    ConstantPolicy: "constant",
    ExplorationPolicy: "exploration",
    Explore: "explore",
}


@dataclass(frozen=True, slots=True, eq=False)
class ServedPolicy:
    """A published policy, ready to decide."""

    version: int
    policy: Policy
    needed: UnitColumns = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needed", needed_columns(self.policy))

    @property
    def kind(self) -> str:
        """What kind of policy it is."""
        return KINDS[type(self.policy)]

    @property
    def doses(self) -> DoseArray:
        """What it may give, (n_doses,)."""
        return self.policy.doses

    @property
    def components(self) -> Components:
        """Names of the components of its doses, where they have several."""
        return self.policy.components

    @property
    def named_doses(self) -> list[Dose]:
        """What it may give, as it is answered."""
        return [named_dose(each, self.components) for each in self.doses.tolist()]

    @property
    def baseline(self) -> Dose | None:
        """The dose of those whom it cannot decide on; None where it decides on all."""
        inner = getattr(self.policy, "policy", self.policy)
        if not isinstance(inner, DosePolicy):
            return None
        return named_dose(inner.baseline.item(), self.components)

    def choose(self, units: Sequence[ServedUnit]) -> Decisions:
        """A dose for each unit."""
        checked, lacking = checked_request(units, self.needed)
        decisions = self.policy.decide_checked(checked)
        if not lacking.any():
            return decisions
        codes = np.where(lacking, np.int8(CODES["missing_features"]), decisions.reason_code)
        return replace(decisions, reason_code=codes)

    def warm(self) -> None:
        """Decide once, on nobody: the first client need not wait for what is done once."""
        nobody = ServedUnit("", "", dict.fromkeys(self.needed.names))
        with contextlib.suppress(Exception):  # of units that are there it may know more
            self.choose([nobody])

    def curves(self, units: Sequence[ServedUnit]) -> tuple[FloatArray, list[bool]]:
        """Predicted responses, (n_units, n_doses), and which units lack features."""
        forest = forest_of(self.policy)
        if forest is None:
            raise ValueError("The active policy has no forest, hence no curves.")
        checked, lacking = checked_request(units, self.needed)
        return checked.curves(forest, self.doses), lacking.tolist()
