"""Densities of the dose given covariates, and weights that undo its dependence on them.

A density pi(t | x) serves the kernel corrections and the overlap report; weights r, about
p(T_i) / pi(T_i | X_i), make averages of residuals unconfounded. `choose_weights` says which weights
to trust on the data at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from doseforest.base.late import late_names

if TYPE_CHECKING:
    from doseforest.nuisance.treatment.binned import BinnedClassifier
    from doseforest.nuisance.treatment.conditional_density import (
        ConditionalDensity,
        CrossFittedDensity,
        DensityLearner,
        RowDensities,
        cross_fit_density,
    )
    from doseforest.nuisance.treatment.density_registry import DENSITIES, WEIGHTS, weigher
    from doseforest.nuisance.treatment.forest_density import ForestDensity
    from doseforest.nuisance.treatment.gaussian import Gaussian
    from doseforest.nuisance.treatment.known_densities import Strata, known_rows
    from doseforest.nuisance.treatment.location_scale import LocationScale
    from doseforest.nuisance.treatment.marginal import MarginalDensity, marginal_density
    from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support
    from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights, stabilised_weights
    from doseforest.nuisance.treatment.weight_choice import WeightChoice, choose_weights

_HOMES = {
    "BinnedClassifier": "doseforest.nuisance.treatment.binned",
    "ConditionalDensity": "doseforest.nuisance.treatment.conditional_density",
    "CrossFittedDensity": "doseforest.nuisance.treatment.conditional_density",
    "DENSITIES": "doseforest.nuisance.treatment.density_registry",
    "DensityLearner": "doseforest.nuisance.treatment.conditional_density",
    "DoseSupport": "doseforest.nuisance.treatment.treatment_support",
    "ForestDensity": "doseforest.nuisance.treatment.forest_density",
    "Gaussian": "doseforest.nuisance.treatment.gaussian",
    "LocationScale": "doseforest.nuisance.treatment.location_scale",
    "MarginalDensity": "doseforest.nuisance.treatment.marginal",
    "RowDensities": "doseforest.nuisance.treatment.conditional_density",
    "Strata": "doseforest.nuisance.treatment.known_densities",
    "TreatmentWeights": "doseforest.nuisance.treatment.treatment_weights",
    "WEIGHTS": "doseforest.nuisance.treatment.density_registry",
    "WeightChoice": "doseforest.nuisance.treatment.weight_choice",
    "choose_weights": "doseforest.nuisance.treatment.weight_choice",
    "cross_fit_density": "doseforest.nuisance.treatment.conditional_density",
    "dose_support": "doseforest.nuisance.treatment.treatment_support",
    "known_rows": "doseforest.nuisance.treatment.known_densities",
    "marginal_density": "doseforest.nuisance.treatment.marginal",
    "stabilised_weights": "doseforest.nuisance.treatment.treatment_weights",
    "weigher": "doseforest.nuisance.treatment.density_registry",
}

__all__ = [
    "DENSITIES",
    "WEIGHTS",
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
    "marginal_density",
    "stabilised_weights",
    "weigher",
]

__getattr__, __dir__ = late_names(__name__, _HOMES)
