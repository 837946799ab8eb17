"""What a policy is worth: what its own forest promises, and what held-out outcomes say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.base.late import late
from doseforest.doses.curve_effects import one_dose, unit_doses
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.estimator.averages.average_curves import average_of_units
from doseforest.policy.artifact.dose_limits import place_of
from doseforest.policy.artifact.unit_columns import CheckedUnits, read_units
from doseforest.policy.artifact.value_rules import (
    AmountRule,
    Response,
    check_components,
    checked_rule,
)
from doseforest.policy.held_out_scores import (
    HeldOutScores,
    check_seen,
    scores_by_nuisances,
    scores_by_propensity,
)


@dataclass(frozen=True, slots=True, repr=False)
class PolicyValue(Estimate):
    """Value of a policy per unit, predicted and by held-out outcomes.

    A policy takes the doses that its forest likes best, and so those whose effects the forest
    overstates: `predicted_gain` is optimistic. `gain` is doubly robust, by outcomes that neither
    the forest nor the policy has seen, and is not, as `value` and `cost` are not. `overstated` is
    the difference.

    Attributes
    ----------
    value : float
        Value per unit by held-out outcomes.
    standard_error : float
        Standard error of the value.
    degrees : float
        Degrees of freedom of the standard error.
    n_units : int
        Number of units of positive weight.
    baseline : dose
        The dose that gains are measured against.
    predicted_value : float
        Value per unit that the forest predicts.
    predicted_cost : float
        Cost per unit that the forest predicts.
    cost : Estimate
        Cost per unit by held-out outcomes.
    predicted_gain : float
        Predicted value less that of the baseline for everybody.
    gain : Estimate
        Value less that of the baseline for everybody, by held-out outcomes.
    overstated : Estimate
        Predicted gain less gain.

    Examples
    --------
    >>> from doseforest.policy import policy_value
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.integers(0, 2, 1000)
    >>> policy_value(np.ones(1000), np.zeros((1000, 1)), 2.0 * dose, treatment=dose,
    ...              propensity=np.full(1000, 0.5)).value  # doctest: +SKIP
    2.0
    """

    n_units: int
    baseline: Any
    predicted_value: float
    predicted_cost: float
    cost: Estimate
    predicted_gain: float
    gain: Estimate
    overstated: Estimate

    def plot(self, *, ax: Any | None = None, **others: PolicyValue) -> Any:
        """Draw gains beside those of other policies, predicted and held-out; needs `plot`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        **others : PolicyValue
            Other policies, by the names that the picture shows.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.policy_plots:plot_policy_values")(
            {"policy": self, **others}, ax=ax
        )

    def __str__(self) -> str:
        lines = [f"{self.n_units:,} held-out units, per unit:"]
        lines.append(f"{'':>8} {'predicted':>11} {'held-out':>11} {'95 % interval':>25}")
        for name, predicted, held_out in (
            ("value", self.predicted_value, self),
            ("gain", self.predicted_gain, self.gain),
            ("cost", self.predicted_cost, self.cost),
        ):
            low, high = held_out.interval()
            ends = f"{low:.4g} to {high:.4g}"
            lines.append(f"{name:>8} {predicted:>11.4g} {held_out.value:>11.4g} {ends:>25}")
        off = self.overstated
        lines.append(
            f"The predicted gain over dose {dose_text(self.baseline)} is {off.value:+.3g} "
            f"off (standard error {off.standard_error:.2g})."
        )
        return "\n".join(lines)

    __repr__ = __str__


def policy_value(
    policy: Any,
    X: Any,
    y: Any,
    *,
    treatment: Any,
    forest: Any = None,
    propensity: Any = None,
    context: Any = None,
    value: AmountRule | None = None,
    cost: AmountRule | None = None,
    baseline: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
) -> PolicyValue:
    """The doubly robust value of a policy on held-out rows, beside what is predicted.

    Parameters
    ----------
    policy : DosePolicy, ConstantPolicy, ExplorationPolicy, Explore, or array of shape (n_rows,)
        The policy, or the doses of the rows, such as ``plan.dose`` of a plan for these very rows.
    X : table of shape (n_rows, n_features)
        Rows that the forest has not seen. A frame may have the columns that rules name.
    y : array of shape (n_rows,)
        Outcomes.
    treatment : array of shape (n_rows,) or (n_rows, n_components)
        Observed doses.
    forest : fitted GeneralizedCausalForest, or what has `dose_response`; optional
        Predicts responses; by default that of the policy. Where there are no `propensity` it must
        be a fitted GeneralizedCausalForest, whose nuisances then weigh the rows.
    propensity : array of shape (n_rows,) or (n_rows, n_doses), optional
        Of an experiment on the policy's doses: probability of each row's dose, or of every
        dose of the policy.
    context : mapping or frame of columns, optional
        As in `DosePolicy.decide`.
    value, cost : AmountRule, optional
        By default those of the policy, else the response and nothing.
    baseline : dose, optional
        One of the doses, for gains; by default the policy's or the forest's, else the lowest.
    sample_weight : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.
    groups : array of shape (n_rows,), optional
        Labels by which standard errors are clustered; by default rows are independent.

    Returns
    -------
    PolicyValue
        Value, gain and cost with standard errors, beside the predicted ones.

    Examples
    --------
    >>> from doseforest.policy import ConstantPolicy, policy_value
    >>> class Guess:  # a dose of 1 adds 3, it thinks
    ...     def dose_response(self, X, doses):
    ...         return np.ones((len(X), 1)) * [3.0 * dose for dose in doses]
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.integers(0, 2, 4000)
    >>> y = dose + rng.normal(size=4000)  # it adds 1
    >>> held_out = policy_value(np.ones(4000), np.zeros((4000, 1)), y, treatment=dose,
    ...                         forest=Guess(), propensity=np.full(4000, 0.5), baseline=0)
    >>> held_out.predicted_gain, round(held_out.gain.value, 1)
    (3.0, 1.0)
    """
    inner = getattr(policy, "policy", policy)  # of an exploring one
    own = _forest_of(inner, forest, propensity)
    served = getattr(own, "_model", own)
    given, chances = _given_doses(policy, X, context)
    doses, start = _with_baseline(given, _first(baseline, inner, served, "baseline"))
    chances = _spread(chances, given, doses)
    shared = {"sample_weight": sample_weight, "groups": groups}
    if propensity is None:
        result = scores_by_nuisances(own, doses.values, X, y, treatment, **shared)
    else:
        known = np.asarray(propensity)
        known = _spread(known, given, doses) if known.ndim == 2 else known
        result = scores_by_propensity(served, doses, X, y, treatment, known, **shared)
        check_seen(doses, (chances > 0).any(axis=0) | (doses == doses[start]), treatment)
    worth = checked_rule(_first(value, inner, None, "value") or Response(), "value")
    price = _first(cost, inner, None, "cost")
    price = None if price is None else checked_rule(price, "cost")
    for rule in (worth, price):
        if rule is not None:
            check_components(rule, doses)
    columns = worth.columns() + (() if price is None else price.columns())
    units = read_units(X, context, tuple(dict.fromkeys(columns)), served)
    return _summed(result, worth, price, units, doses, chances, start)


