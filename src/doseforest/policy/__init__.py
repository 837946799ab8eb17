"""Decide: which dose for whom, within budgets and supplies, and how far from the best that is."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from doseforest.policy.artifact.decisions import REASONS, Decisions
    from doseforest.policy.artifact.dose_policy import DosePolicy
    from doseforest.policy.artifact.exploration import ConstantPolicy, ExplorationPolicy, Explore
    from doseforest.policy.artifact.part_prices import PartPrices
    from doseforest.policy.artifact.policy_file import load_policy
    from doseforest.policy.artifact.rules import DiscountCost, DoseCost, Fee, Response, Total
    from doseforest.policy.artifact.unit_models import unit_table
    from doseforest.policy.budget_paths import BudgetPath, budget_path
    from doseforest.policy.dose_choices import SegmentTable
    from doseforest.policy.held_out_value import PolicyValue, policy_value
    from doseforest.policy.optimize import optimize_doses
    from doseforest.policy.plan import LimitTable, Plan, ShadowPrices
    from doseforest.policy.problem import InfeasibleError
    from doseforest.policy.risk import LowerBound, MeanVariance

_HOMES = {
    "REASONS": "artifact.decisions",
    "BudgetPath": "budget_paths",
    "ConstantPolicy": "artifact.exploration",
    "Decisions": "artifact.decisions",
    "DiscountCost": "artifact.rules",
    "DoseCost": "artifact.rules",
    "DosePolicy": "artifact.dose_policy",
    "ExplorationPolicy": "artifact.exploration",
    "Explore": "artifact.exploration",
    "Fee": "artifact.rules",
    "InfeasibleError": "problem",
    "LimitTable": "plan",
    "LowerBound": "risk",
    "MeanVariance": "risk",
    "PartPrices": "artifact.part_prices",
    "Plan": "plan",
    "PolicyValue": "held_out_value",
    "Response": "artifact.rules",
    "SegmentTable": "dose_choices",
    "ShadowPrices": "plan",
    "Total": "artifact.rules",
    "budget_path": "budget_paths",
    "load_policy": "artifact.policy_file",
    "optimize_doses": "optimize",
    "policy_value": "held_out_value",
    "unit_table": "artifact.unit_models",
}

__all__ = [
    "REASONS",
    "BudgetPath",
    "ConstantPolicy",
    "Decisions",
    "DiscountCost",
    "DoseCost",
    "DosePolicy",
    "ExplorationPolicy",
    "Explore",
    "Fee",
    "InfeasibleError",
    "LimitTable",
    "LowerBound",
    "MeanVariance",
    "PartPrices",
    "Plan",
    "PolicyValue",
    "Response",
    "SegmentTable",
    "ShadowPrices",
    "Total",
    "budget_path",
    "load_policy",
    "optimize_doses",
    "policy_value",
    "unit_table",
]


def __getattr__(name: str) -> Any:
    """Import public names on first use: who only decides needs nothing that optimises or fits."""
    if name not in _HOMES:
        raise AttributeError(f"module 'doseforest.policy' has no attribute {name!r}")
    return getattr(import_module(f"doseforest.policy.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
