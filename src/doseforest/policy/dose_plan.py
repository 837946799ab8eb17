"""What was decided: doses of the units, totals, prices, and how far from the best it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.doses.vectors import dose_text
from doseforest.policy.dose_choices import DoseChoices
from doseforest.policy.problem import Limit

if TYPE_CHECKING:
    from doseforest.policy.artifact.dose_policy import DosePolicy


@dataclass(frozen=True, slots=True)
class ShadowPrices:
    """What one more unit of a cap would add to the value; 0 where the cap does not bind.

    A unit's dose at these prices is the one of largest
    value - (budget + groups[its group]) x cost - cells[its cell] x demand.
    """

    budget: float = 0.0
    groups: FloatArray = field(default_factory=lambda: np.empty(0))  # (n_groups,), as `by_group`
    cells: FloatArray = field(default_factory=lambda: np.empty(0))  # (n_cells,), as `by_cell`


@dataclass(frozen=True, slots=True)
class LimitTable:
    """A line for each part that has a cap: what is used of it, and its price."""

    labels: Array  # (n_parts,)
    units: IntArray  # (n_parts,): number of units
    used: FloatArray  # (n_parts,)
    caps: FloatArray  # (n_parts,)
    prices: FloatArray  # (n_parts,)

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = 10) -> str:
        """The parts with the highest prices as lines."""
        order = np.argsort(-self.prices, kind="stable")[:most]
        lines = [f"{'part':>12} {'units':>9} {'used':>12} {'cap':>12} {'price':>10}"]
        lines += [
            f"{self.labels[k]!s:>12} {self.units[k]:>9,} {self.used[k]:>12.6g} "
            f"{self.caps[k]:>12.6g} {self.prices[k]:>10.4g}"
            for k in order
        ]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Plan(DoseChoices):
    """One dose for every unit.

    `bound` is proven: no plan within the limits has more value, not even one that mixes doses, so
    the best plan is at most `gap` better than this one.
    """

    dose_index: IntArray  # (n_units,): place of the dose in `doses`
    doses: DoseArray  # (n_doses,): what could be given
    value: float
    expected_value: float  # the same, but where uncertainty has taken something off values
    cost: float
    bound: float
    shadow_price: ShadowPrices
    unit_values: FloatArray  # (n_units,)
    unit_costs: FloatArray  # (n_units,)
    budget: float = np.inf
    by_group: LimitTable | None = None
    by_cell: LimitTable | None = None

    @property
    def gap(self) -> float:
        """What the best plan can have more at most."""
        return self.bound - self.value

    @property
    def _amounts(self) -> tuple[FloatArray, FloatArray]:
        return self.unit_values, self.unit_costs

    def policy(
        self,
        forest: Any,
        *,
        group_column: str | None = None,
        cell_column: str | None = None,
        unseen: float | str = "baseline",
        **rules: Any,
    ) -> DosePolicy:
        """The policy that gives units the plan's doses at its shadow prices, new units too.

        Parameters
        ----------
        forest : what predicts responses
        group_column, cell_column, unseen
            See `DosePolicy.at_prices`.
        **rules
            ``value``, ``cost`` and other parameters of `DosePolicy`: those that made the plan.
        """
        from doseforest.policy.artifact.dose_policy import DosePolicy

        draft = DosePolicy(forest, self.doses, **rules)
        return draft.at_prices(
            self, group_column=group_column, cell_column=cell_column, unseen=unseen
        )

    def __str__(self) -> str:
        counts = self.counts()
        given = ", ".join(
            f"{dose_text(self.doses[k])}: {counts[k]:,}" for k in np.flatnonzero(counts)
        )
        spent = f"{self.cost:.6g}" + (f" of {self.budget:.6g}" if self.budget < np.inf else "")
        return (
            f"{len(self.dose_index):,} units: value {self.value:.6g} (at most {self.gap:.3g} below "
            f"the best), cost {spent}, shadow price {self.shadow_price.budget:.4g}\n"
            f"units by dose: {given or 'none'}"
        )


def limit_table(limit: Limit, used: FloatArray, prices: FloatArray) -> LimitTable:
    """The table of a limit with several parts."""
    parts = np.empty(0, np.int64) if limit.parts is None else limit.parts
    units = np.bincount(parts, minlength=len(limit.caps))
    return LimitTable(limit.labels, units, used, limit.caps, prices)
