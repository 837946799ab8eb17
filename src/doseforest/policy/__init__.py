"""Decide: which dose for whom, within budgets and supplies, and how far from the best that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.files.policy_file import load_policy
    from doseforest.policy.artifact.dose_policy import DosePolicy
    from doseforest.policy.artifact.exploration import ConstantPolicy, ExplorationPolicy, Explore
    from doseforest.policy.artifact.part_prices import PartPrices
    from doseforest.policy.artifact.policy_decisions import REASONS, Decisions
    from doseforest.policy.artifact.unit_models import unit_table
    from doseforest.policy.artifact.value_rules import DiscountCost, DoseCost, Fee, Response, Total
    from doseforest.policy.budget_paths import BudgetPath, budget_path
    from doseforest.policy.dose_choices import SegmentTable
    from doseforest.policy.dose_plan import LimitTable, Plan, ShadowPrices
    from doseforest.policy.held_out_value import PolicyValue, policy_value
    from doseforest.policy.optimize import optimize_doses
    from doseforest.policy.problem import InfeasibleError
    from doseforest.policy.risk import LowerBound, MeanVariance

_HOMES = {
    "REASONS": "doseforest.policy.artifact.policy_decisions",
    "BudgetPath": "doseforest.policy.budget_paths",
    "ConstantPolicy": "doseforest.policy.artifact.exploration",
    "Decisions": "doseforest.policy.artifact.policy_decisions",
    "DiscountCost": "doseforest.policy.artifact.value_rules",
    "DoseCost": "doseforest.policy.artifact.value_rules",
    "DosePolicy": "doseforest.policy.artifact.dose_policy",
    "ExplorationPolicy": "doseforest.policy.artifact.exploration",
    "Explore": "doseforest.policy.artifact.exploration",
    "Fee": "doseforest.policy.artifact.value_rules",
    "InfeasibleError": "doseforest.policy.problem",
    "LimitTable": "doseforest.policy.dose_plan",
    "LowerBound": "doseforest.policy.risk",
    "MeanVariance": "doseforest.policy.risk",
    "PartPrices": "doseforest.policy.artifact.part_prices",
    "Plan": "doseforest.policy.dose_plan",
    "PolicyValue": "doseforest.policy.held_out_value",
    "Response": "doseforest.policy.artifact.value_rules",
    "SegmentTable": "doseforest.policy.dose_choices",
    "ShadowPrices": "doseforest.policy.dose_plan",
    "Total": "doseforest.policy.artifact.value_rules",
    "budget_path": "doseforest.policy.budget_paths",
    "load_policy": "doseforest.files.policy_file",
    "optimize_doses": "doseforest.policy.optimize",
    "policy_value": "doseforest.policy.held_out_value",
    "unit_table": "doseforest.policy.artifact.unit_models",
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

__getattr__, __dir__ = late_names(__name__, _HOMES)
