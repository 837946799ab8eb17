"""The tables of densities and of weights. To add one: a recipe and a line.

A density needs no line to be used: an object with `fit` (`DensityLearner`) is taken as it is. None
is in any file: a saved forest answers without it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray, IntArray
from doseforest.doses.dose_values import Doses
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


def density_weights(
    name: str, learner: DensityLearner, *, plain: DensityLearner | None = None
) -> WeightFunction:
    """Stabilised weights of a density.

    Parameters
    ----------
    name : str
        Of the weights.
    learner : DensityLearner
    plain : DensityLearner, optional
        What fits p(t) without covariates, for doses of several components; by default `learner`.
    """
    without = learner if plain is None else plain

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

        density = fitted(X, learner)
        if Doses.of(dose).joint:  # p(t) by the same means, without the covariates
            overall = fitted(np.zeros((len(dose), 1)), without).observed
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
    "entropy": entropy_weights,
    "permutation": permutation_weights,
    "none": no_weights,
}
WEIGHT_NAMES: Mapping[str, Any] = ChainMap(WEIGHTS, DENSITIES)


def is_estimated(density: Any) -> bool:
    """Whether what a user gave as the density is a name or an object that fits one.

    >>> is_estimated("binned"), is_estimated(Gaussian()), is_estimated(np.ones(3))
    (True, True, False)
    """
    return isinstance(density, str) or hasattr(density, "fit")


def density_learner(density: Any) -> DensityLearner:
    """The recipe of a name in `DENSITIES`, or the one that was given."""
    learner: DensityLearner = DENSITIES[density]() if isinstance(density, str) else density
    return learner


def weigher(weights: Any) -> WeightFunction:
    """What makes weights by a name, or of a density's recipe.

    Examples
    --------
    >>> dose, folds = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1])
    >>> weigher("none")(np.zeros((4, 1)), dose, folds).r
    array([1., 1., 1., 1.])
    """
    if isinstance(weights, str) and weights in WEIGHTS:
        return WEIGHTS[weights]
    name = weights if isinstance(weights, str) else type(weights).__name__
    return density_weights(name, density_learner(weights))
