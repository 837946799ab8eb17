"""Twelve designs that no term of the model was made for.

They were written down before any model was run on them and stay as they are: what is chosen on them
would no longer be evidence. Errors are measured as in the designs of `doseforest.datasets`. Studies
tell every method which columns are codes of categories, as whoever has such data knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.designs.strange_curves import (
    BentAroundTheBest,
    BreakPoints,
    HalfEffectDoses,
    NoisyWorld,
    Purchases,
    Rhythms,
)
from bench.designs.strange_data import (
    N_CATEGORIES,
    GrowingNoise,
    HeavyTails,
    ManyCategories,
    MassWithJump,
    PoorOverlap,
    SkewedDoses,
    WideAndCorrelated,
)
from doseforest.datasets.overlap_designs import OverlapDesign
from doseforest.datasets.simulation import Population

N_FEATURES = 10
WIDE = 200


def _population(
    n_features: int, rng: np.random.Generator, *, kind: type[NoisyWorld], noise: float = 1.0
) -> Population:
    """A population without drawn coefficients."""
    return kind(n_features, noise)


def _fixed(kind: type[NoisyWorld], noise: float = 1.0) -> Callable[..., Population]:
    return partial(_population, kind=kind, noise=noise)


def _shops(n_features: int, rng: np.random.Generator) -> Population:
    return ManyCategories(
        n_features=n_features,
        usual=rng.normal(0.0, 0.7, N_CATEGORIES),
        slopes=rng.normal(1.0, 0.6, N_CATEGORIES),
        levels=rng.normal(0.0, 2.0, N_CATEGORIES),
    )


def _world(
    name: str, description: str, make: Callable[..., Population], n_features: int = N_FEATURES
) -> OverlapDesign:
    return OverlapDesign(name, description, make, n_features)


WORLDS: dict[str, OverlapDesign] = {
    world.name: world
    for world in (
        _world("half_effect", "Every unit has its half-effect dose.", _fixed(HalfEffectDoses)),
        _world("break_points", "Every unit has a dose where a fall begins.", _fixed(BreakPoints)),
        _world("best_doses", "Every unit has a best dose.", _fixed(BentAroundTheBest)),
        _world("rhythms", "Waves of a length and a start of the unit's.", _fixed(Rhythms)),
        _world("purchases", "Bought or not, by what it is worth to whom.", _fixed(Purchases)),
        _world("skewed_doses", "Doses over three orders of magnitude.", _fixed(SkewedDoses)),
        _world("mass_with_jump", "Two in five at zero, and a jump.", _fixed(MassWithJump, 0.7)),
        _world("heavy_tails", "Noise with hardly a variance.", _fixed(HeavyTails, 1.5)),
        _world("growing_noise", "Noise that grows with the dose.", _fixed(GrowingNoise)),
        _world("wide", "Two hundred correlated columns.", _fixed(WideAndCorrelated), WIDE),
        _world("shops", "Forty categories with their levels and slopes.", _shops),
        _world("poor_overlap", "Doses that covariates nearly give away.", _fixed(PoorOverlap)),
    )
}
CATEGORY_COLUMNS: dict[str, tuple[int, ...]] = {"shops": (0,)}  # places of codes, by design
