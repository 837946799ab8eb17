"""Balance of the covariates against the dose, from sums over the rows of each block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.data.row_blocks import Sums
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.nuisance.treatment.treatment_support import DoseSupport


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """What is left of the covariates' dependence on the dose.

    For a quantity: correlations of each covariate with the dose, with its squared distance from
    the mean, and with having a dose that is a point mass. For levels: the covariate's mean among
    the units with a level less its mean among all, in standard deviations. For several components:
    correlations with all of these, of each component.

    Attributes
    ----------
    covariates : tuple of str
        Names; "age missing" stands for missing values of age.
    targets : tuple of str
        What they are compared with.
    standardised : bool
        Whether numbers are differences of means; else they are correlations.
    before : array of shape (n_covariates, n_targets)
        Without treatment weights.
    after : array of shape (n_covariates, n_targets)
        With them.

    Examples
    --------
    >>> balance = Balance(("age",), ("dose",), False, np.array([[-0.4]]), np.array([[0.1]]))
    >>> balance.worst()
    array([[0.4, 0.1]])
    """

    covariates: tuple[str, ...]  # (n_covariates,)
    targets: tuple[str, ...]  # (n_targets,)
    standardised: bool
    before: FloatArray  # (n_covariates, n_targets)
    after: FloatArray  # (n_covariates, n_targets)

    def worst(self) -> FloatArray:
        """Largest size of each covariate before and after weighting.

        Returns
        -------
        array of shape (n_covariates, 2)
            The sizes.
        """
        return np.stack([np.abs(each).max(axis=1) for each in (self.before, self.after)], axis=1)


@dataclass(frozen=True, slots=True)
class DoseTargets:
    """What covariates are compared with: the dose, or each of its levels."""

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
        return np.column_stack([about, about**2, at_mass])


@dataclass(frozen=True, slots=True)
class BalanceColumns:
    """The columns that are compared: covariates, then indicators of missing values."""

    names: tuple[str, ...]  # (n_columns,)
    gappy: NDArray[np.bool_]  # (n_features,) features with an indicator
    centre: FloatArray  # (n_columns,) about which sums are taken: about the means

    @classmethod
    def of_sums(cls, sums: Sums, labels: Sequence[str]) -> BalanceColumns:
        """Columns by the `column_sums` of all rows: an indicator where some values are missing."""
        known, total, gaps = sums
        weight = known + gaps
        gappy = (gaps > 0) & (known > 0)
        named = (*labels, *(f"{labels[place]} missing" for place in np.flatnonzero(gappy).tolist()))
        centre = np.concatenate([ratio_or_zero(total, known), ratio_or_zero(gaps, weight)[gappy]])
        return cls(named, gappy, centre)

    def sums(self, X: FloatArray, targets: FloatArray, weights: FloatArray) -> Sums:
        """Sums over rows where a column is known.

        Of weights; of columns about their centres, of squares of these and of the columns; of
        targets, of their squares, and of their products with columns.
        """
        gaps = np.isnan(X)
        columns = np.hstack([X, gaps[:, self.gappy]])
        missing = np.isnan(columns)
        known = np.where(missing, 0.0, weights[:, None])
        filled = np.where(missing, 0.0, columns)
        offset = np.where(missing, 0.0, filled - self.centre)
        weighted = known * offset
        return (
            known.sum(axis=0),
            weighted.sum(axis=0),
            (weighted * offset).sum(axis=0),
            (known * filled**2).sum(axis=0),
            known.T @ targets,
            known.T @ targets**2,
            weighted.T @ targets,
        )

    def balance(
        self, targets: Sequence[str], standardised: bool, before: Sums, after: Sums
    ) -> Balance:
        """Balance from the sums without treatment weights and with them."""
        measure = _differences if standardised else _correlations
        measured = (measure(before, sums) for sums in (before, after))
        return Balance(self.names, tuple(targets), standardised, *measured)


def column_sums(X: FloatArray, weights: FloatArray) -> Sums:
    """Sums over rows, for each feature: of weights where it is known, of it, of other weights."""
    gaps = np.isnan(X)
    known = np.where(gaps, 0.0, weights[:, None])
    total = (known * np.where(gaps, 0.0, X)).sum(axis=0)
    return known.sum(axis=0), total, np.where(gaps, weights[:, None], 0.0).sum(axis=0)


def covariate_balance(
    X: FloatArray,
    dose: FloatArray,
    r: FloatArray,
    support: DoseSupport,
    *,
    weights: FloatArray | None = None,
    labels: Sequence[str] | None = None,
) -> Balance:
    """Balance of covariates before and after weighting by r.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> dose = np.concatenate([np.arange(50.0), np.arange(50.0) + 10])
    >>> balance = covariate_balance(x, dose, np.ones(100), DoseSupport(0.0, 59.0, (), True))
    >>> balance.targets, balance.before.round(2)
    (('dose', 'dose squared'), array([[0.33, 0.  ]]))
    """
    targets = DoseTargets(support, float(np.average(dose, weights=weights)))
    named = dict(zip(targets.names, targets.of(dose).T, strict=True))
    return _balance(X, named, r, weights, labels, not support.continuous)


def correlation_balance(
    X: FloatArray,
    targets: Mapping[str, FloatArray],
    r: FloatArray,
    *,
    weights: FloatArray | None = None,
    labels: Sequence[str] | None = None,
) -> Balance:
    """Correlations of covariates with named columns before and after weighting by r.

    Examples
    --------
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> correlation_balance(x, {"price": 2 - x[:, 0]}, np.ones(100)).before
    array([[-1.]])
    """
    about = {name: column - column.mean() for name, column in targets.items()}
    return _balance(X, about, r, weights, labels, standardised=False)


def _balance(
    X: FloatArray,
    targets: Mapping[str, FloatArray],
    r: FloatArray,
    weights: FloatArray | None,
    labels: Sequence[str] | None,
    standardised: bool,
) -> Balance:
    row_weights = np.ones(len(X)) if weights is None else weights
    named = list(labels or (feature_label(None, place) for place in range(X.shape[1])))
    columns = BalanceColumns.of_sums(column_sums(X, row_weights), named)
    table = np.column_stack(list(targets.values()))
    before, after = (columns.sums(X, table, row_weights * factor) for factor in (1.0, r))
    return columns.balance(tuple(targets), standardised, before, after)


def _correlations(sample: Sums, sums: Sums) -> FloatArray:
    """Weighted correlations of columns and targets, (n_columns, n_targets)."""
    mean, deviation = _moments(sums)
    weight, *_, targets, target_squares, products = sums
    weight = np.maximum(weight, np.finfo(float).tiny)[:, None]
    target_mean, target_squares = targets / weight, target_squares / weight
    spread = np.sqrt(not_rounding(target_squares - target_mean**2, target_squares))
    product = products / weight - mean[:, None] * target_mean
    return ratio_or_zero(product, deviation[:, None] * spread)


def _differences(sample: Sums, sums: Sums) -> FloatArray:
    """Means at the levels less the sample's, in its standard deviations."""
    mean, deviation = _moments(sample)
    *_, at_level, _, products = sums
    difference = ratio_or_zero(products - mean[:, None] * at_level, at_level)
    return ratio_or_zero(difference, np.broadcast_to(deviation[:, None], difference.shape))


def _moments(sums: Sums) -> tuple[FloatArray, FloatArray]:
    """Means about the centres, and standard deviations: 0 where a column does not vary."""
    weight, offset, squares, raw, *_ = sums
    weight = np.maximum(weight, np.finfo(float).tiny)
    mean = offset / weight
    return mean, np.sqrt(not_rounding(squares / weight - mean**2, raw / weight))


def not_rounding(variance: FloatArray, squares: FloatArray) -> FloatArray:
    """Variances, 0 where they are what rounding leaves of mean squares.

    >>> not_rounding(np.array([1e-17, 0.5]), np.array([1.0, 1.0]))
    array([0. , 0.5])
    """
    return np.where(variance > 1e-12 * squares, variance, 0.0)


def ratio_or_zero(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient, 0 where there is nothing to divide by.

    >>> ratio_or_zero(np.array([1.0, 1.0]), np.array([4.0, 0.0]))
    array([0.25, 0.  ])
    """
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)
