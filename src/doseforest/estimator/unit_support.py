"""Whether units could have had a dose, and what is said where hardly any could."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.levels import OverlapWarning
from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.training_rows import TrainingRows
from doseforest.nuisance.treatment.chained import (
    ChainedDensity,
    along_chain,
    any_learner,
    joint_support,
)
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity
from doseforest.nuisance.treatment.encoded_densities import with_categories
from doseforest.nuisance.treatment.location_scale import LocationScale
from doseforest.nuisance.treatment.treatment_support import DoseSupport

SUPPORTED_SHARE = 0.05  # of the density at a unit's likeliest dose
FEWEST_SUPPORTED = 0.1  # share of units below which a dose is called out
FEWEST_AT_LEVEL = 20
N_SHOWN = 101  # doses among which the likeliest is looked for


def fit_overlap(
    rows: TrainingRows, plan: FitPlan
) -> tuple[ConditionalDensity, tuple[DoseSupport, ...]]:
    """The density of the dose by location and scale, and where each of its components can be."""
    counts = rows.category_counts(rows.treatment_columns)
    learner = any_learner(with_categories(LocationScale(), counts), rows.dose)
    density = learner.fit(
        rows.treatment_features,
        rows.dose.values,
        weights=rows.weights,
        seed=plan.seed,
        n_threads=plan.n_threads,
    )
    return density, joint_support(rows.dose, rows.weights)


def supported(
    density: ConditionalDensity, X: FloatArray, doses: DoseArray, *grounds: DoseSupport
) -> NDArray[np.bool_]:
    """Whether each unit could well have had each dose, shape (n_units, n_doses).

    A dose is supported where its density given the unit's covariates is at least 5 % of that at
    the unit's likeliest dose: for a normal dose, within 2.4 standard deviations. A point mass, or a
    level, is compared by its probability with the unit's likeliest one and with all other doses
    together. Doses a little outside the observed ones count as the nearest of them.
    Of several components each must be, given those before it.
    """
    if isinstance(density, ChainedDensity):
        parts = density.parts

        def part(place: int, units: FloatArray, values: FloatArray) -> NDArray[np.bool_]:
            return supported(parts[place], units, values, grounds[place])

        every: NDArray[np.bool_] = np.all(along_chain(X, doses, part), axis=0)
        return every
    (ground,) = grounds
    asked = within(ground, doses)
    masses = np.array(ground.masses)
    shares = density.density(X, masses) if len(masses) else np.zeros((len(X), 1))
    rest = 1 - shares.sum(axis=1, keepdims=True)
    likeliest = np.maximum(shares.max(axis=1, keepdims=True), rest)
    values = density.density(X, asked)
    between = np.linspace(ground.low, ground.high, N_SHOWN)
    between = between[~np.isin(between, masses)]
    peak = density.density(X, between).max(axis=1, keepdims=True)
    continuous = (values >= SUPPORTED_SHARE * peak) & (rest >= SUPPORTED_SHARE * likeliest)
    flags: NDArray[np.bool_] = np.where(
        np.isin(asked, masses), values >= SUPPORTED_SHARE * likeliest, continuous
    )
    return flags


def within(ground: DoseSupport, doses: FloatArray) -> FloatArray:
    """Doses that can be asked about: a mass as it is, others drawn into the range beside masses.

    >>> within(DoseSupport(1.0, 9.0, (0.0,), True), np.array([0.0, 0.5, 9.5]))
    array([0., 1., 9.])
    """
    drawn: FloatArray = np.where(
        ground.at_mass(doses), doses, np.clip(doses, ground.low, ground.high)
    )
    return drawn


def supported_shares(
    density: ConditionalDensity,
    X: FloatArray,
    doses: DoseArray,
    grounds: tuple[DoseSupport, ...],
    weights: FloatArray | None = None,
) -> FloatArray:
    """Share of the units that could well have had each dose, (n_doses,)."""
    shares: FloatArray = np.average(supported(density, X, doses, *grounds), axis=0, weights=weights)
    return shares


CURE = (
    "Give 'doses' that leave them out, look at supported(X, doses), or name in 'density_features' "
    "only covariates that also drive the outcome."
)


def warn_of_unsupported(
    grid: Doses, shares: FloatArray, stacklevel: int = 3, cure: str = CURE
) -> None:
    """Warn of doses by the shares of the units that could have had them."""
    poor = grid[shares < FEWEST_SUPPORTED]
    if len(poor):
        named = ", ".join(map(dose_text, poor[:5])) + (", …" if len(poor) > 5 else "")
        warnings.warn(
            f"Fewer than {FEWEST_SUPPORTED:.0%} of the units could have had the dose(s) {named}: "
            f"there the curves of the others are extrapolated by the outcome model. {cure}",
            OverlapWarning,
            stacklevel=stacklevel,
        )


def warn_of_rare_levels(levels: Doses, counts: FloatArray) -> None:
    """Warn of levels that few rows have."""
    rare = levels[counts < FEWEST_AT_LEVEL]
    if len(rare):
        warnings.warn(
            f"The level(s) {', '.join(map(dose_text, rare[:5]))} of the treatment have "
            f"fewer than {FEWEST_AT_LEVEL} rows each; their effects will be mostly guesswork. "
            "Merge them with their neighbours.",
            stacklevel=3,
        )
