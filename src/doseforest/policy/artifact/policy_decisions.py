"""What a policy decided, and why: one record, from the policy to the row that a service stores.

To add a number to a decision: a field of `Decisions`, a line in `decisions_at`, and its name in
`ANSWERED`, by which the service answers it and stores it; then the schema of the answer
(``pricing/service/api/decision_models.py``) and a migration of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.base.intervals import normal_quantile
from doseforest.doses.dose_values import dose_text
from doseforest.policy.dose_choices import DoseChoices

if TYPE_CHECKING:
    from doseforest.policy.artifact.alternatives import Alternatives

# Why a unit has its dose, in the order of their codes.
REASONS: dict[str, str] = {
    "best": "the best of all doses at these prices",
    "limited": "the best of what its least and largest dose allow; a better one is beyond them",
    "supported": "the best of the doses with support; a better one would be a guess",
    "no_dose": "the baseline, since no dose is within its limits",
    "no_support": "the baseline, since no dose within its limits has support",
    "invalid": "the baseline, since its features or columns are missing or infinite",
    "unseen": "the baseline, since its group or cell has no price",
    "constant": "the dose that everybody gets",
    "explored": "drawn at random, to learn from",
    # Of a service alone:
    "missing_features": "the baseline, since a feature that the policy needs is absent or wrong",
    "no_policy": "the fallback dose, since no policy is active",
    "failed": "the fallback dose, since the policy failed",
}
CODES = {name: code for code, name in enumerate(REASONS)}
# The dose of those on whom nothing decides, whatever it would bring.
FALLBACKS = (
    *("no_dose", "no_support", "invalid", "unseen"),
    *("missing_features", "no_policy", "failed"),
)
REASON_NAMES = np.array(list(REASONS))
IS_FALLBACK = np.isin(REASON_NAMES, FALLBACKS)

ANSWERED = ("effect", "low", "high", "value", "cost", "shadow_price")  # numbers of an answer
REACH = normal_quantile(0.95)  # of `low` and `high`, in standard errors


@dataclass(frozen=True, slots=True)
class Decisions(DoseChoices):
    """One dose for every unit, with what it is expected to do and why it was chosen.

    Numbers are NaN where a policy cannot tell them: one without a forest predicts nothing.

    Attributes
    ----------
    doses : array of shape (n_doses,)
        Doses that could be given.
    dose_index : array of int of shape (n_units,)
        Place of each unit's dose in ``doses``.
    propensity : array of shape (n_units,)
        Probability with which the policy gives this dose.
    reason_code : array of int of shape (n_units,)
        Why: a place in `REASONS`.
    baseline : dose
        The dose that effects are measured against.
    value : array of shape (n_units,)
        Expected value.
    cost : array of shape (n_units,)
        Expected cost.
    net : array of shape (n_units,)
        Value less risk and what the prices take: what doses were compared by.
    shadow_price : array of shape (n_units,)
        Price of a unit of cost, budget and group together.
    cell_price : array of shape (n_units,)
        Price of a unit of demand.
    response : array of shape (n_units,)
        Predicted response.
    effect : array of shape (n_units,)
        Response less that at the baseline.
    standard_error : array of shape (n_units,)
        Standard error of the effect.
    supported : array of shape (n_units,)
        1 where the unit could have had the dose, 0 where not, NaN where the policy has no support.
    runner_up : array of int of shape (n_units,)
        Place of the next best dose; -1 where there is none.
    runner_up_net : array of shape (n_units,)
        Net value of that dose.
    unpriced : array of int of shape (n_units,)
        Place of the dose if nothing had a price; -1 where there is none.
    components : tuple of str or None
        Names of the components of doses that have several.
    drawn : array of shape (n_units, n_doses) or None
        Chances of every dose, where doses were drawn.

    Examples
    --------
    >>> from doseforest.policy import ConstantPolicy
    >>> decisions = ConstantPolicy(5.0).decide([[1.0], [2.0]])
    >>> decisions.dose, decisions.propensity
    (array([5., 5.]), array([1., 1.]))
    """

    doses: DoseArray  # (n_doses,)
    dose_index: IntArray  # (n_units,)
    propensity: FloatArray  # (n_units,)
    reason_code: NDArray[np.int8]  # (n_units,)
    baseline: Any
    value: FloatArray  # (n_units,)
    cost: FloatArray  # (n_units,)
    net: FloatArray  # (n_units,)
    shadow_price: FloatArray  # (n_units,)
    cell_price: FloatArray  # (n_units,)
    response: FloatArray  # (n_units,)
    effect: FloatArray  # (n_units,)
    standard_error: FloatArray  # (n_units,)
    supported: Array  # (n_units,)
    runner_up: IntArray  # (n_units,)
    runner_up_net: FloatArray  # (n_units,)
    unpriced: IntArray  # (n_units,)
    components: tuple[str, ...] | None
    drawn: FloatArray | None = None  # (n_units, n_doses)

    def __len__(self) -> int:
        return len(self.dose_index)

    @property
    def _amounts(self) -> tuple[FloatArray, FloatArray]:
        return self.value, self.cost

    @property
    def reason(self) -> Array:
        """Name of every unit's reason, (n_units,); `REASONS` says what they mean."""
        return REASON_NAMES[self.reason_code]

    @property
    def fallback(self) -> NDArray[np.bool_]:
        """Whether a unit has its dose since nothing could decide on it, (n_units,)."""
        return IS_FALLBACK[self.reason_code]

    @property
    def propensities(self) -> FloatArray:
        """Probability of every dose, (n_units, n_doses); they add up to 1."""
        if self.drawn is not None:
            return self.drawn
        sure: FloatArray = np.zeros((len(self), len(self.doses)))
        sure[np.arange(len(self)), self.dose_index] = 1.0
        return sure

    @property
    def low(self) -> FloatArray:
        """Lower ends of the effects' 95 % intervals, (n_units,)."""
        return self.effect - REACH * self.standard_error

    @property
    def high(self) -> FloatArray:
        """Upper ends of the effects' 95 % intervals, (n_units,)."""
        return self.effect + REACH * self.standard_error

    def interval(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Intervals of the units' effects.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which each interval covers the truth. Raise it for fewer misses and longer
            intervals.

        Returns
        -------
        low, high : arrays of shape (n_units,)
            Ends; NaN without standard errors.
        """
        reach = normal_quantile(coverage) * self.standard_error
        return self.effect - reach, self.effect + reach

    def explain(self, unit: int) -> str:
        """Say why a unit has its dose, in a few lines.

        Parameters
        ----------
        unit : int
            Place of the unit.

        Returns
        -------
        str
            The lines.

        Examples
        --------
        >>> from doseforest.policy import ConstantPolicy
        >>> print(ConstantPolicy(5.0).decide([[1.0]]).explain(0))
        dose 5: the dose that everybody gets
        """
        from doseforest.policy.artifact.explanations import explanation

        return explanation(self, unit)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Make a frame with a line for each unit.

        Parameters
        ----------
        backend : {"pandas", "polars"}, default="pandas"
            Kind of frame; the package must be installed.

        Returns
        -------
        DataFrame
            A column for each number, and the reasons as text.
        """
        from doseforest.policy.artifact.explanations import decision_frame

        return decision_frame(self, backend)

    def at(self, units: IntArray | slice) -> Decisions:
        """Take the decisions of some units.

        Parameters
        ----------
        units : array of int, or slice
            Places of the units.

        Returns
        -------
        Decisions
            Theirs, in that order.
        """
        picked = {name: getattr(self, name)[units] for name in UNIT_FIELDS}
        return replace(self, **picked, drawn=None if self.drawn is None else self.drawn[units])

    def __str__(self) -> str:
        counts = self.counts()
        given = ", ".join(
            f"{dose_text(self.doses[k])}: {counts[k]:,}" for k in np.flatnonzero(counts)
        )
        codes = np.bincount(self.reason_code, minlength=len(REASONS))
        why = ", ".join(
            f"{name}: {count:,}" for name, count in zip(REASONS, codes, strict=True) if count
        )
        known = np.isfinite(self.value) & np.isfinite(self.cost)
        without = len(self) - int(known.sum())
        noted = f" ({without:,} without a value or cost)" if 0 < without < len(self) else ""
        counted = known if known.any() else slice(None)  # nothing is known of all: NaN, not 0
        value, cost = self.value[counted].sum(), self.cost[counted].sum()
        return (
            f"{len(self):,} units: value {value:.6g}, cost {cost:.6g}{noted}\n"
            f"units by dose: {given}\nunits by reason: {why}"
        )


OF_ALL = ("doses", "baseline", "components", "drawn")
UNIT_FIELDS = tuple(field.name for field in fields(Decisions) if field.name not in OF_ALL)
PLACES = ("dose_index", "runner_up", "unpriced")  # among the doses


def joined(pieces: Sequence[Decisions]) -> Decisions:
    """Decisions of one block of units after the other."""
    if len(pieces) == 1:
        return pieces[0]
    same = _among_the_same_doses(pieces)
    together: dict[str, Any] = {
        name: np.concatenate([getattr(piece, name) for piece in same]) for name in UNIT_FIELDS
    }
    if any(piece.drawn is not None for piece in same):
        together["drawn"] = np.concatenate([piece.propensities for piece in same])
    return replace(same[0], **together)


def assigned(pieces: Sequence[Decisions], shares: Sequence[float], place: IntArray) -> Decisions:
    """Decisions of units that are assigned to policies, each of which decided on all of them.

    Propensities are over the assignment too: the sum of the policies', weighted by their shares.
    Who learns from an experiment needs the probability with which a unit could have had a dose
    before it was assigned. Effects are against the baseline of a unit's own policy; `baseline` is
    that of the first.

    Parameters
    ----------
    pieces : decisions of every policy, for all units
    shares : of the units that each policy gets
    place : array of shape (n_units,)
        The policy of each unit.
    """
    same, every = _among_the_same_doses(pieces), np.arange(len(place))
    chances: FloatArray = np.zeros((len(place), len(same[0].doses)))
    for share, piece in zip(shares, same, strict=True):
        chances += share * piece.propensities
    picked: dict[str, Any] = {
        name: np.stack([getattr(piece, name) for piece in same])[place, every]
        for name in UNIT_FIELDS
    }
    picked["propensity"] = chances[every, picked["dose_index"]]
    return replace(same[0], **picked, drawn=chances)


def _among_the_same_doses(pieces: Sequence[Decisions]) -> Sequence[Decisions]:
    """The same decisions with the doses of all of them, ascending."""
    first = pieces[0].doses
    if all(piece.doses is first for piece in pieces):
        return pieces
    doses = np.unique(np.concatenate([piece.doses for piece in pieces]))
    return [_among(doses, piece) for piece in pieces]


def _among(doses: DoseArray, piece: Decisions) -> Decisions:
    place = np.searchsorted(doses, piece.doses)
    moved: dict[str, Any] = {
        name: np.where(getattr(piece, name) < 0, -1, place[getattr(piece, name)]) for name in PLACES
    }
    if piece.drawn is not None:
        moved["drawn"] = np.zeros((len(piece), len(doses)))
        moved["drawn"][:, place] = piece.drawn
    return replace(piece, doses=doses, **moved)


def decisions_at(
    weighed: Alternatives,
    choice: IntArray,  # (n_units,): places of the doses
    codes: NDArray[np.int8],  # (n_units,): of the reasons
    drawn: FloatArray | None = None,  # (n_units, n_doses): chances, where doses were drawn
) -> Decisions:
    """Decisions with what is known of the chosen doses."""
    every = np.arange(len(choice))
    unknown: FloatArray = np.full(len(choice), np.nan)
    others = np.where(weighed.usable, weighed.net, -np.inf)
    others[every, choice] = -np.inf
    second = others.argmax(axis=1)
    second_net = others[every, second]
    decided = weighed.problem == 0
    has_second = np.isfinite(second_net) & decided
    free = np.where(weighed.usable, weighed.adjusted_value, -np.inf)
    response = weighed.response[every, choice]
    errors, supported = weighed.standard_error, weighed.supported
    return Decisions(
        doses=weighed.doses,
        dose_index=choice,
        propensity=np.ones(len(choice)) if drawn is None else drawn[every, choice],
        reason_code=codes,
        baseline=weighed.doses[weighed.baseline],
        value=weighed.value[every, choice],
        cost=weighed.cost[every, choice],
        net=weighed.net[every, choice],
        shadow_price=weighed.shadow_price,
        cell_price=weighed.cell_price,
        response=response,
        effect=response - weighed.response[:, weighed.baseline],
        standard_error=unknown if errors is None else errors[every, choice],
        supported=unknown if supported is None else supported[every, choice].astype(np.float64),
        runner_up=np.where(has_second, second, -1),
        runner_up_net=np.where(has_second, second_net, np.nan),
        unpriced=np.where(decided, np.argmax(np.where(decided[:, None], free, 0.0), axis=1), -1),
        components=weighed.components,
        drawn=drawn,
    )


def unpredicted(
    doses: DoseArray,
    components: tuple[str, ...] | None,
    reason: str,
    choice: IntArray,  # (n_units,): places of the doses
    drawn: FloatArray | None = None,  # (n_units, n_doses): chances, where doses were drawn
) -> Decisions:
    """Decisions of a policy that predicts nothing."""
    n_units = len(choice)
    nothing: FloatArray = np.full(n_units, np.nan)
    values: dict[str, Any] = dict.fromkeys(UNIT_FIELDS, nothing)
    values |= dict.fromkeys(("runner_up", "unpriced"), np.full(n_units, -1, np.int64))
    values["reason_code"] = np.full(n_units, CODES[reason], np.int8)
    values["propensity"] = np.ones(n_units)
    if drawn is not None:
        values["propensity"] = drawn[np.arange(n_units), choice]
    values["dose_index"] = choice
    return Decisions(doses=doses, baseline=doses[0], components=components, drawn=drawn, **values)
