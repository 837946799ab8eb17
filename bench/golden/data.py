"""Rows of golden fits, made by NumPy alone: no change of a simulator can change them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Features, doses and outcomes; outcomes are positive, so that they have elasticities."""

    X: FloatArray  # (n_rows, 4)
    dose: FloatArray  # (n_rows,) or (n_rows, n_components)
    y: FloatArray  # (n_rows,)

    @property
    def units(self) -> FloatArray:
        """Whom answers are for, (8, 4)."""
        return self.X[:8]


def features(n: int, seed: int) -> tuple[FloatArray, np.random.Generator]:
    """Features between -1 and 1, and the generator for what follows them."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, 4)), rng


def outcomes(X: FloatArray, dose: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A bent curve whose slope depends on the second feature, with noise."""
    noise = rng.uniform(-1, 1, len(X))
    return 12 + 2 * X[:, 0] + dose * (1 + X[:, 1]) - 0.1 * dose**2 + noise


def continuous(n: int = 240, seed: int = 1) -> Rows:
    """Doses from 0 to 5 that follow the first feature."""
    X, rng = features(n, seed)
    dose = 2.5 + X[:, 0] + rng.uniform(-1.5, 1.5, n)
    return Rows(X, dose, outcomes(X, dose, rng))


def levels(n: int = 240, seed: int = 2) -> tuple[Rows, FloatArray]:
    """Doses 0, 1, 2 and 4, and the probability of each, (n_rows, 4)."""
    X, rng = features(n, seed)
    high = 0.1 + 0.1 * (X[:, 0] > 0)
    chances = np.column_stack([0.7 - 2 * high, high, high + 0.1, np.full(n, 0.2)])
    drawn = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    dose = np.array([0.0, 1.0, 2.0, 4.0])[drawn]
    return Rows(X, dose, outcomes(X, dose, rng)), chances


def point_mass(n: int = 240, seed: int = 3) -> Rows:
    """Four of ten rows have dose 0, the others one from 1 to 5."""
    X, rng = features(n, seed)
    dose = np.where(rng.random(n) < 0.4 + 0.2 * X[:, 0], 0.0, rng.uniform(1, 5, n))
    return Rows(X, dose, outcomes(X, dose, rng))


def joint(n: int = 300, seed: int = 4) -> Rows:
    """Two doses at once, from 0 to 4 each, that help each other."""
    X, rng = features(n, seed)
    dose = 2 + 0.5 * X[:, :2] + rng.uniform(-1.5, 1.5, (n, 2))
    y = outcomes(X, dose[:, 0], rng) + dose[:, 1] * (1 + 0.3 * dose[:, 0])
    return Rows(X, dose, y)


def arms(n: int = 300, seed: int = 5) -> Rows:
    """No arm, one with doses from 1 to 3 and one with doses from 10 to 20."""
    X, rng = features(n, seed)
    arm = rng.integers(0, 3, n).astype(float)
    share = rng.random(n)
    size = np.select([arm == 1, arm == 2], [1 + 2 * share, 10 + 10 * share], 0.0)
    y = outcomes(X, np.where(arm == 2, size / 8, size), rng) + arm
    return Rows(X, np.column_stack([arm, size]), y)


def curves(n: int = 400, seed: int = 6) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features with gaps, noisy curves and their doses, of sums and products of exact numbers."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-512, 512, (n, 5)) / 512
    doses = np.arange(5) / 4
    noise = rng.integers(-512, 512, (n, 5)) / 1024
    y = X[:, :1] * doses + (X[:, 1:2] > 0) * doses**2 + noise
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, doses