def _summed(
    found: HeldOutScores,
    worth: AmountRule,
    price: AmountRule | None,
    units: CheckedUnits,
    doses: Doses,
    chances: FloatArray,
    start: int,
) -> PolicyValue:
    """Means over rows of what rules make of predictions and scores at the policy's doses."""
    shape, kept = chances.shape, found.kept
    rules = [worth] if price is None else [worth, price]
    lines = [rule.line(units, doses.values) for rule in rules]
    mixed: list[FloatArray] = []
    for responses in (found.predicted, found.scores):
        for line in lines:
            slope, constant = (
                np.broadcast_to(part, shape)[kept] for part in (line.slope, line.constant)
            )
            amounts = constant + slope * responses
            mixed += [(amounts * chances[kept]).sum(axis=1), amounts[:, start]]
    if price is None:
        nothing = np.zeros(len(found.scores))
        mixed = [*mixed[:2], nothing, nothing, *mixed[2:], nothing, nothing]
    told, told_start, told_cost, _, real, real_start, real_cost, _ = mixed
    gains = told - told_start, real - real_start
    table = np.stack([told, real, told_cost, real_cost, *gains, gains[0] - gains[1]], axis=1)
    if not np.isfinite(table).all():
        row = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ValueError(
            "The 'X' and 'context' parameters must have finite numbers in the columns of rules. "
            f"Got a value that is not finite in row {row} instead."
        )
    sums = average_of_units(table, found.weights, found.clusters)
    value, cost, gain, overstated = (
        Estimate(float(sums.values[place]), float(sums.standard_errors[place]))
        for place in (1, 3, 5, 6)
    )
    return PolicyValue(
        n_units=len(table) if found.weights is None else int(np.count_nonzero(found.weights)),
        baseline=doses[start].element,
        value=value.value,
        standard_error=value.standard_error,
        predicted_value=float(sums.values[0]),
        predicted_cost=float(sums.values[2]),
        cost=cost,
        predicted_gain=float(sums.values[4]),
        gain=gain,
        overstated=overstated,
    )


def _forest_of(policy: Any, forest: Any, propensity: Any) -> Any:
    own = getattr(policy, "forest", None) if forest is None else forest
    if own is None or not hasattr(own, "dose_response"):
        raise TypeError(
            "The 'forest' parameter must be given, with the method 'dose_response', where the "
            f"policy has no forest. Got {type(own).__name__} instead."
        )
    if propensity is None and not hasattr(own, "supported"):
        raise TypeError(
            "The 'forest' parameter must be a fitted GeneralizedCausalForest where 'propensity' is "
            f"not given: it weighs the rows. Got {type(own).__name__} instead."
        )
    return own


def _given_doses(policy: Any, X: Any, context: Any) -> tuple[Doses, FloatArray]:
    """Doses, and the probability with which each row would be given each, (n_rows, n_doses)."""
    if hasattr(policy, "propensities"):
        return Doses.of(policy.doses), policy.propensities(X, context)
    width = np.shape(policy)[1] if np.ndim(policy) == 2 else 1
    doses, places = np.unique(unit_doses(policy, len(X), "policy", width), return_inverse=True)
    return Doses(doses), np.eye(len(doses))[places]


def _with_baseline(doses: Doses, baseline: Any) -> tuple[Doses, int]:
    """The doses with the baseline among them, ascending, and its place."""
    if baseline is None:
        return doses, 0
    one = one_dose(baseline, "baseline", doses.n_components)
    every = Doses(np.append(doses, one)).distinct
    return every, place_of(one, every, "baseline")


def _spread(table: FloatArray, given: Doses, doses: Doses) -> FloatArray:
    """Columns of some doses among those of all, zeros for the others."""
    if len(given) == len(doses) or table.shape[1] != len(given):
        return table
    wide: FloatArray = np.zeros((len(table), len(doses)))
    wide[:, [place_of(each, doses, "doses") for each in given]] = table
    return wide


def _first(given: Any, policy: Any, forest: Any, name: str) -> Any:
    """What was given, or what the policy has, or what the forest has."""
    if given is not None:
        return given
    own = getattr(policy, name, None)
    return getattr(forest, name, None) if own is None else own
