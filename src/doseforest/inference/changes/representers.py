"""The representer of a contrast of doses: exact where the assignment is known, else by regression.

A move of the dose gives units the density of where they come from: at t a unit that was moved there
from o has the weight pi(o | x) / (factor pi(t | x)). What no density can tell, as units that are
held at an end of the range, or moved off a point mass, is left to the regression of `riesz`: its
mean over some draws of folds, which make less noise than one, and tell how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.inference.changes.dose_moves import Contrast, Move
from doseforest.inference.changes.riesz import RieszTerms, representer
from doseforest.nuisance.treatment.conditional_density import RowDensities
from doseforest.nuisance.treatment.treatment_support import DoseSupport

REGRESSION, KNOWN, MIXED = "regression", "known density", "known density and regression"


@dataclass(frozen=True, slots=True, eq=False)
class Representer:
    """Weights of the residuals, and where they come from."""

    values: FloatArray  # (n_rows,)
    source: str
    draws: FloatArray  # (n_draws, n_rows) that the values are the mean of; none where all is known


@dataclass(frozen=True, slots=True, eq=False)
class FoldDraw:
    """What one regression is made of."""

    terms: RieszTerms
    folds: IntArray  # (n_rows,)


def represent(
    draws: Sequence[FoldDraw],
    dose: FloatArray,
    contrast: Contrast,
    *,
    weights: FloatArray | None = None,
    known: RowDensities | None = None,
    X: FloatArray | None = None,
    support: DoseSupport | None = None,
) -> Representer:
    """Representer of a contrast at the training rows.

    Parameters
    ----------
    draws : sequence of FoldDraw
        Of regressions, over which their mean is taken.
    known : RowDensities, optional
        Densities of the training rows at any dose; with them `X`, the training table that they
        see, and `support`, which tells the point masses.
    """
    if known is None:
        drawn = _regressed(draws, dose, contrast, None, weights)
        return Representer(drawn.mean(axis=0), REGRESSION, drawn)
    assert X is not None  # goes with what is known
    assert support is not None
    values, rest = known_part(known, X, dose, contrast, support)
    if not rest.any():
        return Representer(values, KNOWN, np.empty((0, len(dose))))
    drawn = values + _regressed(draws, dose, contrast, rest, weights)
    return Representer(drawn.mean(axis=0), MIXED, drawn)


def _regressed(
    draws: Sequence[FoldDraw],
    dose: FloatArray,
    contrast: Contrast,
    shares: FloatArray | None,
    weights: FloatArray | None,
) -> FloatArray:
    result = [
        representer(draw.terms, dose, contrast, draw.folds, shares=shares, weights=weights)
        for draw in draws
    ]
    return np.stack(result)


def known_part(
    known: RowDensities, X: FloatArray, dose: FloatArray, contrast: Contrast, support: DoseSupport
) -> tuple[FloatArray, FloatArray]:
    """What densities tell of a representer, (n_rows,), and the shares that they do not.

    The latter are of shape (n_rows, 2), and 0 for what is told.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from doseforest.inference.changes.dose_moves import shift_contrast, shift_of
    >>> from doseforest.nuisance.treatment.treatment_support import dose_support
    >>> from doseforest.doses.grids import DoseRange
    >>> dose = np.linspace(0.0, 1.0, 101)
    >>> flat = SimpleNamespace(out_of_fold=lambda X, doses: np.ones(doses.shape))
    >>> shift = shift_contrast(shift_of(0.2, None, "clip", DoseRange(0.0, 1.0)))
    >>> values, rest = known_part(flat, np.zeros((101, 1)), dose, shift, dose_support(dose))
    >>> values[:3], values[-3:], int(rest.any(axis=1).sum())  # 20 units are held at the end
    (array([-1., -1., -1.]), array([0., 0., 0.]), 20)
    """
    doses, shares = contrast.at(dose)
    values, rest = np.zeros(len(dose)), np.zeros(shares.shape)
    for k, move in enumerate(contrast.moves):
        origin = move.origin(dose)
        comes = move.within.contains(origin) & (support.at_mass(origin) == support.at_mass(dose))
        origin = np.where(comes, origin, dose)
        ratio = _ratio(known, X, dose, origin, move, support)
        values += np.where(comes, ratio * contrast.at(origin)[1][:, k], 0.0)
        full = move.in_full(dose)
        covered = full & (support.at_mass(doses[:, k]) == support.at_mass(dose))
        if move.at_edge == "stay":  # the unit speaks for itself
            values += np.where(full, 0.0, shares[:, k])
            covered |= ~full
        rest[:, k] = np.where(covered, 0.0, shares[:, k])
    return values, rest


def _ratio(
    known: RowDensities,
    X: FloatArray,
    dose: FloatArray,
    origin: FloatArray,
    move: Move,
    support: DoseSupport,
) -> FloatArray:
    """Density at the origin over that at the dose, on the scale of the dose."""
    if (origin == dose).all():
        return np.ones(len(dose))
    both = known.out_of_fold(X, np.stack([origin, dose], axis=1))
    ratio: FloatArray = both[:, 0] / both[:, 1]
    return np.where(support.at_mass(dose), ratio, ratio / move.factor)
