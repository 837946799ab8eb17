"""The rows that effects are estimated from: covariates and their roles, doses and outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.data import checks
from doseforest.data.categories import learn_categories
from doseforest.data.feature_places import feature_places
from doseforest.data.feature_table import ArrayTable, Categories, as_table, categories_of
from doseforest.data.row_blocks import LEAF_WEIGHTS, RowBlock
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.engine.growth.binned_rows import BinnedRows, bin_array

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
    dose: Doses  # (n_rows,)
    y: FloatArray  # (n_rows,)
    weights: FloatArray | None  # (n_rows,) of mean 1; None: all equal
    ids: IntArray  # (n_rows,) row ids, or group codes: rows that share one are drawn together
    effect_columns: IntArray  # that trees split on
    treatment_columns: IntArray  # that models of the treatment see
    grows: NDArray[np.bool_] | None = None  # (n_rows,) rows for nuisances and growth; others fill
    categories: Categories = field(default_factory=dict)  # labels of the features that hold codes
    given: NDArray[np.bool_] | None = None  # which of the rows given these are; None: all
    in_bins: BinnedRows | None = None  # what trees split on; None until `binned`

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

    def of_given(self, values: Any) -> Any:
        """Entries of these rows among one for each row that was given."""
        return values if self.given is None else np.asarray(values)[self.given]

    @property
    def n_given(self) -> int:
        """Number of rows that were given, those without weight among them."""
        return self.n_rows if self.given is None else len(self.given)

    def category_counts(self, columns: IntArray | None = None) -> dict[int, int]:
        """Number of codes of each column that holds codes: of X, or of some columns of X."""
        taken = np.arange(self.X.shape[1]) if columns is None else columns
        return {
            place: len(self.categories[column])
            for place, column in enumerate(taken.tolist())
            if column in self.categories
        }

    def growing_on(self, grows: NDArray[np.bool_]) -> TrainingRows:
        """Return the same rows, some for nuisances and growth, the others for leaves."""
        in_bins = None if self.in_bins is None else replace(self.in_bins, grows=grows)
        return replace(self, grows=grows, in_bins=in_bins)

    def binned(self, max_bins: int = 64, *, seed: int = 0, n_threads: int = 1) -> TrainingRows:
        """Return the same rows with what trees split on in bins, for all forests of a fit."""
        in_bins = bin_array(
            self.effect_features,
            categorical=list(self.category_counts(self.effect_columns)),
            max_bins=max_bins,
            weights=self.weights,
            groups=self.ids,
            grows=self.grows,
            seed=seed,
            n_threads=n_threads,
        )
        return replace(self, in_bins=in_bins)

    @property
    def split_rows(self) -> BinnedRows:
        """What trees split on, in bins, with the weights and halves of these rows."""
        if self.in_bins is None:
            raise RuntimeError("Rows must be binned before a forest is grown on them.")
        return self.in_bins

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
            given=None,
            in_bins=None,
        )

    @property
    def leaf_weights(self) -> FloatArray | None:
        """Weights of the rows as leaves see them: 0 for those that only grow."""
        if self.grows is None:
            return self.weights
        row_weights = np.ones(self.n_rows) if self.weights is None else self.weights
        return np.where(self.grows, 0.0, row_weights)

    def block(self, folds: IntArray, columns: Mapping[str, Any]) -> RowBlock:
        """All rows as one block, with columns that are known of them."""
        if self.grows is not None:
            columns = {**columns, LEAF_WEIGHTS: self.leaf_weights}
        return RowBlock(self.X, self.dose.values, self.y, self.weights, self.ids, folds, columns)

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
    categorical_features: Any = None,
) -> TrainingRows:
    """Check everything that an estimator of effects is given.

    Rows without weight are left out: a fit is the same as without them. Categories become codes.

    Examples
    --------
    >>> rows = check_training(np.zeros((40, 2)), np.arange(40), np.arange(40))
    >>> rows.n_rows, rows.effect_columns
    (40, array([0, 1]))
    """
    roles = FeatureRoles() if roles is None else roles
    table = as_table(X, with_categories=True)
    n_rows = table.n_rows
    outcome = checks.checked_columns(y, "y", n_rows, 1)[:, 0].astype(np.float64)
    checks.refuse_labels(treatment, "treatment")
    doses = checks.checked_columns(treatment, "treatment", n_rows, MAX_COMPONENTS)
    doses = doses.astype(np.float64) + 0.0  # no negative zero
    weights = checks.checked_weights(sample_weight, n_rows)
    ids = checks.checked_row_ids(None, n_rows)
    if groups is not None:
        ids = checks.group_codes(groups, n_rows)
    kept = np.ones(n_rows, bool) if weights is None else weights > 0
    if kept.sum() < FEWEST_ROWS:
        raise ValueError(
            f"The 'X' parameter must have at least {FEWEST_ROWS} rows of positive weight. "
            f"Got {int(kept.sum())} sample(s) instead."
        )
    constant = np.ptp(doses[kept], axis=0) == 0
    if constant.any():
        column = f" of column {int(np.argmax(constant))}" if len(constant) > 1 else ""
        raise ValueError(
            "The 'treatment' parameter must vary: a constant dose has no effect to learn. "
            f"Got {doses[kept][0, constant][0]:g} in every row{column} instead."
        )
    values = np.concatenate([block for _, block in table.blocks()])
    if not kept.all():
        values, outcome, doses = values[kept], outcome[kept], doses[kept]
        own = checks.checked_columns(sample_weight, "sample_weight", n_rows, 1)[kept]
        weights = checks.checked_weights(own, len(own))
        ids = np.unique(ids[kept], return_inverse=True)[1].astype(ids.dtype)
    source = ArrayTable(values, table.names, categories=categories_of(table))
    coded = learn_categories(source, categorical_features)
    if coded is not source:
        values = np.concatenate([block for _, block in coded.blocks()])
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
        X=values,
        names=table.names,
        dose=Doses.of_table(doses),
        y=outcome,
        weights=None if weights is None else weights.astype(np.float64),
        ids=ids,
        effect_columns=effect,
        treatment_columns=everything if density is None else density,
        categories=categories_of(coded),
        given=None if kept.all() else kept,
    )


def _label(names: tuple[str, ...] | None, place: int) -> str:
    return str(place) if names is None else repr(names[place])
