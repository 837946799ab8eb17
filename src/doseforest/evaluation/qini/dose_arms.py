"""Which rows speak about a dose and its baseline, and with what weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.data.checks import checked_columns
from doseforest.doses.dose_values import MAX_COMPONENTS
from doseforest.doses.grids import FEW_LEVELS
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.doses.smoothing.smoother_inputs import given_bandwidth

KERNEL = KERNELS["epanechnikov"]  # of bounded reach, so that two doses can be kept apart


@dataclass(frozen=True, slots=True, eq=False)
class ComparedArms:
    """Rows at (or near) the dose and the baseline; all others have weight 0."""

    treated: NDArray[np.bool_]  # (n_rows,) at the dose
    weights: FloatArray  # (n_rows,)
    bandwidth: float | None  # None: doses match exactly

    @property
    def n_treated(self) -> int:
        """Rows of positive weight at the dose."""
        return int((self.weights[self.treated] > 0).sum())

    @property
    def n_control(self) -> int:
        """Rows of positive weight at the baseline."""
        return int((self.weights[~self.treated] > 0).sum())


def choose_arms(
    treatment: Any,
    n_rows: int,
    dose: Any,
    baseline: Any,
    *,
    propensity: Any = None,
    bandwidth: Any = None,
    sample_weight: FloatArray | None = None,
) -> ComparedArms:
    """Rows at the dose and at the baseline.

    Examples
    --------
    >>> arms = choose_arms([0.0, 1.0, 2.0, 2.0], 4, dose=2.0, baseline=0.0)
    >>> arms.treated, arms.weights
    (array([False, False,  True,  True]), array([1., 0., 1., 1.]))
    """
    columns = checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS).astype(np.float64)
    ends = one_dose(dose, "dose", columns), one_dose(baseline, "baseline", columns)
    if np.array_equal(*ends):
        raise ValueError(f"The 'dose' parameter must differ from the baseline. Got {dose!r} twice.")
    width = _bandwidth(columns, ends, bandwidth)
    near = [_nearness(columns, end, width) for end in ends]
    if sample_weight is not None:
        near = [each * sample_weight for each in near]
    for name, given, each in zip(("dose", "baseline"), (dose, baseline), near, strict=True):
        if not each.any():
            raise ValueError(
                f"The {name!r} parameter must be a dose that rows of positive weight had"
                f"{_within(width)}. Got {given!r} instead."
            )
    most = 1.0 if width is None else np.inf
    weights = np.maximum(*near) / own_chances(propensity, columns, near[0] + near[1] > 0, most)
    return ComparedArms(near[0] > 0, weights, width)


def own_chances(
    propensity: Any, columns: FloatArray, judged: NDArray[np.bool_], most: float = 1.0
) -> FloatArray:
    """Chance of each row's own dose, 1 where the rows that count all had the same.

    Densities of a continuous dose may be above 1: `most` is infinite for them.
    """
    n_rows = len(columns)
    if propensity is None:
        return np.ones(n_rows)
    if isinstance(propensity, Mapping):
        chances = np.zeros(n_rows)
        for level, chance in propensity.items():
            chances[(columns == one_dose(level, "propensity", columns)).all(axis=1)] = chance
    else:
        chances = checked_columns(propensity, "propensity", n_rows, 1)[:, 0].astype(np.float64)
    bad = judged & ~((chances > 0) & (chances <= most))
    if bad.any():
        row = int(np.argmax(bad))
        ends = "above 0" if most == np.inf else "above 0 and at most 1"
        raise ValueError(
            f"The 'propensity' parameter must be the chance of each row's own dose, {ends}, or a "
            f"dictionary of the chances of all doses. Got {chances[row]} for row {row} instead."
        )
    return np.where(judged, chances, 1.0)


def one_dose(dose: Any, name: str, columns: FloatArray) -> FloatArray:
    """A dose with as many components as the doses of the rows, shape (n_components,)."""
    doses = np.atleast_1d(np.asarray(dose, np.float64))
    if doses.shape != (columns.shape[1],) or not np.isfinite(doses).all():
        rule = "a finite number" if columns.shape[1] == 1 else f"{columns.shape[1]} finite numbers"
        raise ValueError(f"The {name!r} parameter must be {rule}. Got {dose!r} instead.")
    return doses


def _bandwidth(
    columns: FloatArray, ends: tuple[FloatArray, FloatArray], asked: Any
) -> float | None:
    """None for doses of few levels; else no wider than keeps the two doses apart."""
    if columns.shape[1] > 1:
        if asked is not None:
            raise ValueError(
                "The 'bandwidth' parameter must be None for doses of several components. "
                f"Got {asked!r} instead."
            )
        return None
    if asked is None:
        some = columns[: 100 * FEW_LEVELS, 0]  # enough to see that a dose is continuous
        if len(np.unique(some)) <= FEW_LEVELS and len(np.unique(columns)) <= FEW_LEVELS:
            return None
        asked = rule_of_thumb(columns[:, 0], KERNEL)
        return float(min(asked, abs(float(ends[0][0] - ends[1][0])) / 2))
    width, most = given_bandwidth(asked), abs(float(ends[0][0] - ends[1][0])) / 2
    if width > most:
        raise ValueError(
            "The 'bandwidth' parameter must be at most half of the distance between dose and "
            f"baseline, {most:g}: no row may count as both. Got {width:g} instead."
        )
    return width


def _nearness(columns: FloatArray, end: FloatArray, width: float | None) -> FloatArray:
    if width is None:
        return np.asarray((columns == end).all(axis=1), np.float64)
    return np.asarray(KERNEL.value((columns[:, 0] - end[0]) / width), np.float64)


def _within(width: float | None) -> str:
    return "" if width is None else f", within a bandwidth of {width:.3g}"
