"""What every dose would bring each unit at a policy's prices, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.policy.artifact.dose_limits import within_limits
from doseforest.policy.artifact.part_prices import PartPrices
from doseforest.policy.artifact.policy_decisions import CODES, Decisions
from doseforest.policy.artifact.unit_columns import Units

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
    components: tuple[str, ...] | None  # names of the components of doses that have several

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Doses that a unit may be given, (n_units, n_doses): the baseline where there are none."""
        usable = self.allowed.copy() if self.supported is None else self.allowed & self.supported
        usable[self.problem > 0] = False
        usable[~usable.any(axis=1), self.baseline] = True
        return usable


def weigh(policy: DosePolicy, units: Units) -> Alternatives:
    """Predict every dose for every unit and put a policy's rules and prices to it."""
    doses, shape = policy.doses, (units.n_units, len(policy.doses))
    prices = policy.budget_price + _prices(policy.group_prices, units)
    cell_prices = _prices(policy.cell_prices, units)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found below
        response = np.asarray(policy.forest.dose_response(units.features, policy.plain_doses))
        line = policy.value.line(units, doses)
        value = np.broadcast_to(line.at(response), shape)
        nothing = np.broadcast_to(np.zeros((1, 1)), shape)
        cost = nothing
        if policy.cost is not None:
            cost = np.broadcast_to(policy.cost.line(units, doses).at(response), shape)
        demand = nothing
        if policy.cell_prices is not None:
            demand = np.broadcast_to(policy.demand.line(units, doses).at(response), shape)
        errors = _curves(policy.errors, units)
        adjusted = value
        if errors is not None and policy.risk is not None:
            adjusted = value - policy.risk.penalty(np.abs(line.slope) * errors)
        net = adjusted - prices[:, None] * cost - cell_prices[:, None] * demand
    allowed = within_limits(units, doses, policy.min_dose, policy.max_dose)
    shares = _curves(policy.support, units)
    unseen = np.isnan(prices) | np.isnan(cell_prices)
    invalid = units.invalid | _missing_limits(policy, units)
    invalid |= ~np.isfinite(np.where(unseen[:, None], adjusted + cost + demand, net)).all(axis=1)
    problem = np.where(invalid, CODES["invalid"], np.where(unseen, CODES["unseen"], 0))
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
        supported=None if shares is None else shares >= SUPPORTED_SHARE,
        problem=problem.astype(np.int8),
        components=policy.components,
    )


def _prices(parts: PartPrices | None, units: Units) -> FloatArray:
    if parts is None:
        return np.zeros(units.n_units)
    return parts.of_units(units.columns[parts.column])


def _curves(source: Any, units: Units) -> FloatArray | None:
    """What a model of support or of standard errors says of every dose of the policy."""
    return None if source is None else np.asarray(source.dose_response(units.features))


def _missing_limits(policy: DosePolicy, units: Units) -> NDArray[np.bool_]:
    missing = np.zeros(units.n_units, bool)
    for limit in (policy.min_dose, policy.max_dose):
        if isinstance(limit, str):
            missing |= np.isnan(units.numbers(limit))
    return missing


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


def decisions_at(
    weighed: Alternatives, choice: IntArray, codes: NDArray[np.int8], propensity: FloatArray
) -> Decisions:
    """Decisions with what is known of the chosen doses."""
    every = np.arange(len(choice))

    def chosen(matrix: Any) -> FloatArray:
        picked: FloatArray = matrix[every, choice].astype(np.float64)
        return picked

    unknown: FloatArray = np.full(len(choice), np.nan)
    usable = weighed.usable
    others = np.where(usable, weighed.net, -np.inf)
    others[every, choice] = -np.inf
    second = others.argmax(axis=1)
    second_net = others[every, second]
    has_second = np.isfinite(second_net) & (weighed.problem == 0)
    free = np.where(usable, weighed.adjusted_value, -np.inf)
    decided = weighed.problem == 0
    response = chosen(weighed.response)
    errors, supported = weighed.standard_error, weighed.supported
    return Decisions(
        doses=weighed.doses,
        dose_index=choice,
        propensity=propensity,
        reason_code=codes,
        baseline=weighed.doses[weighed.baseline],
        value=chosen(weighed.value),
        cost=chosen(weighed.cost),
        net=chosen(weighed.net),
        shadow_price=weighed.shadow_price,
        cell_price=weighed.cell_price,
        response=response,
        effect=response - weighed.response[:, weighed.baseline],
        standard_error=unknown if errors is None else chosen(errors),
        supported=unknown if supported is None else chosen(supported),
        runner_up=np.where(has_second, second, -1),
        runner_up_net=np.where(has_second, second_net, np.nan),
        unpriced=np.where(decided, np.argmax(np.where(decided[:, None], free, 0.0), axis=1), -1),
        components=weighed.components,
    )
