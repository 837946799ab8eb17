"""Densities of the dose given covariates, and weights that undo its dependence on them.

A density pi(t | x) serves the kernel corrections and the overlap report; weights r, about
p(T_i) / pi(T_i | X_i), make averages of residuals unconfounded. `choose_weights` says which weights
to trust on the data at hand.
"""

from doseforest.nuisance.densities.assignment import Assignment, known_weights
from doseforest.nuisance.densities.base import (
    ConditionalDensity,
    CrossFittedDensity,
    DensityLearner,
    RowDensities,
    cross_fit_density,
)
from doseforest.nuisance.densities.binned import BinnedClassifier
from doseforest.nuisance.densities.choose import WeightChoice, choose_weights
from doseforest.nuisance.densities.forest_density import ForestDensity
from doseforest.nuisance.densities.gaussian import Gaussian
from doseforest.nuisance.densities.known import Strata, known_rows
from doseforest.nuisance.densities.location_scale import LocationScale
from doseforest.nuisance.densities.marginal import MarginalDensity, marginal_density
from doseforest.nuisance.densities.registry import DENSITIES, WEIGHTS
from doseforest.nuisance.densities.support import DoseSupport, dose_support
from doseforest.nuisance.densities.weights import TreatmentWeights, stabilised_weights

__all__ = [
    "DENSITIES",
    "WEIGHTS",
    "Assignment",
    "BinnedClassifier",
    "ConditionalDensity",
    "CrossFittedDensity",
    "DensityLearner",
    "DoseSupport",
    "ForestDensity",
    "Gaussian",
    "LocationScale",
    "MarginalDensity",
    "RowDensities",
    "Strata",
    "TreatmentWeights",
    "WeightChoice",
    "choose_weights",
    "cross_fit_density",
    "dose_support",
    "known_rows",
    "known_weights",
    "marginal_density",
    "stabilised_weights",
]
