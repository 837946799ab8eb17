"""Experiments with policies: who is in which arm, and what the arms differ in; docs/experiments.md.

Examples
--------
>>> import numpy as np
>>> cells = np.arange(2000)
>>> arms = assign_arms(cells, salt="discounts, spring")
>>> orders = np.where(arms == "treatment", 11.0, 10.0) + cells % 3
>>> result = compare_arms(orders, arms, metric="orders")
>>> low, high = result.interval()
>>> low < 1 < high
True
"""

from __future__ import annotations

from doseforest.pricing.experiments.ab_result import ABResult
from doseforest.pricing.experiments.compare import compare_arms
from doseforest.pricing.experiments.hashed_arms import assign_arms, hash_positions
from doseforest.pricing.experiments.increment_plots import plot_increments
from doseforest.pricing.experiments.increments import Increment
from doseforest.pricing.experiments.market_trial import MarketTest, TrueIncrement, run_ab_test
from doseforest.pricing.experiments.sample_ratio import SampleRatioCheck, check_sample_ratio

__all__ = [
    "ABResult",
    "Increment",
    "MarketTest",
    "SampleRatioCheck",
    "TrueIncrement",
    "assign_arms",
    "check_sample_ratio",
    "compare_arms",
    "hash_positions",
    "plot_increments",
    "run_ab_test",
]
