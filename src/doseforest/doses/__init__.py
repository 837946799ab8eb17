"""Doses: functions of the dose that curves are made of, kernels, bandwidths and grids.

Examples
--------
>>> from doseforest.doses import Legendre, default_grid
>>> default_grid([0.0, 1.0, 1.0, 2.0])
array([0., 1., 2.])
>>> Legendre(3).fit([0.0, 1.0, 2.0]).n_functions
3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.doses.bases.arms import Arms
    from doseforest.doses.bases.dose_basis import BASES, DoseBasis, FittedBasis, UserFunctions
    from doseforest.doses.bases.indicators import Indicators
    from doseforest.doses.bases.polynomials import Legendre
    from doseforest.doses.bases.spline_products import SplineProducts
    from doseforest.doses.bases.splines import Spline
    from doseforest.doses.bases.tensor import Tensor
    from doseforest.doses.grids import BaselineWarning, DoseRange, default_grid, point_masses
    from doseforest.doses.smoothing.bandwidths import (
        BandwidthChoice,
        canonical_bandwidth,
        loo_bandwidth,
        rule_of_thumb,
    )
    from doseforest.doses.smoothing.kernels import (
        KERNELS,
        ExactMatchKernel,
        GaussianKernel,
        Kernel,
        PolynomialKernel,
    )

_HOMES = {
    "BASES": "doseforest.doses.bases.dose_basis",
    "KERNELS": "doseforest.doses.smoothing.kernels",
    "Arms": "doseforest.doses.bases.arms",
    "BandwidthChoice": "doseforest.doses.smoothing.bandwidths",
    "BaselineWarning": "doseforest.doses.grids",
    "DoseBasis": "doseforest.doses.bases.dose_basis",
    "DoseRange": "doseforest.doses.grids",
    "ExactMatchKernel": "doseforest.doses.smoothing.kernels",
    "FittedBasis": "doseforest.doses.bases.dose_basis",
    "GaussianKernel": "doseforest.doses.smoothing.kernels",
    "Indicators": "doseforest.doses.bases.indicators",
    "Kernel": "doseforest.doses.smoothing.kernels",
    "Legendre": "doseforest.doses.bases.polynomials",
    "PolynomialKernel": "doseforest.doses.smoothing.kernels",
    "Spline": "doseforest.doses.bases.splines",
    "SplineProducts": "doseforest.doses.bases.spline_products",
    "Tensor": "doseforest.doses.bases.tensor",
    "UserFunctions": "doseforest.doses.bases.dose_basis",
    "canonical_bandwidth": "doseforest.doses.smoothing.bandwidths",
    "default_grid": "doseforest.doses.grids",
    "loo_bandwidth": "doseforest.doses.smoothing.bandwidths",
    "point_masses": "doseforest.doses.grids",
    "rule_of_thumb": "doseforest.doses.smoothing.bandwidths",
}

__all__ = [
    "BASES",
    "KERNELS",
    "Arms",
    "BandwidthChoice",
    "BaselineWarning",
    "DoseBasis",
    "DoseRange",
    "ExactMatchKernel",
    "FittedBasis",
    "GaussianKernel",
    "Indicators",
    "Kernel",
    "Legendre",
    "PolynomialKernel",
    "Spline",
    "SplineProducts",
    "Tensor",
    "UserFunctions",
    "canonical_bandwidth",
    "default_grid",
    "loo_bandwidth",
    "point_masses",
    "rule_of_thumb",
]

__getattr__, __dir__ = late_names(__name__, _HOMES)
