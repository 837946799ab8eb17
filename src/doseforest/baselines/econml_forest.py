"""EconML's causal forest, on splines of the dose or linear in it: the nearest peer."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.preprocessing import SplineTransformer

from doseforest.base.dtypes import FloatArray
from doseforest.baselines.baseline import Baseline
from doseforest.baselines.baseline_inputs import require_int, training_rows
from doseforest.baselines.extra_packages import from_extra
from doseforest.data.feature_table import column_label
from doseforest.doses.curve_effects import dose_table

LASSO = "linear"  # EconML's name for a lasso whose penalty is cross-validated


class EconMLForest(Baseline):
    """`CausalForestDML` of EconML on splines of the dose, or plain, with the effect API.

    Its forest gives every unit coefficients on the splines: how the outcome moves with the dose,
    not where it starts. All units therefore share a level, the one at which their curves at the
    observed doses average to the mean outcome: effects and average curves mean what they say,
    single values of `dose_response` lack the level of the unit.

    The defaults are fair to it: by trials on simulations that no benchmark uses, leaves of 20 and
    4 knots did better than EconML's 5 rows a leaf and than 5 knots on designs with overlap.

    Parameters
    ----------
    n_trees : int, default=500
        Trees of the causal forest; only EconML's intervals, which are off, want them by fours.
    min_samples_leaf : int, default=20
        Least number of units in a leaf.
    n_knots : int or None, default=4
        Knots at quantiles of the dose; fewer where quantiles coincide. None is the plain forest,
        linear in the dose: see `linear`.
    outcome_model, treatment_model : regressor, str or list of these, optional
        Nuisances as EconML takes them; of a list it picks the best by cross-validation. By
        default it picks among a lasso, a random forest and, for the outcome, boosting.
    n_folds : int, default=5
        Folds of the cross-fitting.
    random_state : int, default=0
        Seed of the forest, the folds and the default nuisances.
    n_jobs : int, default=1
        Threads of the causal forest.

    Attributes
    ----------
    forest_ : econml.dml.CausalForestDML
        Fitted.
    splines_ : SplineTransformer or None
        Of the dose; flat outside the observed doses. None where effects are linear in it.
    level_ : float
        What the curves of all units have in common.

    Examples
    --------
    >>> EconMLForest().get_params()["n_knots"]
    4
    """

    def __init__(
        self,
        n_trees: int = 500,
        min_samples_leaf: int = 20,
        n_knots: int | None = 4,
        outcome_model: Any = None,
        treatment_model: Any = None,
        n_folds: int = 5,
        random_state: int = 0,
        n_jobs: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self.min_samples_leaf = min_samples_leaf
        self.n_knots = n_knots
        self.outcome_model = outcome_model
        self.treatment_model = treatment_model
        self.n_folds = n_folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def linear(cls, **overrides: Any) -> Self:
        """The forest as EconML has it: tau(x) times the dose, leaves of 5 units.

        Parameters
        ----------
        **overrides
            Other parameters of the forest.

        Examples
        --------
        >>> forest = EconMLForest.linear(n_trees=100)
        >>> forest.n_knots, forest.min_samples_leaf, forest.n_trees
        (None, 5, 100)
        """
        return cls(**{"n_knots": None, "min_samples_leaf": 5, **overrides})

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit nuisances and forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Features: a table of numpy, pandas or polars, without missing values.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,)
            Observed doses.

        Returns
        -------
        EconMLForest
            The same object, fitted.
        """
        causal_forest = load_causal_forest()
        rows = training_rows(X, y, treatment)
        require_complete(rows.features, rows.names)
        require_int("n_folds", self.n_folds, 2, len(rows.dose))
        dose = rows.dose[:, 0]
        splines = None if self.n_knots is None else dose_splines(rows.dose, self.n_knots)
        self.forest_ = causal_forest(
            model_y=_nuisance(self.outcome_model, _outcome_models(self.random_state)),
            model_t=_nuisance(self.treatment_model, _treatment_models(self.random_state)),
            treatment_featurizer=None if splines is None else clone(splines),
            n_estimators=self.n_trees,
            min_samples_leaf=self.min_samples_leaf,
            cv=self.n_folds,
            inference=False,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        ).fit(rows.outcome, dose if splines is None else rows.dose, X=rows.features)
        self.splines_ = None if splines is None else splines.fit(rows.dose)
        self._keep(rows.features.shape[1], rows.names, rows.dose)
        fitted = self._unlevelled(rows.features, rows.dose)[:, 0]
        self.level_ = float(np.mean(rows.outcome - fitted))
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Curves on the shared level, shape (n_units, n_doses), on a grid or unit by unit."""
        features = self._units(X)
        require_complete(features, self._names)
        return self.level_ + self._unlevelled(features, dose_table(doses, len(features)).values)

    def _unlevelled(self, features: FloatArray, doses: FloatArray) -> FloatArray:
        coefficients = self.forest_.const_marginal_effect(features).reshape(len(features), -1)
        if self.splines_ is None:
            return np.asarray(coefficients * doses)
        return spline_curves(self.splines_, coefficients, doses)


def load_causal_forest() -> Any:
    """Class `CausalForestDML` of EconML, or an error that says how to get it."""
    return from_extra("econml.dml", "CausalForestDML", baseline="EconMLForest", package="EconML")


def require_complete(features: FloatArray, names: tuple[str, ...] | None) -> None:
    """Raise ValueError for missing features, which EconML's forest does not take.

    Examples
    --------
    >>> require_complete(np.array([[1.0, np.nan]]), ("age", "size"))
    Traceback (most recent call last):
    ...
    ValueError: The 'X' parameter of EconMLForest must not have missing values: fill them in first,
    for instance by sklearn.impute.SimpleImputer. Got NaN in row 0, column 'size' instead.
    """
    missing = np.isnan(features)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            "The 'X' parameter of EconMLForest must not have missing values: fill them in first, "
            "for instance by sklearn.impute.SimpleImputer. "
            f"Got NaN in row {row}, column {column_label(names, int(column))} instead."
        )


def dose_splines(dose: FloatArray, n_knots: int) -> SplineTransformer:
    """Cubic splines with knots at quantiles of the dose, shape (n_units, 1), not yet fitted.

    Examples
    --------
    >>> dose_splines(np.arange(5.0)[:, None], n_knots=3).knots.ravel()
    array([0., 2., 4.])
    """
    if not isinstance(n_knots, Integral) or n_knots < 2:
        raise ValueError(
            "The 'n_knots' parameter of EconMLForest must be None or an int of at least 2. "
            f"Got {n_knots!r} instead."
        )
    knots = np.unique(np.quantile(dose, np.linspace(0.0, 1.0, n_knots)))
    if len(knots) < 2:
        raise ValueError(
            f"The 'treatment' parameter must hold different doses. Got only {knots[0]:g} instead."
        )
    return SplineTransformer(
        degree=3, knots=knots[:, None], include_bias=False, extrapolation="constant"
    )


def spline_curves(
    splines: SplineTransformer, coefficients: FloatArray, doses: FloatArray
) -> FloatArray:
    """Splines at a table of doses times the coefficients of each unit.

    Parameters
    ----------
    splines : fitted SplineTransformer
        Of the dose.
    coefficients : array of shape (n_units, n_splines)
        Of each unit.
    doses : array of shape (n_units, n_doses)
        Doses of each.

    Returns
    -------
    array of shape (n_units, n_doses)
    """
    columns = [
        np.einsum("is,is->i", splines.transform(column[:, None]), coefficients)
        for column in doses.T
    ]
    return np.stack(columns, axis=1)


def _outcome_models(seed: int) -> list[Any]:
    boosting = HistGradientBoostingRegressor(
        max_iter=200, learning_rate=0.05, max_leaf_nodes=8, early_stopping=False, random_state=seed
    )
    return [*_treatment_models(seed), boosting]


def _treatment_models(seed: int) -> list[Any]:
    return [LASSO, RandomForestRegressor(100, min_samples_leaf=5, random_state=seed)]


def _nuisance(given: Any, default: list[Any]) -> Any:
    return default if given is None else given
