"""Densities that are known: given values, given functions, and doses randomised within strata."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.data.checks import as_numbers, group_codes
from doseforest.dtypes import FloatArray, IntArray
from doseforest.nuisance.densities.base import CrossFittedDensity, checked_dose_table
from doseforest.nuisance.densities.marginal import MarginalDensity, marginal_density
from doseforest.nuisance.densities.support import DoseSupport, dose_support
from doseforest.nuisance.densities.weights import TreatmentWeights, density_ratios

DensityFunction = Callable[[FloatArray, FloatArray], Any]
SMALLEST_STRATUM = 10


@dataclass(frozen=True, slots=True)
class Strata:
    """A dose that was randomised within strata.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        Stratum of each training row: integers or text.

    Examples
    --------
    >>> dose = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 2, 100)])
    >>> weights = known_weights(Strata(np.repeat(["low", "high"], 100)), np.zeros((200, 1)), dose)
    >>> weights.density.observed[[50, 150]].round(1)
    array([1. , 0.5])
    """

    labels: Any


@dataclass(frozen=True, slots=True)
class KnownDensity:
    """A density that was given as a function of (X, doses)."""

    function: DensityFunction

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | x), (n_units, n_doses), checked."""
        table = checked_dose_table(doses, len(X))
        own = np.array(np.broadcast_to(table, (len(X), table.shape[-1])))
        values = as_numbers(self.function(X, own), "density").astype(np.float64)
        if values.shape != own.shape:
            raise ValueError(
                "The 'density' parameter must give values of shape (n_units, n_doses), "
                f"{own.shape}, for doses of that shape. Got shape {values.shape} instead."
            )
        bad = ~((values >= 0) & (values < np.inf))
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                "The 'density' parameter must give finite values that are not negative. "
                f"Got {values[row, column]} in row {row} at dose {own[row, column]:g} instead."
            )
        return values


@dataclass(frozen=True, slots=True)
class StrataDensity:
    """The density of each training row's stratum; other units have no stratum."""

    codes: IntArray  # (n_rows,)
    parts: tuple[MarginalDensity, ...]

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values pi(t | stratum), (n_rows, n_doses); X must be the training table."""
        if len(X) != len(self.codes):
            raise ValueError(
                f"The 'X' parameter must be the training table ({len(self.codes)} rows): strata "
                f"are known of its rows only. Got {len(X)} rows instead."
            )
        table = checked_dose_table(doses, len(X))
        out = np.empty((len(X), table.shape[-1]))
        for code, part in enumerate(self.parts):
            rows = self.codes == code
            out[rows] = part.at(table if table.ndim == 1 else table[rows])
        return out

    def mean(self, doses: FloatArray, weights: FloatArray) -> FloatArray:
        """Mean over all rows of the density at each dose, in the doses' shape."""
        shares = np.bincount(self.codes, weights) / weights.sum()
        mean = np.zeros(doses.shape)
        for share, part in zip(shares, self.parts, strict=True):
            mean += share * part.at(doses)
        return mean


def known_weights(
    density: Any,
    X: FloatArray,
    dose: FloatArray,
    *,
    weights: FloatArray | None = None,
) -> TreatmentWeights:
    """Weights of a dose whose density is known; it is used as it is.

    Parameters
    ----------
    density : array of shape (n_rows,), callable or Strata
        Values pi(T_i | X_i) of the training rows; or a function from X and doses (n_units,
        n_doses) to densities of that shape; or the strata within which the dose was randomised.
        At a point mass the value is a probability.
    X : array of shape (n_rows, n_features)
    dose : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> dose = rng.uniform(0, 2, size=500)
    >>> flat = known_weights(lambda x, t: np.full(t.shape, 0.5), np.zeros((500, 1)), dose)
    >>> float(flat.r.min()), float(flat.r.max())
    (1.0, 1.0)
    """
    X, doses = np.asarray(X, np.float64), np.asarray(dose, np.float64)
    one_fold = np.zeros(len(doses), np.int64)
    if isinstance(density, Strata):
        strata = _strata_density(density, doses, weights)
        observed = strata.density(X, doses[:, None])[:, 0]
        fitted = CrossFittedDensity(strata, (strata,), one_fold, observed)
        own = np.ones(len(doses)) if weights is None else weights
        ratios = strata.mean(doses, own) / observed
        return TreatmentWeights.capping("strata", ratios, fitted, weights=weights)
    if callable(density):
        known = KnownDensity(density)
        observed = _positive(known.density(X, doses[:, None])[:, 0])
        fitted = CrossFittedDensity(known, (known,), one_fold, observed)
        ratios = density_ratios(fitted, doses, X, weights=weights)
        return TreatmentWeights.capping("known", ratios, fitted, weights=weights)
    values = as_numbers(density, "density").astype(np.float64)
    if values.shape != doses.shape:
        raise ValueError(
            f"The 'density' parameter must have one value per row ({len(doses)}). "
            f"Got shape {values.shape} instead."
        )
    ratios = density_ratios(_positive(values), doses, weights=weights)
    return TreatmentWeights.capping("known", ratios, weights=weights)


def _positive(values: FloatArray) -> FloatArray:
    bad = ~((values > 0) & (values < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            "The 'density' parameter must be positive and finite at every observed dose. "
            f"Got {values[row]} in row {row} instead."
        )
    return values


def _strata_density(strata: Strata, dose: FloatArray, weights: FloatArray | None) -> StrataDensity:
    labels = np.asarray(strata.labels)
    codes = group_codes(labels, len(dose))
    own = np.ones(len(dose)) if weights is None else weights
    support = dose_support(dose, own)
    parts = []
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero((codes == code) & (own > 0))
        name = labels[np.argmax(codes == code)]
        n_doses = len(np.unique(dose[rows]))
        n_beside = len(np.setdiff1d(dose[rows], support.masses))
        if len(rows) < SMALLEST_STRATUM or n_doses == 1 or n_beside == 1:
            raise ValueError(
                f"The 'labels' parameter of Strata must make strata of at least "
                f"{SMALLEST_STRATUM} rows with doses that vary, beside point masses too. "
                f"Got stratum {name!s} with {len(rows)} rows and {n_doses} distinct doses instead."
            )
        parts.append(marginal_density(dose[rows], own[rows], support=_within(support, dose[rows])))
    return StrataDensity(codes, tuple(parts))


def _within(support: DoseSupport, dose: FloatArray) -> DoseSupport:
    """Range of a stratum's doses, with the masses of all rows: a mass is one for everybody."""
    others = dose[~support.at_mass(dose)] if support.continuous else dose
    others = others if len(others) else dose
    return DoseSupport(
        float(others.min()), float(others.max()), support.masses, support.continuous, support.scale
    )
