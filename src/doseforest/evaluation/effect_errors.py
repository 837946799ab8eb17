"""How far estimated curves are from the exact ones, and comparisons over simulations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.datasets.simulation import Simulation
from doseforest.doses.curve_effects import dose_table


class CurveModel(Protocol):
    """Anything that gives the dose-response curves of units."""

    def dose_response(self, X: Any, doses: Any) -> FloatArray:
        """Expected outcomes, shape (n_units, n_doses)."""


@dataclass(frozen=True, slots=True)
class EffectErrors:
    """Errors of one model on one simulation.

    `rms`, `mae` and `sup` are of theta(t, x) = mu(t, x) - mu(baseline, x), over units and doses.
    The others are of the average dose-response curve, the mean of mu(t, x) over the units, over
    doses; unlike theta they see the level.

    Attributes
    ----------
    rms : float
        Root mean square error of theta.
    mae : float
        Mean absolute error of theta.
    adrf_rms : float
        Root mean square error of the average curve.
    adrf_sup : float
        Largest error of the average curve.
    sup : float
        Largest absolute error of theta over the doses, mean over units.

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve
    >>> from doseforest.datasets import DESIGNS
    >>> simulation = DESIGNS["linear"].draw(n=200, seed=0)
    >>> effect_errors(AverageCurve(lambda doses: 0.0 * doses), simulation).rms > 1.0
    True
    """

    rms: float
    mae: float
    adrf_rms: float
    adrf_sup: float
    sup: float


def curve_errors(
    exact: FloatArray,
    estimated: FloatArray,
    exact_baseline: FloatArray,
    estimated_baseline: FloatArray,
) -> EffectErrors:
    """Errors of estimated curves.

    Parameters
    ----------
    exact, estimated : array of shape (n_units, n_doses)
        Curves at the doses that count, each as much as the others.
    exact_baseline, estimated_baseline : array of shape (n_units,)
        The same curves at the baseline dose.

    Returns
    -------
    EffectErrors
        The errors.

    Examples
    --------
    >>> exact, level = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2)
    >>> curve_errors(exact, exact + [[0.0, 2.0], [0.0, 0.0]], level, level)
    EffectErrors(rms=1.0, mae=0.5, adrf_rms=0.7071067811865476, adrf_sup=1.0, sup=1.0)
    """
    n_units, n_doses = _matching(exact, estimated, "estimated")
    if not n_units * n_doses:
        raise ValueError(
            f"The 'exact' parameter must have a unit and a dose. Got shape {exact.shape} instead."
        )
    _matching(exact[:, 0], exact_baseline, "exact_baseline")
    _matching(exact[:, 0], estimated_baseline, "estimated_baseline")
    level = estimated - exact
    effect = level - (estimated_baseline - exact_baseline)[:, None]
    average = level.mean(axis=0)
    return EffectErrors(
        rms=float(np.sqrt(np.mean(effect**2))),
        mae=float(np.mean(np.abs(effect))),
        adrf_rms=float(np.sqrt(np.mean(average**2))),
        adrf_sup=float(np.max(np.abs(average))),
        sup=float(np.abs(effect).max(axis=1).mean()),
    )


def _matching(expected: FloatArray, got: FloatArray, name: str) -> tuple[int, ...]:
    if got.shape != expected.shape:
        raise ValueError(
            f"The {name!r} parameter must have shape {expected.shape}. Got {got.shape} instead."
        )
    if not np.isfinite(got).all():
        raise ValueError(
            f"The {name!r} parameter must hold finite numbers. "
            f"Got {got[~np.isfinite(got)][0]} instead."
        )
    return got.shape


def effect_errors(
    model: CurveModel,
    simulation: Simulation,
    *,
    X: Any = None,
    doses: Any = None,
    baseline: Any = None,
) -> EffectErrors:
    """Errors of a fitted model on a simulation with a known truth.

    Parameters
    ----------
    model : object with `dose_response(X, doses)`
        A fitted model.
    simulation : Simulation
        What it was fitted on, or another draw.
    X : array of shape (n_units, n_features), optional
        Units to measure on, for instance `simulation.draw_units(1000, seed=1)`; by default those
        of the simulation.
    doses : array of shape (n_doses,) or (n_units, n_doses), optional
        Doses to measure at; by default the interior ones of the simulation.
    baseline : float, optional
        The dose that effects are against; by default that of the simulation.

    Returns
    -------
    EffectErrors
        The errors.

    Examples
    --------
    >>> from doseforest.baselines import AverageCurve
    >>> from doseforest.datasets import DESIGNS
    >>> simulation = DESIGNS["linear"].draw(n=200, seed=0)
    >>> effect_errors(AverageCurve(lambda doses: 2.0 * doses + 1.0), simulation).mae < 1e-12
    True
    """
    units = simulation.X if X is None else X
    start = simulation.baseline if baseline is None else baseline
    width = simulation.n_components
    asked = dose_table(simulation.doses if doses is None else doses, len(units), n_components=width)
    first = dose_table(start, len(units), "baseline", width)
    table = np.concatenate([first, asked], axis=1)
    exact = simulation.mean(table, units)
    shared = bool((table == table[:1]).all())  # a grid is cheaper for some models
    estimated = np.asarray(model.dose_response(units, table[0] if shared else table), np.float64)
    _matching(exact, estimated, "model")
    return curve_errors(exact[:, 1:], estimated[:, 1:], exact[:, 0], estimated[:, 0])


def simulation_mean(values: Any) -> Estimate:
    """Mean and standard error of one number per simulation.

    Parameters
    ----------
    values : array of shape (n_simulations,)
        The numbers, of at least two simulations.

    Returns
    -------
    Estimate
        The mean, with Student's degrees of freedom.

    Examples
    --------
    >>> mean = simulation_mean([1.0, 2.0, 3.0])
    >>> mean, mean.degrees
    (2 (s.e. 0.577), 2)
    """
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.isfinite(numbers).all():
        raise ValueError(
            "The 'values' parameter must be one finite number for each of at least 2 simulations. "
            f"Got {values!r} instead."
        )
    error = numbers.std(ddof=1) / np.sqrt(len(numbers))
    return Estimate(float(numbers.mean()), float(error), degrees=len(numbers) - 1)


def paired_difference(first: Any, second: Any) -> Estimate:
    """Mean of first less second, simulation by simulation.

    What both share, the draw of the data, cancels: the standard error is that of the comparison.

    Parameters
    ----------
    first, second : arrays of shape (n_simulations,)
        A number per simulation, of the same simulations.

    Returns
    -------
    Estimate
        The mean difference, with Student's degrees of freedom.

    Examples
    --------
    >>> paired_difference([1.0, 3.0], [0.5, 2.5])
    0.5 (s.e. 0)
    """
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != other.shape:
        raise ValueError(
            f"The 'second' parameter must have the shape of 'first', {one.shape}. "
            f"Got {other.shape} instead."
        )
    return simulation_mean(one - other)
