"""The doubly robust average curve of Kennedy, Ma, McHugh and Small (2017), for every unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.machine import thread_count
from doseforest.baselines.baseline import Baseline
from doseforest.baselines.baseline_inputs import drawn_seed, require_int, training_rows
from doseforest.baselines.cross_fitted_stack import (
    CrossFittedStack,
    cross_fit_stack,
    line_and_forest,
)
from doseforest.baselines.location_scale_kernel import DoseDensity, dose_density
from doseforest.baselines.reference_curves import at_distinct_doses
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.smoothing.bandwidths import loo_bandwidth
from doseforest.doses.smoothing.boundary import local_line
from doseforest.doses.smoothing.kernel_weights import scaled_differences
from doseforest.doses.smoothing.kernels import KERNELS
from doseforest.doses.smoothing.smoother_inputs import given_bandwidth

KERNEL = "gaussian"
STEPS_PER_BANDWIDTH = 16  # of the finished curve's table, between which it is read by lines
FEWEST_STEPS, MOST_STEPS = 100, 2000
LEAST_MASS = 1e-290  # of kernel weights; below, they have lost digits to underflow


@dataclass(frozen=True, slots=True)
class AverageDoses:
    """An average curve at a table of doses, linear in between and flat outside."""

    doses: FloatArray  # (n_points,) ascending
    values: FloatArray  # (n_points,)

    def __call__(self, doses: FloatArray) -> FloatArray:
        """Value at each dose."""
        return np.interp(doses, self.doses, self.values)


class KennedyCurve(Baseline):
    """The doubly robust average dose-response curve, the same for every unit.

    Kennedy, Ma, McHugh and Small, "Non-parametric methods for doubly robust estimation of
    continuous treatment effects", JRSS-B 79 (2017). Each row gets a pseudo-outcome

        xi = (Y - mu(X, T)) / pi(T | X) * mean_j pi(T | X_j) + mean_j mu(X_j, T),

    right on average when either the outcome model mu or the density pi is; a local line of xi on
    the dose is the curve. It knows no heterogeneity: what it gets wrong of single units is at
    least what their effects vary.

    As in the authors' code the nuisances are stacks, averages over units are taken on a grid of
    doses and interpolated, and the bandwidth has the least leave-one-out error, here from sums
    over a lattice of doses in time O(n). Unlike there, what is said of a row comes from fits
    without its fold: a forest that has seen an outcome leaves next to no residual of it, and with
    it goes the correction. `as_coded` is for comparisons with numbers that their code has given.

    Parameters
    ----------
    outcome_model : regressor, optional
        Of the outcome on [X, T]. By default a linear regression and a random forest, in the convex
        mixture of least error out of fold.
    treatment_model : regressor, optional
        Of the dose on X, and once more of its squared residuals; the default is the same. The
        density is that of the standardised residuals, by a kernel, over the scale.
    n_folds : int, default=5
        Folds of the cross-fitting.
    bandwidth : float, optional
        Of the local line; by default chosen by leaving one out.
    n_doses : int, default=100
        Doses of the grid on which averages over units are taken.
    as_coded : bool, default=False
        Do as the authors' package npcausal does with learners "glm" and "ranger": nuisances have
        seen the rows that they are asked about (folds serve the shares of the mixture alone, ten
        there), forests are ranger's, and densities are read at the places of a wider table
        (`dose_density.MisplacedDensity`), which makes their weights milder. Still not as there:
        100 trees, not 500; lines, not splines, between the doses of the grid; variances and
        densities are kept from 0.
    random_state : int or None, default=0
        Seed of the folds and the default models; None draws a new one for every fit.
    n_jobs : int, default=1
        Folds that are fitted side by side; never changes the result.

    Attributes
    ----------
    outcome_model_ : CrossFittedStack
        The dose is its last column.
    density_ : DoseDensity
        Of the training rows.
    pseudo_outcomes_ : array of shape (n_rows,)
        One for each training row.
    bandwidth_ : float
        Of the local line.
    average_ : AverageDoses
        The curve: `average_(doses)` is its value at each dose. Flat outside the observed doses.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> dose = X[:, 0] + rng.normal(size=500)
    >>> line = LinearRegression()
    >>> model = KennedyCurve(outcome_model=line, treatment_model=line)
    >>> model.fit(X, 2 * dose + X[:, 0], treatment=dose).effect(X[:2], 1.0, -1.0).round(3)
    array([4., 4.])
    """

    def __init__(
        self,
        outcome_model: Any = None,
        treatment_model: Any = None,
        n_folds: int = 5,
        bandwidth: float | None = None,
        n_doses: int = 100,
        as_coded: bool = False,
        random_state: int | None = 0,
        n_jobs: int = 1,
    ) -> None:
        self.outcome_model = outcome_model
        self.treatment_model = treatment_model
        self.n_folds = n_folds
        self.bandwidth = bandwidth
        self.n_doses = n_doses
        self.as_coded = as_coded
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, treatment: Any) -> Self:
        """Fit the nuisances, make the pseudo-outcomes and smooth them over the dose.

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
        KennedyCurve
            The same object, fitted.
        """
        rows = training_rows(X, y, treatment)
        dose = rows.dose[:, 0]
        require_int("n_doses", self.n_doses, 2)
        require_int("n_folds", self.n_folds, 2, len(dose))
        if not isinstance(self.as_coded, bool | np.bool_):
            raise ValueError(
                f"The 'as_coded' parameter must be True or False. Got {self.as_coded!r} instead."
            )
        given = None if self.bandwidth is None else given_bandwidth(self.bandwidth)
        seed = drawn_seed(self.random_state)
        table = np.column_stack([rows.features, dose])
        self.outcome_model_ = self._cross_fit(self.outcome_model, table, rows.outcome, seed)
        location = self._cross_fit(self.treatment_model, rows.features, dose, seed)
        squares = (dose - location.observed) ** 2
        if self.as_coded and not squares.any():
            raise ValueError(
                "The 'treatment_model' parameter must leave something of the dose with "
                f"as_coded=True, where it has seen all rows. Got {self.treatment_model!r}, which "
                "repeats them, instead."
            )
        scale = self._cross_fit(self.treatment_model, rows.features, squares, seed)
        grid = np.linspace(dose.min(), dose.max(), int(self.n_doses))
        misread_over = grid if self.as_coded else None
        self.density_ = dose_density(dose, location.observed, scale.observed, misread_over)
        self.pseudo_outcomes_ = pseudo_outcomes(
            dose,
            rows.outcome - self.outcome_model_.observed,
            self.density_,
            grid,
            self.outcome_model_.average(rows.features, grid),
        )
        chosen = given or loo_bandwidth(dose, self.pseudo_outcomes_, KERNEL).bandwidth
        self.bandwidth_ = chosen
        points = curve_doses(dose, chosen)
        values = local_lines(dose, self.pseudo_outcomes_, points, chosen)
        reached = np.isfinite(values)  # gaps in the doses, far wider than the bandwidth, are not
        self.average_ = AverageDoses(points[reached], values[reached])
        self._keep(rows.features.shape[1], rows.names, rows.dose)
        return self

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """The average curve, shape (n_units, n_doses), on a grid or unit by unit."""
        n_units = len(self._units(X))
        return at_distinct_doses(self.average_, dose_table(doses, n_units))

    def _cross_fit(self, model: Any, X: FloatArray, y: FloatArray, seed: int) -> CrossFittedStack:
        default = line_and_forest(seed, like_ranger=self.as_coded)
        return cross_fit_stack(
            default if model is None else [model],
            X,
            y,
            n_folds=int(self.n_folds),
            seed=seed,
            n_threads=thread_count(self.n_jobs),
            in_sample=self.as_coded,
        )


def pseudo_outcomes(
    dose: FloatArray,
    residual: FloatArray,
    density: DoseDensity,
    grid: FloatArray,
    averages: FloatArray,
) -> FloatArray:
    """Doubly robust outcomes xi of each row at its own dose, (n_rows,).

    Parameters
    ----------
    dose, residual : array of shape (n_rows,)
        Doses, and outcomes less what the outcome model says of them.
    density : DoseDensity
        Of the rows.
    grid, averages : array of shape (n_doses,)
        Doses, and the outcome model's average over the units at each, interpolated in between.
    """
    marginal = np.interp(dose, grid, density.average(grid))
    xi: FloatArray = residual * marginal / density.at(dose) + np.interp(dose, grid, averages)
    return xi


def local_lines(
    dose: FloatArray, outcome: FloatArray, points: FloatArray, bandwidth: float
) -> FloatArray:
    """Value at each point of the line through rows weighted by a Gaussian around it, (n_points,).

    NaN where no row is near enough to have a weight.

    Examples
    --------
    >>> dose = np.linspace(0, 1, 20)
    >>> local_lines(dose, 3 * dose + 1, np.array([0.0, 0.5]), bandwidth=0.1).round(9)
    array([1. , 2.5])
    """
    level = float(outcome.mean())  # it would cost digits
    widths = np.full(len(points), bandwidth)
    sums, outcomes = np.zeros((3, len(points))), np.zeros((2, len(points)))
    for rows, u in scaled_differences(dose, points, widths):
        weights = KERNELS[KERNEL].value(u)
        for power in range(3):
            sums[power] += weights.sum(axis=0)
            if power < 2:
                outcomes[power] += (outcome[rows] - level) @ weights
            weights *= u
    reached = sums[0] > LEAST_MASS
    sums, outcomes = np.where(reached, sums, np.nan), np.where(reached, outcomes, np.nan)
    mean, tilt = local_line(sums[0], sums[1], sums[2], degree=1)
    centre, first = outcomes / sums[0]
    return np.asarray(level + centre - tilt * (first - mean * centre))


def curve_doses(dose: FloatArray, bandwidth: float) -> FloatArray:
    """Doses of a table that is finer than the bandwidth, over the observed range.

    Examples
    --------
    >>> len(curve_doses(np.array([0.0, 10.0]), bandwidth=1.0))
    161
    """
    low, high = float(dose.min()), float(dose.max())
    wanted = int(np.ceil((high - low) / bandwidth * STEPS_PER_BANDWIDTH))
    return np.linspace(low, high, 1 + min(max(wanted, FEWEST_STEPS), MOST_STEPS))
