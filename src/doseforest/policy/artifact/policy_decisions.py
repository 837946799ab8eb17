"""What a policy decided, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.base.intervals import normal_quantile
from doseforest.doses.vectors import dose_text
from doseforest.policy.dose_choices import DoseChoices

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
}
CODES = {name: code for code, name in enumerate(REASONS)}
FALLBACKS = ("no_dose", "no_support", "invalid", "unseen")  # baseline, whatever it would bring


@dataclass(frozen=True, slots=True)
class Decisions(DoseChoices):
    """One dose for every unit, with what it is expected to do and why it was chosen.

    Numbers are NaN where a policy does not know them: one without a forest predicts nothing.
    """

    doses: DoseArray  # (n_doses,): what could be given
    dose_index: IntArray  # (n_units,): place of the dose in `doses`
    propensity: FloatArray  # (n_units,): probability with which the policy gives this dose
    reason_code: NDArray[np.int8]  # (n_units,): place in `REASONS`
    baseline: Any  # the dose that effects are measured against
    value: FloatArray  # (n_units,): expected
    cost: FloatArray  # (n_units,): expected
    net: FloatArray  # (n_units,): value less risk and what the prices take, which was compared
    shadow_price: FloatArray  # (n_units,): of a unit of cost, budget and group together
    cell_price: FloatArray  # (n_units,): of a unit of demand
    response: FloatArray  # (n_units,): predicted
    effect: FloatArray  # (n_units,): response less that at the baseline
    standard_error: FloatArray  # (n_units,): of the effect
    supported: Array  # (n_units,): 1, 0, or NaN where it is not known
    runner_up: IntArray  # (n_units,): the next best dose, -1 where there is none
    runner_up_net: FloatArray  # (n_units,)
    unpriced: IntArray  # (n_units,): the dose if nothing had a price, -1 where there is none
    components: tuple[str, ...] | None  # names of the components of doses that have several

    def __len__(self) -> int:
        return len(self.dose_index)

    @property
    def _amounts(self) -> tuple[FloatArray, FloatArray]:
        return self.value, self.cost

    @property
    def reason(self) -> Array:
        """Name of every unit's reason, (n_units,); `REASONS` says what they mean."""
        return np.array(list(REASONS))[self.reason_code]

    def interval(self, coverage: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the effects' intervals, (n_units,) each; NaN where nothing is known of them."""
        reach = normal_quantile(coverage) * self.standard_error
        return self.effect - reach, self.effect + reach

    def explain(self, unit: int) -> str:
        """Why a unit has its dose, in a few lines.

        Examples
        --------
        >>> from doseforest.policy import ConstantPolicy
        >>> print(ConstantPolicy(5.0).decide([[1.0]]).explain(0))
        dose 5: the dose that everybody gets
        """
        from doseforest.policy.artifact.explanations import explanation

        return explanation(self, unit)

    def to_frame(self, backend: str = "pandas") -> Any:
        """A frame with a line for each unit, of "pandas" or "polars"."""
        from doseforest.policy.artifact.explanations import decision_frame

        return decision_frame(self, backend)

    def at(self, units: IntArray) -> Decisions:
        """Decisions of some units."""
        return replace(self, **{name: getattr(self, name)[units] for name in UNIT_FIELDS})

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


OF_ALL = ("doses", "baseline", "components")
UNIT_FIELDS = tuple(own.name for own in fields(Decisions) if own.name not in OF_ALL)


def joined(pieces: Sequence[Decisions]) -> Decisions:
    """Decisions of one block of units after the other."""
    if len(pieces) == 1:
        return pieces[0]
    together: dict[str, Any] = {
        name: np.concatenate([getattr(own, name) for own in pieces]) for name in UNIT_FIELDS
    }
    return replace(pieces[0], **together)


def unpredicted(policy: Any, choice: IntArray, reason: str, propensity: FloatArray) -> Decisions:
    """Decisions of a policy that predicts nothing."""
    n_units = len(choice)
    nothing: FloatArray = np.full(n_units, np.nan)
    nobody = np.full(n_units, -1, np.int64)
    return Decisions(
        doses=policy.doses,
        dose_index=choice,
        propensity=propensity,
        reason_code=np.full(n_units, CODES[reason], np.int8),
        baseline=policy.doses[0],
        value=nothing,
        cost=nothing,
        net=nothing,
        shadow_price=nothing,
        cell_price=nothing,
        response=nothing,
        effect=nothing,
        standard_error=nothing,
        supported=nothing,
        runner_up=nobody,
        runner_up_net=nothing,
        unpriced=nobody,
        components=policy.components,
    )
