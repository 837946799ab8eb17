"""The tables of densities and of weights. To add one: a recipe and a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.vectors import is_record
from doseforest.nuisance.treatment.binned import BinnedClassifier
from doseforest.nuisance.treatment.chained import any_learner
from doseforest.nuisance.treatment.conditional_density import (
    CrossFittedDensity,
    DensityLearner,
    cross_fit_density,
)
from doseforest.nuisance.treatment.entropy import entropy_weights
from doseforest.nuisance.treatment.forest_density import ForestDensity
from doseforest.nuisance.treatment.gaussian import Gaussian
from doseforest.nuisance.treatment.location_scale import LocationScale
from doseforest.nuisance.treatment.permutation_weights import permutation_weights
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights, density_ratios


class WeightFunction(Protocol):
    """From rows to their weights."""

    def __call__(
        self,
        X: FloatArray,
        dose: FloatArray,
        folds: IntArray,
        *,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> TreatmentWeights:
        """Weights r of the rows, of mean 1 under the sample's `weights`."""


def no_weights(
    X: FloatArray,
    dose: FloatArray,
    folds: IntArray,
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
    n_threads: int = 1,
) -> TreatmentWeights:
    """Ones: as if the dose were random.

    >>> no_weights(np.zeros((2, 1)), np.array([0.0, 1.0]), np.array([0, 1])).r
    array([1., 1.])
    """
    return TreatmentWeights("none", np.ones(len(dose)), shrinkage=0.0)


def density_weights(name: str, learner: Callable[[], DensityLearner]) -> WeightFunction:
    """Stabilised weights of a density."""

    def weigh(
        X: FloatArray,
        dose: FloatArray,
        folds: IntArray,
        *,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> TreatmentWeights:
        def fitted(inputs: FloatArray, recipe: DensityLearner) -> CrossFittedDensity:
            return cross_fit_density(
                any_learner(recipe, dose),
                inputs,
                dose,
                folds,
                weights=weights,
                seed=seed,
                n_threads=n_threads,
            )

        density = fitted(X, learner())
        if is_record(dose):  # p(t) by the same means, without the covariates
            overall = fitted(np.zeros((len(dose), 1)), DENSITIES[name]()).observed
            ratios = overall / np.maximum(density.observed, np.finfo(np.float64).tiny)
        else:
            ratios = density_ratios(density, dose, X, weights=weights)
        return TreatmentWeights.capping(name, ratios, density, weights=weights)

    return weigh


DENSITIES: dict[str, Callable[[], DensityLearner]] = {
    "location_scale": LocationScale,
    "binned": BinnedClassifier,
    "gaussian": Gaussian,
    "forest": ForestDensity,
}
WEIGHTS: dict[str, WeightFunction] = {
    **{name: density_weights(name, learner) for name, learner in DENSITIES.items()},
    "entropy": entropy_weights,
    "permutation": permutation_weights,
    "none": no_weights,
}
