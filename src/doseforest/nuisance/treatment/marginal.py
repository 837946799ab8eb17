"""The density of the dose whatever the covariates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.smoothing.bandwidths import rule_of_thumb
from doseforest.nuisance.treatment.conditional_density import checked_dose_table
from doseforest.nuisance.treatment.density_tables import TabulatedDensity, smoothed_density
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support


@dataclass(frozen=True, slots=True)
class MarginalDensity:
    """A density p(t): the shares of the masses, and a table for the other doses' positions."""

    support: DoseSupport
    shares: FloatArray  # (n_masses,)
    rest: TabulatedDensity | None  # without other doses None

    def at(self, doses: FloatArray) -> FloatArray:
        """Value at each dose, in the doses' shape."""
        out = np.zeros(np.shape(doses))
        if self.rest is not None:
            scale = self.support.scale
            inside = (doses >= self.support.low) & (doses <= self.support.high)
            values = self.rest.density(scale.forward(doses)) * scale.slope(doses)
            out = np.where(inside, (1 - self.shares.sum()) * values, 0.0)
        for mass, share in zip(self.support.masses, self.shares, strict=True):
            out = np.where(doses == mass, share, out)
        return out

    def density(self, X: FloatArray, doses: FloatArray) -> FloatArray:
        """Values p(t), (n_units, n_doses), the same for every row of X."""
        table = checked_dose_table(doses, len(X))
        return np.array(np.broadcast_to(self.at(table), (len(X), table.shape[-1])))


def marginal_density(
    dose: Any, weights: Any = None, *, support: DoseSupport | None = None
) -> MarginalDensity:
    """Kernel density of the dose, reflected at the ends of its range, beside its point masses.

    Parameters
    ----------
    dose : array of shape (n_rows,)
    weights : array of shape (n_rows,), optional
    support : DoseSupport, optional
        Range and masses; by default those of the doses.

    Examples
    --------
    >>> dose = np.append(np.zeros(50), np.linspace(1, 3, 50))
    >>> density = marginal_density(dose)
    >>> density.at(np.array([-1.0, 0.0, 2.0])).round(2)
    array([0.  , 0.5 , 0.25])
    """
    doses = np.asarray(dose, np.float64)
    row_weights = np.ones(len(doses)) if weights is None else np.asarray(weights, np.float64)
    support = dose_support(doses, row_weights) if support is None else support
    total = row_weights.sum()
    shares = np.array([row_weights[doses == mass].sum() / total for mass in support.masses])
    beside = ~support.at_mass(doses)
    rest = None
    if beside.any():
        positions = support.scale.forward(doses[beside])
        bandwidth = rule_of_thumb(positions, "gaussian", row_weights[beside])
        rest = smoothed_density(positions, row_weights[beside], bandwidth, support.scaled_ends)
    return MarginalDensity(support, shares, rest)
