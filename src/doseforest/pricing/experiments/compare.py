"""Two arms compared, unit by unit as they were assigned."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from doseforest.pricing.experiments.ab_result import ABResult
from doseforest.pricing.experiments.arm_means import ADJUSTMENTS, arm_means
from doseforest.pricing.experiments.increments import ratio_increment
from doseforest.pricing.experiments.sample_ratio import check_sample_ratio
from doseforest.pricing.experiments.trial_inputs import (
    assigned_units,
    check_enough_units,
    number_column,
    two_arms,
    unit_covariates,
)

NUMERATOR, DENOMINATOR, COST = range(3)  # columns of outcomes


def compare_arms(
    outcome: Any,
    arms: Any,
    *,
    control: Any = "control",
    units: Any = None,
    denominator: Any = None,
    covariates: Any = None,
    adjustment: str = "lin",
    cost: Any = None,
    shares: Mapping[str, float] | None = None,
    metric: str = "outcome",
) -> ABResult:
    """Increment of the treated arm over the control arm, with cluster-robust intervals.

    Parameters
    ----------
    outcome : array of shape (n_rows,)
        The mean over rows is compared.
    arms : array of shape (n_rows,)
        Labels of two arms, such as names, 0 and 1, or booleans; all rows of a unit are in the
        same one.
    control : label, default="control"
        Name of the arm that increments are measured against.
    units : array of shape (n_rows,), optional
        Labels of what was assigned, such as cells: rows of a unit may depend on each other in any
        way. By default each row is a unit.
    denominator : array of shape (n_rows,), optional
        For ratio metrics: the sum of the outcome over the sum of this is compared.
    covariates : array of shape (n_rows,) or (n_rows, n_covariates), optional
        What was measured before the test and predicts the outcome, such as the outcome of the weeks
        before; averaged within units. For ratios, both numerator and denominator of before.
    adjustment : {"lin", "cuped", "none"}, default="lin"
        Slopes of each arm, one slope for both, or covariates left aside.
    cost : array of shape (n_rows,), optional
        What was spent on each row; compared by unit.
    shares : mapping from arm to its planned share of the units, optional
        For the check of the sample ratio. By default a half each.
    metric : str, default="outcome"
        What the outcome is called in texts and pictures.

    Returns
    -------
    ABResult
        The increment with its intervals, the spend, and the check of the sample ratio.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arms = np.repeat(["control", "treatment"], 500)
    >>> before = rng.normal(10, 3, 1000)
    >>> orders = before + (arms == "treatment") + rng.normal(0, 1, 1000)
    >>> print(compare_arms(orders, arms, covariates=before, metric="orders"))
    orders: treatment against control
      control    9.906  (500 units)
      treatment  10.791  (500 units)
      increment +0.8853 [0.7583, 1.012], +8.94% [7.59%, 10.28%], p = 3.7e-39
      adjusted by 1 covariate (lin): variance -90%
      50.0% : 50.0% of units (50.0% : 50.0% planned), p = 1: as planned
    """
    values = number_column(outcome, "outcome")
    if adjustment not in ADJUSTMENTS:
        names = ", ".join(map(repr, ADJUSTMENTS))
        raise ValueError(
            f"The 'adjustment' parameter must be one of {names}. Got {adjustment!r} instead."
        )
    arm_names, treated_rows = two_arms(arms, control, len(values))
    own = assigned_units(units, treated_rows)
    rows = np.ones(len(values))
    base = rows if denominator is None else number_column(denominator, "denominator", len(values))
    spent = None if cost is None else number_column(cost, "cost", len(values))
    before = unit_covariates(covariates, own, len(values))
    columns = [own.sums(values), own.sums(base)]
    columns += [] if spent is None else [own.sums(spent)]
    treated = own.treated
    n_units = int((~treated).sum()), int(treated.sum())
    check_enough_units(n_units, 0 if adjustment == "none" else before.shape[1])
    outcomes = np.stack(columns, axis=1)
    for arm, marks in zip(arm_names, (~treated, treated), strict=True):
        if not outcomes[marks, DENOMINATOR].sum() > 0:
            raise ValueError(
                "The 'denominator' parameter must have a positive sum in each arm. "
                f"Got {outcomes[marks, DENOMINATOR].sum()} in {arm!r} instead."
            )
    means = arm_means(outcomes, treated, before, adjustment)
    plain = arm_means(outcomes, treated, before, "none")
    ratio = check_sample_ratio(dict(zip(arm_names, n_units, strict=True)), shares)
    if not ratio.holds:
        warnings.warn(
            f"The arms do not have the shares of units that were planned: {ratio}. Look for units "
            "that were lost or counted twice before reading on.",
            stacklevel=2,
        )
    return ABResult(
        metric=metric,
        control=arm_names[0],
        treatment=arm_names[1],
        increment=ratio_increment(means, NUMERATOR, DENOMINATOR),
        unadjusted=ratio_increment(plain, NUMERATOR, DENOMINATOR),
        adjustment=adjustment,
        n_covariates=0 if adjustment == "none" else before.shape[1],
        n_units=n_units,
        n_rows=(int((~treated_rows).sum()), int(treated_rows.sum())),
        sample_ratio=ratio,
        spend=None if spent is None else ratio_increment(means, COST, None),
        total_spend=None
        if spent is None
        else (float(spent[~treated_rows].sum()), float(spent[treated_rows].sum())),
    )
