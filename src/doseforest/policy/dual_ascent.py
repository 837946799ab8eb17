"""Prices of many limits at once: descent on the bound, smoothed less and less.

The bound is a sum of maxima, convex in the prices but with kinks. A soft maximum makes it smooth,
so that a quasi-Newton method with bounds (prices are not negative) finds thousands of prices in
some tens of passes over the units; its temperature then falls in stages. The best bound that was
met on the way, which is always that of the hard maximum, certifies the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize
from threadpoolctl import threadpool_limits

from doseforest.base.dtypes import FloatArray
from doseforest.policy.lagrangian import Prices, smooth_bound
from doseforest.policy.problem import DoseProblem

TEMPERATURES = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the typical range of a unit's values
PASSES = 40  # over the units at each temperature
ENOUGH = 1e-6  # of the bound: a stage that gains less is the last


@dataclass(slots=True)
class _Best:
    """The least bound so far."""

    bound: float
    prices: Prices


def ascend(
    problem: DoseProblem,
    prices: Prices,
    is_enough: Callable[[Prices, float], bool] = lambda prices, bound: False,
) -> tuple[Prices, float]:
    """Better prices and their bound, from the prices of a start.

    Each pass is linear in units x doses; memory is that of one block of units. Prices and bound
    that are enough end the search.
    """
    spread = _spread(problem)
    scales = _scales(problem, spread)
    capped = [np.isfinite(limit.caps) for limit in problem.limits]
    lengths = np.cumsum([marks.sum() for marks in capped])[:-1]
    best = _Best(np.inf, prices)

    def as_prices(flat: FloatArray) -> Prices:
        pieces = np.split(flat, lengths)
        full = tuple(np.zeros(len(marks)) for marks in capped)
        for each, marks, scale, piece in zip(full, capped, scales, pieces, strict=True):
            each[marks] = piece * scale[marks]
        return full

    def objective(flat: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        now = as_prices(flat)
        smooth = smooth_bound(problem, now, temperature)
        if smooth.bound < best.bound:
            best.bound, best.prices = smooth.bound, now
        slopes = [
            (each * scale)[marks]
            for each, marks, scale in zip(smooth.gradient, capped, scales, strict=True)
        ]
        return smooth.value / spread, np.concatenate(slopes) / spread

    def stop_if_enough(flat: FloatArray) -> None:
        if is_enough(best.prices, best.bound):
            raise StopIteration

    flat = np.concatenate(
        [(price / scale)[marks] for price, marks, scale in zip(prices, capped, scales, strict=True)]
    )
    for share in TEMPERATURES:
        before = best.bound
        with threadpool_limits(1, user_api="blas"):  # more threads would give other bits
            result = minimize(
                objective,
                flat,
                args=(share * spread,),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(0.0, np.inf),
                callback=stop_if_enough,
                options={"maxfun": PASSES, "maxiter": PASSES, "ftol": 1e-9, "gtol": 1e-9},
            )
        flat = np.maximum(result.x, 0.0)
        gained = before - best.bound
        if gained < ENOUGH * abs(best.bound) or is_enough(best.prices, best.bound):
            break
    return best.prices, best.bound


def _spread(problem: DoseProblem) -> float:
    """Mean range of the values that a unit's allowed doses have."""
    total = 0.0
    for rows in problem.blocks():
        values = problem.values_at(rows)
        lowest = np.where(values > -np.inf, values, np.inf).min(axis=1)
        total += float((values.max(axis=1) - lowest).sum())
    return total / max(problem.n_units, 1) or 1.0


def _scales(problem: DoseProblem, spread: float) -> list[FloatArray]:
    """Units in which prices of every limit are alike to the quasi-Newton method."""
    scales = []
    for limit in problem.limits:
        total = sum(
            float(np.ptp(limit.weights[rows].astype(np.float64), axis=1).sum())
            for rows in problem.blocks()
        )
        typical = total / max(problem.n_units, 1) or 1.0
        sizes = limit.sums(np.ones(problem.n_units), slice(0, problem.n_units))
        scales.append(spread / (typical * np.sqrt(np.maximum(sizes, 1.0))))
    return scales
