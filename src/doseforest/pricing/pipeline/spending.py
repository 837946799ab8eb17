"""What discounts cost: their shares of the price, a budget by its like, and held-out spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.policy.artifact.alternatives import choose
from doseforest.pricing.pipeline import roles
from doseforest.pricing.pipeline.problems import PipelineError

if TYPE_CHECKING:
    from doseforest.policy.artifact.dose_policy import DosePolicy
    from doseforest.pricing.pipeline.config import PipelineConfig

MOST_ROWS = 30_000  # held-out rows that a policy is tried on


def cost_shares(frame: Any, config: PipelineConfig) -> list[float]:
    """Share of the price of an order that one unit of each component costs.

    Of what was paid, by least squares of it on price x dose x outcome; 1 where no column says what
    was paid. With several options an order is of one of them only: the shares say how often.
    """
    width = len(config.columns.treatment)
    if config.optimise.spent is None:
        return [1.0] * width
    doses = roles.treatment(frame, config).reshape(len(frame), width)
    price = roles.amounts(frame, config.optimise.price)
    design = doses * (price * roles.outcome(frame, config))[:, None]
    paid = roles.amounts(frame, config.optimise.spent)
    result = np.linalg.lstsq(design, paid, rcond=None)[0]
    if not (result > 0).all():
        raise PipelineError(
            "[optimise] spent must grow with price x dose x outcome. "
            f"Got shares of {result.round(4).tolist()} instead."
        )
    return [float(each) for each in result]


def spend_of_dose(frame: Any, config: PipelineConfig, shares: list[float]) -> float:
    """What one dose for everybody costs per unit, by the rows that had it."""
    asked = np.atleast_1d(np.asarray(config.optimise.budget_like, np.float64))
    doses = roles.treatment(frame, config).reshape(len(frame), -1)
    had = (doses == asked).all(axis=1)
    if not had.any():
        raise PipelineError(
            f"[optimise] budget_like must be a dose that rows had. Got {asked.tolist()} instead."
        )
    chances = roles.propensity(frame, config)
    weights = had / (np.ones(len(frame)) if chances is None else chances)
    per_order = roles.amounts(frame, config.optimise.price) * float(asked @ np.array(shares))
    paid = per_order * roles.outcome(frame, config)
    return float((weights * paid).sum() / weights.sum())


def held_out_spend(policy: DosePolicy, frame: Any, config: PipelineConfig) -> dict[str, Any]:
    """Value and cost per unit of a policy by held-out outcomes, beside what its model says.

    The model's predictions, corrected by the residuals of the rows that happen to have had the
    policy's dose (their chances known, or the shares of the levels). Empty where the policy has
    doses that no row had.
    """
    if len(frame) > MOST_ROWS:
        frame = frame.iloc[np.linspace(0, len(frame) - 1, MOST_ROWS).astype(np.int64)]
    doses = roles.treatment(frame, config).reshape(len(frame), -1)
    choices = policy.plain_doses.reshape(len(policy.doses), -1)
    own = (doses[:, None, :] == choices[None]).all(axis=2)  # (n_rows, n_doses)
    if not own.any(axis=0).all():
        return {}
    names = roles.feature_names([str(name) for name in frame.columns], config)
    weighed = policy.alternatives(frame[names], frame)
    place = choose(weighed).dose_index
    rows = np.arange(len(frame))
    chances = roles.propensity(frame, config)
    if chances is None:
        chances = np.where(own.any(axis=1), (own * own.mean(axis=0)).sum(axis=1), 1.0)
    matched = own[rows, place] / chances
    predicted = weighed.response[rows, place]
    residual = matched * (roles.outcome(frame, config) - predicted)
    worth = roles.amounts(frame, config.optimise.value)
    shares = choices[place] @ np.array(_component_shares(policy, choices.shape[1]))
    per_order = roles.amounts(frame, config.optimise.price) * shares
    result: dict[str, Any] = {"rows": len(frame)}
    for name, scale in (("value", worth), ("cost", per_order)):
        scores: FloatArray = scale * (predicted + residual)
        result |= {
            name: float(scores.mean()),
            f"{name} error": float(scores.std(ddof=1) / np.sqrt(len(scores))),
            f"predicted {name}": float((scale * predicted).mean()),
        }
    return result


def _component_shares(policy: DosePolicy, width: int) -> list[float]:
    terms: tuple[Any, ...] = getattr(policy.cost, "terms", (policy.cost,))
    return [float(terms[place].share) for place in range(width)]
