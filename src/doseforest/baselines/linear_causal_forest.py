"""A causal forest linear in the dose, as Athey, Tibshirani and Wager's, on this engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from doseforest.base.dtypes import FloatArray
from doseforest.base.machine import thread_count
from doseforest.base.seeds import Purpose, derive
from doseforest.baselines.baseline import Baseline
from doseforest.baselines.baseline_inputs import drawn_seed, require_int, training_rows
from doseforest.doses.curve_effects import dose_table
from doseforest.engine.curve_forest import CurveForest
from doseforest.engine.grow_forest import grow_forest
from doseforest.engine.growth.binned_rows import BinnedRows, bin_array
from doseforest.engine.growth.forest_settings import GrowthSettings
from doseforest.engine.leaves.leaf_curves import RidgeMoments
from doseforest.engine.splits.score_splits import SplitByScores
from doseforest.estimator.corrections.moments import moment_channels

# A local level beside the slope, in leaves and nodes; scores of the slope alone decide splits.
LEVEL_AND_SLOPE = (0.0, 0.0)
SLOPE_ALONE = ((0.0, 1.0),)


class LinearCausalForest(Baseline):
    """Every unit has a slope tau(x): theta(t, x) = tau(x) (t - baseline).

    Athey, Tibshirani and Wager, "Generalized random forests", Annals of Statistics 47 (2019), and
    what grf and EconML's `CausalForestDML` do with a continuous treatment. What the covariates
    predict of outcome and dose is taken out of both; honest trees split where the slope of what
    remains changes most; the slope of a unit solves the moment equation of a line, with a level of
    its own, over the training rows that share leaves with it.

    The forest tells how the outcome moves with the dose, not where it starts. All units share a
    level, the one at which their curves at the observed doses average to the mean outcome: effects
    and average curves mean what they say, single values of `dose_response` lack the level of the
    unit. A line has no bend: where effects do, it gives their average slope.

    Parameters
    ----------
    n_trees : int, default=500
        Trees of each forest. Raise it where two seeds give slopes that differ by more than matters;
        time and memory grow in proportion.
    min_node_size : int, default=5
        Smallest number of rows that grow a leaf. Raise it where outcomes are noisy, at the cost of
        detail.
    min_child_fraction : float, default=0.05
        Smallest child as a share of its parent's rows. Raise it for more balanced trees; splits
        that cut off a few rows are then lost.
    sample_fraction : float, default=0.5
        Share of the rows that a tree sees; half of them grow it, half fill its leaves. Raise it for
        deeper trees, which resemble each other more.
    mtry : int, float or "sqrt", optional
        Features that a split may use, as for `CurveForest`; by default the root of their number
        and 20 more, at most all.
    outcome_model, treatment_model : regressor, optional
        Of the outcome and of the dose on X, cross-fitted. By default honest regression forests
        with these parameters, read out of bag. Give better ones where there are any: what they
        miss of the confounding stays in the slopes.
    n_folds : int, default=5
        Folds of the cross-fitting. More folds leave more rows to each fit, and take longer.
    random_state : int or None, default=0
        Seed of the forests and the folds; None draws a new one for every fit.
    n_jobs : int, default=1
        Threads; never changes the result.

    Attributes
    ----------
    forest_ : GrownForest
        The causal forest: its curves are level and slope of a unit's residuals.
    residuals_ : Residuals
        Of the training rows.
    level_ : float
        What the curves of all units have in common.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 2))
    >>> dose = X[:, 1] + rng.normal(size=1000)
    >>> y = np.where(X[:, 0] > 0, 3.0, 1.0) * dose + X[:, 1]
    >>> model = LinearCausalForest(n_trees=100).fit(X, y, treatment=dose)
    >>> model.slopes([[-0.5, 0.0], [0.5, 0.0]]).round()
    array([1., 3.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: CurveForest._parameter_constraints[name]
        for name in ("n_trees", "min_node_size", "min_child_fraction", "sample_fraction", "mtry")
    }

    def __init__(
        self,
        n_trees: int = 500,
        min_node_size: int = 5,
        min_child_fraction: float = 0.05,
        sample_fraction: float = 0.5,
        mtry: int | float | Literal["sqrt"] | None = None,
        outcome_model: Any = None,
        treatment_model: Any = None,
        n_folds: int = 5,
        random_state: int | None = 0,
        n_jobs: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self.min_node_size = min_node_size
        self.min_child_fraction = min_child_fraction
        self.sample_fraction = sample_fraction
        self.mtry = mtry
        self.outcome_model = outcome_model
        self.treatment_model = treatment_model
        self.n_folds = n_folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit nuisances and forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,)
            Observed doses.

        Returns
        -------
        LinearCausalForest
            The same object, fitted.
        """
        self._validate_params()
        rows = training_rows(X, y, treatment)
        dose = rows.dose[:, 0]
        require_int("n_folds", self.n_folds, 2, len(dose))
        self._seed = drawn_seed(self.random_state)
        in_bins = bin_array(rows.features, n_threads=thread_count(self.n_jobs))
        mean_outcome = self._mean(self.outcome_model, in_bins, rows.features, rows.outcome, stage=1)
        mean_dose = self._mean(self.treatment_model, in_bins, rows.features, dose, stage=2)
        self.residuals_ = Residuals(rows.outcome - mean_outcome, dose - mean_dose)
        settings = replace(
            self._growth(in_bins.n_features, stage=0),
            statistic=SplitByScores(LEVEL_AND_SLOPE, SLOPE_ALONE),
            leaf_curve=RidgeMoments(LEVEL_AND_SLOPE),
        )
        self.forest_ = grow_forest(in_bins, line_moments(self.residuals_), settings)
        self._keep(rows.features.shape[1], rows.names, rows.dose)
        self.level_ = float(np.mean(rows.outcome - self.slopes(rows.features) * dose))
        return self

    def slopes(self, X: Any) -> FloatArray:
        """Change tau(x) of the outcome per unit of dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.

        Returns
        -------
        array of shape (n_units,)
            The slopes.
        """
        features = self._units(X)
        slopes: FloatArray = self.forest_.forest.predict(features, n_jobs=self.n_jobs)[:, 1]
        return slopes

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Lines on the shared level, shape (n_units, n_doses), on a grid or unit by unit."""
        slopes = self.slopes(X)
        return self.level_ + slopes[:, None] * dose_table(doses, len(slopes)).values

    def _mean(
        self, model: Any, in_bins: BinnedRows, X: FloatArray, values: FloatArray, stage: int
    ) -> FloatArray:
        """What the features predict, from nothing that has seen the row."""
        if model is None:
            grown = grow_forest(in_bins, values[:, None], self._growth(X.shape[1], stage))
            return grown.predict_oob(in_bins.table)[:, 0]
        folds = KFold(self.n_folds, shuffle=True, random_state=self._seed)
        predicted: FloatArray = cross_val_predict(clone(model), X, values, cv=folds)
        return predicted

    def _growth(self, n_features: int, stage: int) -> GrowthSettings:
        """Growth of an honest forest, with a seed for each stage."""
        usual = min(int(np.ceil(np.sqrt(n_features) + 20)), n_features)
        return GrowthSettings(
            n_trees=self.n_trees,
            min_node_size=self.min_node_size,
            min_child_fraction=self.min_child_fraction,
            sample_fraction=self.sample_fraction,
            mtry=usual if self.mtry is None else self.mtry,
            n_threads=thread_count(self.n_jobs),
            seed=derive(self._seed, Purpose.BASELINE_STAGE, stage),
        )


@dataclass(frozen=True, slots=True)
class Residuals:
    """What the features do not predict of the training rows."""

    outcome: FloatArray  # (n_rows,)
    dose: FloatArray  # (n_rows,)


def line_moments(residuals: Residuals) -> FloatArray:
    """Packed moments of a line through residuals, shape (n_rows, 5): 1, e, e^2, u, e u.

    Examples
    --------
    >>> line_moments(Residuals(outcome=np.array([5.0]), dose=np.array([2.0])))
    array([[ 1.,  2.,  4.,  5., 10.]])
    """
    functions = np.column_stack([np.ones(len(residuals.dose)), residuals.dose])
    return moment_channels(functions, residuals.outcome)
