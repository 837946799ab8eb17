"""Balance of the covariates from sums over a cluster; see `doseforest.report.overlap_measures`.

For each weighting: products of columns and targets over the rows where a column is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.nuisance.treatment.dose_support import DoseSupport
from doseforest.report.overlap_measures import Balance, not_rounding, ratio_or_zero


@dataclass(frozen=True, slots=True)
class BalanceTargets:
    """What covariates are compared with."""

    support: DoseSupport
    mean: float  # of the doses

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets."""
        masses = tuple(f"dose {mass:g}" for mass in self.support.masses)
        return ("dose", "dose squared", *masses) if self.support.continuous else masses

    def of(self, dose: FloatArray) -> FloatArray:
        """Targets of rows, (n_rows, n_targets)."""
        at_mass: FloatArray = (dose[:, None] == np.array(self.support.masses)).astype(np.float64)
        if not self.support.continuous:
            return at_mass
        about = dose - self.mean
        return np.column_stack([about, about * about, at_mass])


def balance_sums(X: FloatArray, targets: FloatArray, weights: FloatArray) -> tuple[FloatArray, ...]:
    """Sums over rows: of known rows, of columns, of their squares; with targets and their squares.

    Columns are the covariates, then indicators of their missing values.
    """
    gaps = np.isnan(X)
    known = np.hstack([~gaps, np.ones_like(gaps)]) * weights[:, None]
    columns = np.hstack([np.where(gaps, 0.0, X), gaps])
    weighted = known * columns
    return (
        known.sum(axis=0),
        weighted.sum(axis=0),
        (weighted * columns).sum(axis=0),
        known.T @ targets,
        known.T @ targets**2,
        weighted.T @ targets,
    )


def balance_of(
    targets: BalanceTargets,
    labels: list[str],
    before: tuple[FloatArray, ...],
    after: tuple[FloatArray, ...],
) -> Balance:
    """Balance from the sums without treatment weights and with them."""
    n_features = len(labels)
    n_missing = before[1][n_features:]
    gappy = (n_missing > 0) & (n_missing < before[0][n_features:])
    shown = np.append(np.arange(n_features), n_features + np.flatnonzero(gappy))
    named = (*labels, *(f"{labels[place]} missing" for place in np.flatnonzero(gappy)))
    standardised = not targets.support.continuous
    measure = _differences if standardised else _correlations
    return Balance(
        named,
        targets.names,
        standardised,
        measure(before, before)[shown],
        measure(before, after)[shown],
    )


def _correlations(sample: tuple[FloatArray, ...], sums: tuple[FloatArray, ...]) -> FloatArray:
    """Weighted correlations of columns and targets."""
    weight, total, squares, targets, target_squares, products = sums
    weight = np.maximum(weight, np.finfo(float).tiny)
    mean, target_mean = total / weight, targets / weight[:, None]
    deviation = np.sqrt(not_rounding(squares / weight - mean**2, squares / weight))
    target_squares = target_squares / weight[:, None]
    spread = np.sqrt(not_rounding(target_squares - target_mean**2, target_squares))
    product = products / weight[:, None] - mean[:, None] * target_mean
    return ratio_or_zero(product, deviation[:, None] * spread)


def _differences(sample: tuple[FloatArray, ...], sums: tuple[FloatArray, ...]) -> FloatArray:
    """Means at the levels less the sample's, in its standard deviations."""
    weight = np.maximum(sample[0], np.finfo(float).tiny)
    mean = sample[1] / weight
    deviation = np.sqrt(not_rounding(sample[2] / weight - mean**2, sample[2] / weight))
    _, _, _, at_level, _, products = sums
    difference = ratio_or_zero(products - mean[:, None] * at_level, at_level)
    return ratio_or_zero(difference, np.broadcast_to(deviation[:, None], difference.shape))
