"""Decide: which dose for whom, within budgets and supplies, and how far from the best that is."""

from __future__ import annotations

from doseforest.policy.artifact.decisions import REASONS, Decisions
from doseforest.policy.artifact.dose_policy import DosePolicy
from doseforest.policy.artifact.exploration import ConstantPolicy, ExplorationPolicy, Explore
from doseforest.policy.artifact.part_prices import PartPrices
from doseforest.policy.artifact.policy_file import load_policy
from doseforest.policy.artifact.rules import DiscountCost, DoseCost, Fee, Response, Total
from doseforest.policy.artifact.unit_models import unit_table
from doseforest.policy.budget_paths import BudgetPath, budget_path
from doseforest.policy.optimize import optimize_doses
from doseforest.policy.plan import LimitTable, Plan, SegmentTable, ShadowPrices
from doseforest.policy.problem import InfeasibleError
from doseforest.policy.risk import LowerBound, MeanVariance

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
    "Response",
    "SegmentTable",
    "ShadowPrices",
    "Total",
    "budget_path",
    "load_policy",
    "optimize_doses",
    "unit_table",
]
