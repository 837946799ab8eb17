"""Curves as coefficients of the dose functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.bases.dose_basis import FittedBasis
from doseforest.doses.dose_nodes import representative_doses
from doseforest.doses.dose_values import AnyDoses


@dataclass(frozen=True, slots=True)
class Projection:
    """Least-squares coefficients of curves, weighted as the doses are, the constant left out.

    Examples
    --------
    >>> from doseforest.doses.bases.polynomials import Legendre
    >>> dose = np.linspace(-1.0, 1.0, 101)
    >>> basis = Legendre(3).fit(dose)
    >>> projection = fit_projection(basis, dose)
    >>> projection.coefficients(7.0 + 2.0 * basis.evaluate(projection.nodes)[:, 1]).round(6)
    array([2., 0.])
    """

    nodes: FloatArray  # (n_nodes,) doses at which curves are read
    matrix: FloatArray  # (n_nodes, n_functions - 1)

    def coefficients(self, curves: FloatArray) -> FloatArray:
        """Coefficients of curves at the nodes, (..., n_nodes) to (..., n_functions - 1)."""
        return curves @ self.matrix


def fit_projection(
    basis: FittedBasis, dose: AnyDoses, weights: FloatArray | None = None
) -> Projection:
    """Projection by the observed doses: all of them when they are few, else quantiles."""
    nodes, shares = representative_doses(dose, weights)
    functions = basis.evaluate(nodes)
    root = np.sqrt(shares)
    inverse = np.linalg.pinv(functions * root[:, None]) * root
    return Projection(nodes, np.ascontiguousarray(inverse[1:].T))
