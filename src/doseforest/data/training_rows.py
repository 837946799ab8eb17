"""The rows that effects are estimated from: covariates and their roles, doses and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.data import checks
from doseforest.data.table import as_table
from doseforest.dtypes import FloatArray, IntArray

FEWEST_ROWS = 40  # below this, folds of boosting have nothing to split


@dataclass(frozen=True, slots=True)
class FeatureRoles:
    """What covariates are for, by name or place; None leaves it to the default."""

    effect: Sequence[Any] | None = None  # trees split on these; by default on all but the controls
    controls: Sequence[Any] | None = None  # in the nuisances only
    density: Sequence[Any] | None = None  # models of the treatment see these; by default all


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Covariates, doses and outcomes, and what each covariate is for."""

    X: FloatArray  # (n_rows, n_features), NaN is missing
    names: tuple[str, ...] | None  # of the features
    dose: FloatArray  # (n_rows,)
    y: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,) of mean 1; None: all equal
    ids: IntArray  # (n_rows,) row ids, or group codes: rows that share one are drawn together
    effect_columns: IntArray  # that trees split on
    treatment_columns: IntArray  # that models of the treatment see
    grows: NDArray[np.bool_] | None = None  # (n_rows,) rows for nuisances and growth; others fill

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def effect_features(self) -> FloatArray:
        """Covariates that trees split on."""
        return self.X[:, self.effect_columns]

    @property
    def treatment_features(self) -> FloatArray:
        """Covariates that explain the treatment."""
        return self.X[:, self.treatment_columns]

    def growing_on(self, grows: NDArray[np.bool_]) -> TrainingRows:
        """Return the same rows, some for nuisances and growth, the others for leaves."""
        return replace(self, grows=grows)

    def where(self, kept: NDArray[np.bool_]) -> TrainingRows:
        """Some of the rows, as a sample of their own."""
        weights = None if self.weights is None else self.weights[kept]
        return replace(
            self,
            X=self.X[kept],
            dose=self.dose[kept],
            y=self.y[kept],
            weights=None if weights is None else weights / weights.mean(),
            ids=self.ids[kept],
            grows=None,
        )

    @property
    def leaf_weights(self) -> FloatArray | None:
        """Weights of the rows as leaves see them: 0 for those that only grow."""
        if self.grows is None:
            return self.weights
        own = np.ones(self.n_rows) if self.weights is None else self.weights
        return np.where(self.grows, 0.0, own)

    def leaf_means_without(self, values: FloatArray) -> FloatArray:
        """Weighted mean over the rows that fill leaves but a row and its group, for each row.

        With the row itself among them, a right outcome model would seem to gain by any correction.
        """
        own = np.ones(self.n_rows) if self.leaf_weights is None else self.leaf_weights
        sums = [np.bincount(self.ids, weights=own * column) for column in (*values.T, 1.0)]
        others = np.stack([column.sum() - column[self.ids] for column in sums], axis=1)
        means: FloatArray = others[:, :-1] / others[:, -1:]
        return means

    def leaf_mean(self, values: FloatArray) -> FloatArray:
        """Weighted mean over the rows that fill leaves."""
        average: FloatArray = np.average(values, axis=0, weights=self.leaf_weights)
        return average


def check_training(
    X: Any,
    y: Any,
    treatment: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    roles: FeatureRoles | None = None,
) -> TrainingRows:
    """Check everything that an estimator of effects is given.

    Examples
    --------
    >>> rows = check_training(np.zeros((40, 2)), np.arange(40), np.arange(40))
    >>> rows.n_rows, rows.effect_columns
    (40, array([0, 1]))
    """
    roles = FeatureRoles() if roles is None else roles
    table = as_table(X)
    n_rows = table.n_rows
    outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
    dose = checks.checked_columns(treatment, "treatment", n_rows, 1)[:, 0].astype(np.float64)
    weights = checks.checked_weights(sample_weight, n_rows)
    ids = checks.checked_row_ids(None, n_rows)
    if groups is not None:
        ids = checks.group_codes(groups, n_rows)
    kept = np.ones(n_rows, bool) if weights is None else weights > 0
    if kept.sum() < FEWEST_ROWS:
        raise ValueError(
            f"The 'X' parameter must have at least {FEWEST_ROWS} rows of positive weight. "
            f"Got {int(kept.sum())} instead."
        )
    if np.ptp(dose[kept]) == 0:
        raise ValueError(
            "The 'treatment' parameter must vary: a constant dose has no effect to learn. "
            f"Got {dose[kept][0]:g} in every row instead."
        )
    everything = np.arange(table.n_features)
    controls = feature_places(roles.controls, "controls", table.names, table.n_features)
    effect = feature_places(roles.effect, "effect_features", table.names, table.n_features)
    density = feature_places(roles.density, "density_features", table.names, table.n_features)
    if (
        effect is not None
        and controls is not None
        and len(both := np.intersect1d(effect, controls))
    ):
        raise ValueError(
            "The 'effect_features' parameter must share no feature with 'controls'. "
            f"Got {_label(table.names, int(both[0]))} in both instead."
        )
    if effect is None:
        effect = everything if controls is None else np.setdiff1d(everything, controls)
    if not len(effect):
        raise ValueError("The 'controls' parameter must leave a feature to split on. Got all.")
    return TrainingRows(
        X=np.concatenate([block for _, block in table.blocks()]),
        names=table.names,
        dose=dose + 0.0,
        y=outcome,
        weights=None if weights is None else weights.astype(np.float64),
        ids=ids,
        effect_columns=effect,
        treatment_columns=everything if density is None else density,
    )


def feature_places(
    features: Sequence[Any] | None, name: str, names: tuple[str, ...] | None, n_features: int
) -> IntArray | None:
    """Places of features given by name or by place, ascending; None for None.

    Examples
    --------
    >>> feature_places(["b", 0], "controls", ("a", "b"), 2)
    array([0, 1])
    """
    if features is None:
        return None
    if isinstance(features, str | bytes) or not np.iterable(features):
        raise TypeError(
            f"The {name!r} parameter must be a list of feature names or places. "
            f"Got {features!r} instead."
        )
    places = [_place(feature, name, names, n_features) for feature in features]
    if not places and name not in ("controls", "categorical_features"):
        raise ValueError(f"The {name!r} parameter must name at least one feature. Got none.")
    return np.unique(np.array(places, dtype=np.int64))


def _place(feature: Any, name: str, names: tuple[str, ...] | None, n_features: int) -> int:
    if isinstance(feature, str) and names is not None and feature in names:
        return names.index(feature)
    if isinstance(feature, Integral) and not isinstance(feature, bool):
        place = int(feature)
        if 0 <= place < n_features:
            return place
    known = f"places 0 to {n_features - 1}" + (f" or names such as {names[0]!r}" if names else "")
    raise ValueError(
        f"The {name!r} parameter must hold features of X: {known}. Got {feature!r} instead."
    )


def _label(names: tuple[str, ...] | None, place: int) -> str:
    return str(place) if names is None else repr(names[place])
