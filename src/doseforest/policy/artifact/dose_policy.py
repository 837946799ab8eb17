"""A forest with rules and prices: it decides for new units, one by one, and says why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.base.late import late
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.estimator.effect_forest import EffectForest
from doseforest.policy.artifact.alternatives import Alternatives, choose, weigh
from doseforest.policy.artifact.dose_limits import (
    Limit,
    checked_components,
    checked_doses,
    checked_limit,
    place_of,
)
from doseforest.policy.artifact.part_prices import FALLBACK, PartPrices
from doseforest.policy.artifact.policy_decisions import Decisions, decisions_at, joined
from doseforest.policy.artifact.unit_columns import CheckedUnits, read_units
from doseforest.policy.artifact.unit_models import (
    checked_errors,
    checked_support,
    served_forest,
    with_features_of_forest,
)
from doseforest.policy.artifact.value_rules import (
    AmountRule,
    Response,
    check_components,
    checked_rule,
)
from doseforest.policy.risk import Risk, checked_risk

if TYPE_CHECKING:
    from doseforest.policy.dose_plan import LimitTable, Plan


@dataclass(frozen=True, slots=True, eq=False)
class DosePolicy:
    """Decides on doses by a forest's curves, rules of value and cost, and prices of what is scarce.

    A unit gets the dose of largest

        value - (budget price + its group's price) x cost - its cell's price x demand

    among those that it may have. With the shadow prices of a plan this is the plan's choice for
    each unit alone, so it serves new units in constant time. Of doses that are equal up to rounding
    the cheapest is taken, then the lowest: no randomness.

    Parameters
    ----------
    forest : GeneralizedCausalForest, EffectForest, DistilledForest, or what has `dose_response`
        Predicts the response of units to doses. A distilled forest answers fastest. A policy of
        another kind of model works, but cannot be saved.
    doses : array of shape (n_doses,) or (n_doses, n_components), optional
        What may be given, ascending; by default the forest's grid. Fewer doses make decisions
        faster.
    value : AmountRule, default=Response()
        What a dose brings, see `Response`, `DiscountCost`, `DoseCost`, `Fee` and their sums.
    cost : AmountRule, optional
        What a dose costs, at the prices that follow; by default nothing.
    budget_price : float, default=0.0
        What a unit of cost must bring: ``plan.shadow_price.budget``. Raise it to spend less.
    group_prices : PartPrices, optional
        What a unit of cost must bring beyond that, by the label of the unit's group.
    cell_prices : PartPrices, optional
        Price of a unit of demand, by the label of the unit's cell. Raise one where a cell runs
        short.
    demand : AmountRule, default=Response()
        What a unit takes of its cell's supply.
    min_dose, max_dose : float or str, optional
        Ends of what a unit may be given, both included: of all, or a column with an end for each
        unit.
    baseline : dose, optional
        One of the doses, which effects are measured against and which units get that cannot be
        decided on; by default that of the forest.
    support : "auto", None, fitted GeneralizedCausalForest or DistilledForest, default="auto"
        Which doses a unit could have had, by which it may be given them. "auto" asks the forest
        where it is a fitted GeneralizedCausalForest (`supported`), and keeps the answer as a small
        forest; None lets every dose be given, also those about which the data say nothing.
    errors : DistilledForest, optional
        Standard errors of the units' effects, see `unit_table`; decisions then carry intervals.
    risk : LowerBound or MeanVariance, optional
        What uncertainty takes off values; needs `errors`.
    components : sequence of str, optional
        Names of the components of doses that have several, such as two discounts; by default
        "0", "1" and so on. The decision service answers by them.

    Attributes
    ----------
    baseline_place : int
        Place of the baseline among the doses.
    columns : tuple of str
        Columns that rules, limits and prices need beside the features.

    Examples
    --------
    >>> from doseforest.policy import DoseCost, DosePolicy, unit_table
    >>> x = np.linspace(0, 4, 200)[:, None]
    >>> curves = unit_table(x, x * [0.0, 1.0], doses=[0.0, 1.0])  # what a dose of 1 does is x
    >>> policy = DosePolicy(curves, cost=DoseCost(1.0), budget_price=2.0)
    >>> decisions = policy.decide([[1.0], [3.8]])
    >>> decisions.dose
    array([0., 1.])
    >>> print(decisions.explain(1))
    dose 1: the best of all doses at these prices
    response 3.84, +3.84 against dose 0
    value 3.84, cost 1 at prices of 2 per unit of cost: net 1.84
    next: dose 0, net 0
    """

    forest: Any
    doses: DoseArray = None  # type: ignore[assignment]  # (n_doses,) once it is made
    value: AmountRule = field(default_factory=Response)
    cost: AmountRule | None = None
    budget_price: float = 0.0
    group_prices: PartPrices | None = None
    cell_prices: PartPrices | None = None
    demand: AmountRule = field(default_factory=Response)
    min_dose: Limit = None
    max_dose: Limit = None
    baseline: Any = None
    support: Any = "auto"
    errors: Any = None
    risk: Risk | None = None
    components: tuple[str, ...] | None = None
    baseline_place: int = field(init=False)
    columns: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        served = served_forest(self.forest)
        given = getattr(served, "doses", None) if self.doses is None else self.doses
        doses = checked_doses(given)
        if isinstance(served, EffectForest | DistilledForest):
            served.check_asked(doses=doses)
        start = getattr(served, "baseline", None) if self.baseline is None else self.baseline
        place = place_of(doses[0] if start is None else start, doses, "baseline")
        support = checked_support(self.support, self.forest, doses)
        errors = checked_errors(self.errors, doses)
        normal = {
            "support": with_features_of_forest(support, "support", served),
            "errors": with_features_of_forest(errors, "errors", served),
            "risk": checked_risk(self.risk),
            "forest": served,
            "doses": doses.values,
            "components": checked_components(self.components, doses),
            "value": checked_rule(self.value, "value"),
            "cost": None if self.cost is None else checked_rule(self.cost, "cost"),
            "demand": checked_rule(self.demand, "demand"),
            "budget_price": _price(self.budget_price),
            "min_dose": checked_limit(self.min_dose, "min_dose", doses),
            "max_dose": checked_limit(self.max_dose, "max_dose", doses),
            "baseline": doses[place].element,
            "baseline_place": place,
        }
        for name, value in normal.items():
            object.__setattr__(self, name, value)
        _check_together(self)
        object.__setattr__(self, "columns", self._columns())

    @property
    def plain_doses(self) -> FloatArray:
        """The doses as numbers, (n_doses,) or (n_doses, n_components)."""
        doses: FloatArray = Doses.of(self.doses).plain
        return doses

    @property
    def rules(self) -> tuple[AmountRule, ...]:
        """Rules of value, cost and demand, as far as they are used."""
        demand = self.demand if self.cell_prices is not None else None
        return tuple(rule for rule in (self.value, self.cost, demand) if rule is not None)

    def _columns(self) -> tuple[str, ...]:
        parts = [each.column for each in (self.group_prices, self.cell_prices) if each is not None]
        limits = [each for each in (self.min_dose, self.max_dose) if isinstance(each, str)]
        named = [name for rule in self.rules for name in rule.columns()]
        return tuple(dict.fromkeys([*named, *parts, *limits]))

    def decide(self, X: Any, context: Any = None) -> Decisions:
        """Choose a dose for every unit, and say why.

        Units with infinite features, with none at all, or without a number that a rule needs get
        the baseline, and so say their reasons.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            The forest's features; a frame may also hold the columns that rules name.
        context : mapping or frame of columns, optional
            Columns beside X, with an entry for each unit or one for all. They go before those of X.

        Returns
        -------
        Decisions
            Doses, with reasons and predictions.
        """
        units = read_units(X, context, self.columns, self.forest)
        return joined([self.decide_checked(block) for block in units.blocks()])

    def decide_checked(self, units: CheckedUnits) -> Decisions:
        """`decide` for units that were checked before, as a service has them.

        Parameters
        ----------
        units : CheckedUnits
            Features and columns of the units.

        Returns
        -------
        Decisions
            Doses, with reasons and propensities.
        """
        weighed = weigh(self, units)
        best = choose(weighed)
        return decisions_at(weighed, best.dose_index, best.reason_code)

    def alternatives(self, X: Any, context: Any = None) -> Alternatives:
        """Predict every dose for every unit: response, value, cost, and what prices take.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            As in `decide`.
        context : mapping or frame of columns, optional
            As in `decide`.

        Returns
        -------
        Alternatives
            Arrays of shape (n_units, n_doses). `optimize_doses` takes its ``adjusted_value``,
            ``cost`` and ``usable``.
        """
        return weigh(self, read_units(X, context, self.columns, self.forest))

    def propensities(self, X: Any, context: Any = None) -> FloatArray:
        """Probability of every dose: 1 for that of `decide`.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            As in `decide`.
        context : mapping or frame of columns, optional
            As in `decide`.

        Returns
        -------
        array of shape (n_units, n_doses)
            The probabilities.
        """
        return self.decide(X, context).propensities

    def at_prices(
        self,
        plan: Plan,
        *,
        group_column: str | None = None,
        cell_column: str | None = None,
        unseen: float | str = FALLBACK,
    ) -> DosePolicy:
        """The same policy at the shadow prices of a plan.

        Parameters
        ----------
        plan : Plan
            Of `optimize_doses`, with these doses.
        group_column, cell_column : str, optional
            Columns in which units say their group and cell, where the plan has such limits.
        unseen : float or "baseline", default="baseline"
            Price of labels that the plan has not seen, see `PartPrices`.

        Returns
        -------
        DosePolicy
            A new policy.
        """
        if not np.array_equal(plan.doses, self.doses):
            raise ValueError(
                "The 'plan' parameter must be of the policy's doses "
                f"{', '.join(map(dose_text, self.doses[:8]))}. Got a plan of "
                f"{', '.join(map(dose_text, plan.doses[:8]))} instead."
            )
        return replace(
            self,
            budget_price=plan.shadow_price.budget,
            group_prices=_part_prices(plan.by_group, group_column, "group_column", unseen),
            cell_prices=_part_prices(plan.by_cell, cell_column, "cell_column", unseen),
        )

    def save(self, path: str | Path) -> None:
        """Write the policy with its forest to one file, which `load_policy` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        late("doseforest.files.policy_file:save_policy")(self, path)


def _price(price: Any) -> float:
    fits = isinstance(price, Real) and not isinstance(price, bool) and isfinite(price)
    if not fits or price < 0:
        raise ValueError(
            "The 'budget_price' parameter must be a finite number of at least 0. "
            f"Got {price!r} instead."
        )
    return float(price)


def _check_together(policy: DosePolicy) -> None:
    for rule in policy.rules:
        check_components(rule, policy.doses)
    for name in ("group_prices", "cell_prices"):
        own = getattr(policy, name)
        if own is not None and not isinstance(own, PartPrices):
            raise TypeError(
                f"The {name!r} parameter must be PartPrices(column, prices). Got {own!r} instead."
            )
    if policy.cost is None and (policy.budget_price > 0 or policy.group_prices is not None):
        raise ValueError(
            "The 'cost' parameter must be given where 'budget_price' or 'group_prices' are. "
            "Got None instead."
        )
    if policy.risk is not None and policy.errors is None:
        raise ValueError(
            "The 'errors' parameter must be given together with 'risk': without standard errors "
            "nothing is known of uncertainty. Got None instead."
        )


def _part_prices(
    table: LimitTable | None, column: str | None, name: str, unseen: float | str
) -> PartPrices | None:
    if (table is None) != (column is None):
        got, rule = (column, "be left out of") if table is None else (None, "be given for")
        limits = name.replace("_column", "s")
        raise ValueError(
            f"The {name!r} parameter must {rule} a plan {'without' if table is None else 'with'} "
            f"limits of {limits}. Got {got!r} instead."
        )
    if table is None or column is None:
        return None
    return PartPrices(column, dict(zip(table.labels.tolist(), table.prices, strict=True)), unseen)
