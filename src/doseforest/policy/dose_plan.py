"""What was decided: doses of the units, totals, prices, and how far from the best it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.doses.dose_values import dose_text
from doseforest.policy.dose_choices import DoseChoices
from doseforest.policy.problem import Limit

if TYPE_CHECKING:
    from doseforest.policy.artifact.dose_policy import DosePolicy


@dataclass(frozen=True, slots=True)
class ShadowPrices:
    """What one more unit of a cap would add to the value; 0 where the cap does not bind.

    A unit's dose at these prices is the one of largest
    value - (budget + groups[its group]) x cost - cells[its cell] x demand.

    Attributes
    ----------
    budget : float
        Price of a unit of the budget.
    groups : array of shape (n_groups,)
        Price of a unit of each group's budget, in the order of ``Plan.by_group``.
    cells : array of shape (n_cells,)
        Price of a unit of each cell's supply, in the order of ``Plan.by_cell``.

    Examples
    --------
    >>> from doseforest.policy import optimize_doses
    >>> optimize_doses([[0, 1], [0, 3]], cost=[0, 1], budget=1).shadow_price.budget
    1.0
    """

    budget: float = 0.0
    groups: FloatArray = field(default_factory=lambda: np.empty(0))  # (n_groups,)
    cells: FloatArray = field(default_factory=lambda: np.empty(0))  # (n_cells,)


@dataclass(frozen=True, slots=True)
class LimitTable:
    """A line for each part that has a cap: what is used of it, and its price.

    Attributes
    ----------
    labels : array of shape (n_parts,)
        Labels of the groups or cells.
    units : array of int of shape (n_parts,)
        Number of units.
    used : array of shape (n_parts,)
        Cost or demand of the plan.
    caps : array of shape (n_parts,)
        The most that may be used.
    prices : array of shape (n_parts,)
        Shadow prices.

    Examples
    --------
    >>> from doseforest.policy import optimize_doses
    >>> plan = optimize_doses(
    ...     [[0, 2], [0, 3]], cost=[0, 1], groups=["a", "b"], group_budgets={"a": 0, "b": 1}
    ... )
    >>> plan.by_group.used
    array([0., 1.])
    """

    labels: Array  # (n_parts,)
    units: IntArray  # (n_parts,)
    used: FloatArray  # (n_parts,)
    caps: FloatArray  # (n_parts,)
    prices: FloatArray  # (n_parts,)

    def __len__(self) -> int:
        return len(self.labels)

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = 10) -> str:
        """The parts with the highest prices as lines.

        Parameters
        ----------
        most : int, default=10
            Number of parts.

        Returns
        -------
        str
            A table.
        """
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
    """One dose for every unit, with a certified gap to the best plan.

    `bound` is proven: no plan within the limits has more value, not even one that mixes doses, so
    the best plan is at most `gap` better than this one.

    Attributes
    ----------
    dose_index : array of int of shape (n_units,)
        Place of each unit's dose in ``doses``.
    doses : array of shape (n_doses,)
        Doses that could be given.
    value : float
        Total value, less what uncertainty takes off.
    expected_value : float
        Total of the values as they were given.
    cost : float
        Total cost.
    bound : float
        The most that any plan within the limits can have.
    shadow_price : ShadowPrices
        What one more unit of each cap would add.
    unit_values : array of shape (n_units,)
        Value of each unit's dose.
    unit_costs : array of shape (n_units,)
        Cost of each unit's dose.
    budget : float
        The budget; infinite without one.
    by_group : LimitTable or None
        Budgets of groups, where there are any.
    by_cell : LimitTable or None
        Supplies of cells, where there are any.

    Examples
    --------
    >>> from doseforest.policy import optimize_doses
    >>> plan = optimize_doses([[0, 1], [0, 3]], cost=[0, 1], budget=1, doses=[0, 10])
    >>> plan.dose, plan.value, plan.gap
    (array([ 0., 10.]), 3.0, 0.0)
    """

    dose_index: IntArray  # (n_units,)
    doses: DoseArray  # (n_doses,)
    value: float
    expected_value: float
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
        forest : GeneralizedCausalForest, EffectForest, DistilledForest, or what has `dose_response`
            Predicts responses.
        group_column : str, optional
            Column in which units say their group, where groups have budgets.
        cell_column : str, optional
            Column in which units say their cell, where cells have supplies.
        unseen : float or "baseline", default="baseline"
            Price of labels that the plan has not seen, see `PartPrices`.
        **rules
            ``value``, ``cost`` and other parameters of `DosePolicy`: those that made the plan.

        Returns
        -------
        DosePolicy
            The policy.
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
