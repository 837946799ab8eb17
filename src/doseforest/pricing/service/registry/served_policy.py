"""A policy that serves: units in, decisions with all probabilities out."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.vectors import plain_doses
from doseforest.files.policy_file import Policy
from doseforest.policy import ConstantPolicy, DosePolicy, ExplorationPolicy, Explore
from doseforest.policy.artifact.policy_decisions import FALLBACKS
from doseforest.pricing.service.registry.incoming_units import (
    ServedUnit,
    UnitColumns,
    forest_of,
    needed_columns,
    unit_table,
)
from doseforest.pricing.service.served_doses import Components, Dose, named_dose

# Why the service itself decided, beside the reasons of policies.
SERVICE_REASONS = {
    "missing_features": "the baseline, since a feature that the policy needs is absent or wrong",
    "no_policy": "the fallback dose, since no policy is active",
    "failed": "the fallback dose, since the policy failed",
}
ALL_FALLBACKS = frozenset((*FALLBACKS, *SERVICE_REASONS))
KINDS = {
    DosePolicy: "dose_policy",
    ConstantPolicy: "constant",
    ExplorationPolicy: "exploration",
    Explore: "explore",
}


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Doses of some units under one policy; NaN where nothing is known."""

    dose: DoseArray  # (n_units,)
    reason: list[str]
    chances: FloatArray  # (n_units, n_doses): probability of every dose of the policy
    effect: FloatArray  # (n_units,)
    low: FloatArray  # (n_units,)
    high: FloatArray  # (n_units,)
    value: FloatArray  # (n_units,)
    cost: FloatArray  # (n_units,)
    shadow_price: FloatArray  # (n_units,)
    supported: FloatArray  # (n_units,): 1, 0 or NaN


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
        return [named_dose(own, self.components) for own in self.doses.tolist()]

    @property
    def baseline(self) -> Dose | None:
        """The dose of those whom it cannot decide on; None where it decides on all."""
        inner = getattr(self.policy, "policy", self.policy)
        if not isinstance(inner, DosePolicy):
            return None
        return named_dose(inner.baseline.item(), self.components)

    def choose(self, units: Sequence[ServedUnit]) -> Choices:
        """A dose for each unit."""
        table, columns, lacking = unit_table(units, self.needed)
        decided = self.policy.decide(table, columns)
        low, high = decided.interval()
        reason = [
            "missing_features" if lacks else own
            for lacks, own in zip(lacking.tolist(), decided.reason.tolist(), strict=True)
        ]
        return Choices(
            dose=self.doses[decided.dose_index],
            reason=reason,
            chances=self._chances(table, columns, decided.dose_index),
            effect=decided.effect,
            low=low,
            high=high,
            value=decided.value,
            cost=decided.cost,
            shadow_price=decided.shadow_price,
            supported=decided.supported,
        )

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
        table, _, lacking = unit_table(units, self.needed)
        response: FloatArray = np.asarray(forest.dose_response(table, plain_doses(self.doses)))
        return response, lacking.tolist()

    def _chances(self, table: Any, columns: dict[str, Any], chosen: Any) -> FloatArray:
        if isinstance(self.policy, ExplorationPolicy | Explore):
            return self.policy.propensities(table, columns)
        sure: FloatArray = np.zeros((len(chosen), len(self.doses)))
        sure[np.arange(len(chosen)), chosen] = 1.0
        return sure
