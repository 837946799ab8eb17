"""Decide: which dose for whom, within budgets and supplies, and how far from the best that is."""

from __future__ import annotations

from doseforest.policy.budget_paths import BudgetPath, budget_path
from doseforest.policy.optimize import optimize_doses
from doseforest.policy.plan import LimitTable, Plan, SegmentTable, ShadowPrices
from doseforest.policy.problem import InfeasibleError

__all__ = [
    "BudgetPath",
    "InfeasibleError",
    "LimitTable",
    "Plan",
    "SegmentTable",
    "ShadowPrices",
    "budget_path",
    "optimize_doses",
]
