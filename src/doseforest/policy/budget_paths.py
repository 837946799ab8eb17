"""The whole path of value against budget, from one pass over the hulls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.base.late import late
from doseforest.policy.dose_plan import Plan
from doseforest.policy.hulls import hull_increments
from doseforest.policy.planning import plan_of
from doseforest.policy.policy_inputs import budget_limit, checked_number, checked_problem
from doseforest.policy.problem import ROUNDING, DoseProblem, InfeasibleError
from doseforest.policy.solver import Solution

if TYPE_CHECKING:
    from doseforest.policy.held_out_value import PolicyValue


@dataclass(frozen=True, slots=True)
class BudgetPath:
    """What every budget buys: vertices of a concave curve, one for each increment of a unit.

    Between two vertices the best plan has at most the value on the line between them.

    Attributes
    ----------
    budgets : array of shape (n_vertices,)
        Budgets, ascending from what the cheapest doses cost.
    values : array of shape (n_vertices,)
        Value of the plan at each, ascending.
    shadow_prices : array of shape (n_vertices,)
        Slope to the next vertex: what one more unit of budget brings; 0 at the last.
    problem : DoseProblem
        Values, costs and limits of the units.
    start : array of int of shape (n_units,)
        The cheapest doses.
    units : array of int of shape (n_vertices - 1,)
        The unit that moves to a dearer dose at each vertex.
    moves : array of int of shape (n_vertices - 1,)
        The dose it moves to.

    Examples
    --------
    >>> path = budget_path(value=[[0, 2, 3], [0, 3, 3.5]], cost=[0, 1, 2])
    >>> len(path), path.values
    (5, array([0. , 3. , 5. , 6. , 6.5]))
    """

    budgets: FloatArray  # (n_vertices,)
    values: FloatArray  # (n_vertices,)
    shadow_prices: FloatArray  # (n_vertices,)
    problem: DoseProblem = field(repr=False)
    start: IntArray = field(repr=False)  # (n_units,)
    units: NDArray[np.int32] = field(repr=False)  # (n_vertices - 1,)
    moves: NDArray[np.int16] = field(repr=False)  # (n_vertices - 1,)

    def __len__(self) -> int:
        return len(self.budgets)

    def bound(self, budget: Any) -> FloatArray:
        """The most that budgets can buy, mixtures of doses included.

        Parameters
        ----------
        budget : float or array
            Budgets.

        Returns
        -------
        array of the shape of `budget`
            Values; NaN below what the cheapest doses cost.
        """
        return np.interp(np.asarray(budget, np.float64), self.budgets, self.values, left=np.nan)

    def at(self, budget: float) -> Plan:
        """Make the plan of a budget: its gap is below the next increment of a single unit.

        `optimize_doses` also spends what is left of the budget before that increment.

        Parameters
        ----------
        budget : float
            The budget, at least what the cheapest doses cost.

        Returns
        -------
        Plan
            One dose for every unit.
        """
        own = checked_number(budget, "budget")
        room = own + ROUNDING * abs(own) if own < np.inf else own
        place = int(np.searchsorted(self.budgets, room, side="right")) - 1
        if place < 0:
            raise InfeasibleError(
                f"The 'budget' parameter must be at least {self.budgets[0]:.10g}, what the "
                f"cheapest allowed doses cost. Got {budget} instead."
            )
        choice = self.start.copy()
        choice[self.units[:place]] = self.moves[:place]  # a unit's last move is written last
        value = float(self.problem.chosen(self.problem.value, choice).sum())
        beyond = float(self.bound(own)) - float(self.values[place])
        prices = (self.shadow_prices[place : place + 1].copy(),)
        limit = budget_limit(self.problem, own)
        return plan_of(
            self.problem, (limit,), Solution(choice, prices, value, value + max(beyond, 0.0))
        )

    def plot(
        self,
        *,
        budget: float | None = None,
        held_out: Sequence[PolicyValue] = (),
        ax: Any | None = None,
    ) -> Any:
        """Draw gain against budget; needs the `plot` extra.

        Parameters
        ----------
        budget : float, optional
            A budget to mark.
        held_out : sequence of PolicyValue, optional
            What `policy_value` says of policies at some budgets, drawn as points with intervals for
            as many units as the path has; their baseline should be the cheapest dose.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.policy_plots:plot_budget_path")(
            self, budget=budget, held_out=held_out, ax=ax
        )


def budget_path(
    value: Any,
    cost: Any,
    *,
    doses: Any = None,
    allowed: Any = None,
    min_dose: Any = None,
    max_dose: Any = None,
    allow_negative_cost: bool = False,
    n_units: int | None = None,
) -> BudgetPath:
    """Value against budget for every budget, in one solve.

    Work is that of one sort of all increments, of which there are at most n_units x (n_doses - 1);
    memory about 77 bytes for each while it is made and 31 in the result, which also refers to
    `value` and `cost`.

    Parameters
    ----------
    value : array of shape (n_units, n_doses), or function
        Value of each dose for each unit. A function is called with slices of units, and returns
        (units, n_doses).
    cost : array of shape (n_units, n_doses) or (n_doses,), or function
        Expected cost of each dose.
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
        What the columns stand for; by default 0, 1, 2, …
    allowed : array of bool of shape (n_units, n_doses) or (n_doses,), optional
        Doses that a unit may be given; by default all.
    min_dose, max_dose : dose, or one for each unit, optional
        Ends of what a unit may be given, both included; in every component.
    allow_negative_cost : bool, default=False
        Whether a dose may earn money. Refused by default, since a cost with the wrong sign would
        otherwise go unnoticed.
    n_units : int, optional
        Number of units, where `value` is a function.

    Returns
    -------
    BudgetPath
        Every vertex, from which `BudgetPath.at` makes the plan of any budget.

    Examples
    --------
    >>> path = budget_path(value=[[0, 2, 3], [0, 3, 3.5]], cost=[0, 1, 2])
    >>> path.budgets, path.values
    (array([0., 1., 2., 3., 4.]), array([0. , 3. , 5. , 6. , 6.5]))
    >>> path.shadow_prices
    array([3. , 2. , 1. , 0.5, 0. ])
    >>> path.at(3).dose_index
    array([2, 1])
    """
    problem = checked_problem(
        value,
        cost,
        doses=doses,
        n_units=n_units,
        allowed=allowed,
        min_dose=min_dose,
        max_dose=max_dose,
        allow_negative_cost=allow_negative_cost,
    )
    steps = hull_increments(problem, problem.cost)
    order = np.argsort(-steps.slopes, kind="stable")
    slopes, weights = steps.slopes[order], steps.weights[order]
    spent = problem.chosen(problem.cost, steps.start).sum()
    gained = problem.chosen(problem.value, steps.start).sum()
    return BudgetPath(
        budgets=np.cumsum(np.concatenate([[spent], weights])),
        values=np.cumsum(np.concatenate([[gained], slopes * weights])),
        shadow_prices=np.append(slopes, 0.0),
        problem=problem,
        start=steps.start,
        units=steps.units[order],
        moves=steps.doses[order],
    )
