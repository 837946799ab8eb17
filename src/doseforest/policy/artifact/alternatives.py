"""What every dose would bring each unit at a policy's prices, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.policy.artifact.dose_limits import within_limits
from doseforest.policy.artifact.policy_decisions import CODES
from doseforest.policy.artifact.unit_columns import CheckedUnits

if TYPE_CHECKING:
    from doseforest.policy.artifact.dose_policy import DosePolicy

SUPPORTED_SHARE = 0.5  # of the training units like this one for whom the dose was possible
TIE = 1e-10  # of the largest amounts that are compared: closer nets are equal


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Every dose for every unit. `optimize_doses` takes `adjusted_value`, `cost` and `usable`."""

    doses: DoseArray  # (n_doses,)
    baseline: int  # place of the baseline among the doses
    response: FloatArray  # (n_units, n_doses): predicted
    value: FloatArray  # (n_units, n_doses): expected
    adjusted_value: FloatArray  # (n_units, n_doses): less what uncertainty takes
    cost: FloatArray  # (n_units, n_doses)
    demand: FloatArray  # (n_units, n_doses): of cells; 0 where they have no prices
    net: FloatArray  # (n_units, n_doses): adjusted value less what the prices take
    standard_error: FloatArray | None  # (n_units, n_doses): of effects
    shadow_price: FloatArray  # (n_units,): of a unit of cost
    cell_price: FloatArray  # (n_units,): of a unit of demand
    allowed: NDArray[np.bool_]  # (n_units, n_doses): within the unit's limits
    supported: NDArray[np.bool_] | None  # (n_units, n_doses)
    problem: NDArray[np.int8]  # (n_units,): why it cannot be decided on, or 0
    usable: NDArray[np.bool_]  # (n_units, n_doses): what a unit may have; at least the baseline
    components: tuple[str, ...] | None  # names of the components of doses that have several


def weigh(policy: DosePolicy, units: CheckedUnits) -> Alternatives:
    """Predict every dose for every unit and put a policy's rules and prices to it."""
    doses, shape = policy.doses, (units.n_units, len(policy.doses))
    nobody, nothing = np.zeros(units.n_units), np.broadcast_to(np.zeros((1, 1)), shape)
    groups, cells = policy.group_prices, policy.cell_prices
    prices = policy.budget_price + (
        nobody if groups is None else groups.of_units(units.columns[groups.column])
    )
    cell_prices = nobody if cells is None else cells.of_units(units.columns[cells.column])
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found below
        response = units.curves(policy.forest, doses)
        line = policy.value.line(units, doses)
        value = np.broadcast_to(line.at(response), shape)
        cost = demand = nothing
        if policy.cost is not None:
            cost = np.broadcast_to(policy.cost.line(units, doses).at(response), shape)
        if cells is not None:
            demand = np.broadcast_to(policy.demand.line(units, doses).at(response), shape)
        errors = None if policy.errors is None else units.curves(policy.errors)
        adjusted = value
        if errors is not None and policy.risk is not None:
            adjusted = value - policy.risk.penalty(np.abs(line.slope) * errors)
        net = adjusted - prices[:, None] * cost - cell_prices[:, None] * demand
    allowed = within_limits(units, doses, policy.min_dose, policy.max_dose)
    supported = None
    if policy.support is not None:
        supported = units.curves(policy.support) >= SUPPORTED_SHARE
    unseen = np.isnan(prices) | np.isnan(cell_prices)
    invalid = units.invalid.copy()
    for limit in (policy.min_dose, policy.max_dose):
        if isinstance(limit, str):
            invalid |= np.isnan(units.numbers(limit))
    invalid |= ~np.isfinite(np.where(unseen[:, None], adjusted + cost + demand, net)).all(axis=1)
    problem = np.where(invalid, CODES["invalid"], np.where(unseen, CODES["unseen"], 0))
    usable = allowed.copy() if supported is None else allowed & supported
    usable[problem > 0] = False
    usable[~usable.any(axis=1), policy.baseline_place] = True
    return Alternatives(
        doses=doses,
        baseline=policy.baseline_place,
        response=response,
        value=value,
        adjusted_value=adjusted,
        cost=cost,
        demand=demand,
        net=net,
        standard_error=errors,
        shadow_price=prices,
        cell_price=cell_prices,
        allowed=allowed,
        supported=supported,
        problem=problem.astype(np.int8),
        usable=usable,
        components=policy.components,
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """The best dose of every unit, and why."""

    dose_index: IntArray  # (n_units,)
    reason_code: NDArray[np.int8]  # (n_units,)


def choose(weighed: Alternatives) -> Choice:
    """The usable dose of largest net value; of equals the cheapest, then the lowest."""
    every = np.arange(len(weighed.net))
    usable = weighed.usable
    slack = TIE * np.abs(np.where(np.isfinite(weighed.net), weighed.net, 0.0)).max(axis=1)
    masked = np.where(usable, weighed.net, -np.inf)
    masked[weighed.problem > 0, weighed.baseline] = 0.0  # the only one, whatever it would bring
    best = masked.max(axis=1)
    equal = masked >= (best - slack)[:, None]
    choice = np.where(equal, weighed.cost, np.inf).argmin(axis=1)
    choice[weighed.problem > 0] = weighed.baseline
    codes = weighed.problem.copy()
    decided = weighed.problem == 0
    if not (weighed.allowed.all() and usable.all()):
        wish = np.where(decided[:, None], weighed.net, 0.0).argmax(axis=1)
        better = decided & (weighed.net[every, wish] > best + slack)
        codes[better] = CODES["limited"]
        codes[better & weighed.allowed[every, wish]] = CODES["supported"]
        candidates = weighed.allowed.any(axis=1)
        codes[decided & ~candidates] = CODES["no_dose"]
        if weighed.supported is not None:
            none_left = ~(weighed.allowed & weighed.supported).any(axis=1)
            codes[decided & candidates & none_left] = CODES["no_support"]
    return Choice(choice, codes)
