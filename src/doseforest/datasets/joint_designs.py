"""Designs whose dose has several parts: two discounts, a point mass, arms with their own doses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import Population, Simulation, cell_middles, observe

Generator = np.random.Generator
N_FEATURES = 10


@dataclass(frozen=True, slots=True)
class _Customers:
    """X ~ N(0, I) with a level x'b, and noise N(0, 1)."""

    main: FloatArray  # (n_features,) b

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """X ~ N(0, I)."""
        return rng.standard_normal((n_units, len(self.main)))

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """1 everywhere."""
        return np.ones_like(mean)

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Outcomes around their means."""
        return mean + rng.standard_normal(mean.shape)


@dataclass(frozen=True, slots=True)
class TwoDiscounts(_Customers):
    """Two discounts in [0, 1] that help or hinder each other.

    T1 = sigmoid(x1 + N(0, 1.5^2)), T2 = sigmoid((x1 + x5) / 2 + N(0, 1.5^2)),
    mu = 3 (1 + [x2 > 0]) t1 + 4 max(x3, 0) t2^2 + j x4 t1 t2 + x'b with j = `joint`.
    """

    joint: float

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Both drawn to customers with a high x1, shape (n_units, 2)."""
        noise = rng.normal(0.0, 1.5, (len(X), 2))
        drawn: FloatArray = expit(np.column_stack([X[:, 0], (X[:, 0] + X[:, 4]) / 2]) + noise)
        return drawn

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x) at doses (n_units, n_doses, 2)."""
        first, second = doses[..., 0], doses[..., 1]
        curves: FloatArray = 3.0 * (1.0 + (X[:, 1:2] > 0)) * first
        curves = curves + 4.0 * np.maximum(X[:, 2:3], 0.0) * second**2
        return curves + self.joint * X[:, 3:4] * first * second + (X @ self.main)[:, None]


@dataclass(frozen=True, slots=True)
class NoneOrSome(_Customers):
    """No discount, or one of 5 to 30 %: being offered one at all counts, and so does its size.

    P(T = 0) = sigmoid(-x1 / 2), else T ~ U(5, 30);
    mu = (1 + [x2 > 0]) [t > 0] + 0.1 max(x3, 0) t + x'b.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """A point mass at 0, larger where x1 is low."""
        size = rng.uniform(5.0, 30.0, len(X))
        return np.where(rng.random(len(X)) < expit(-X[:, 0] / 2), 0.0, size)

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        jump = (1.0 + (X[:, 1:2] > 0)) * (doses > 0)
        return jump + 0.1 * np.maximum(X[:, 2:3], 0.0) * doses + (X @ self.main)[:, None]


@dataclass(frozen=True, slots=True)
class ArmsWithDoses(_Customers):
    """Nothing, a coupon of 5 to 30 %, or 1 to 3 free deliveries: an arm and its own dose.

    P(arm) is proportional to 1, exp(x1 / 2), exp(-x1 / 2);
    mu = [coupon] (0.5 + 0.1 max(x2, 0) t) + [deliveries] (1 + [x3 > 0]) log t + x'b.
    """

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Arm and dose, shape (n_units, 2)."""
        odds = np.exp(np.column_stack([np.zeros(len(X)), X[:, 0] / 2, -X[:, 0] / 2]))
        shares = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
        arm = (rng.random(len(X))[:, None] > shares[:, :2]).sum(axis=1)
        coupon, free = rng.uniform(5.0, 30.0, len(X)), rng.uniform(1.0, 3.0, len(X))
        return np.column_stack([arm, np.choose(arm, [np.zeros(len(X)), coupon, free])])

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x) at doses (n_units, n_doses, 2)."""
        arm, dose = doses[..., 0], doses[..., 1]
        coupon = 0.5 + 0.1 * np.maximum(X[:, 1:2], 0.0) * dose
        free = (1.0 + (X[:, 2:3] > 0)) * np.log(np.maximum(dose, 1.0))
        curves: FloatArray = (arm == 1) * coupon + (arm == 2) * free + (X @ self.main)[:, None]
        return curves


@dataclass(frozen=True, slots=True)
class JointDesign:
    """A design whose dose has several parts, with fixed doses to measure at.

    Parameters
    ----------
    name : str
        Name in the table of designs.
    description : str
        What the design is hard at, in a sentence.
    make : callable
        Makes the population of the coefficients of the features.
    doses : callable
        Makes the doses to measure errors at.
    baseline : float or tuple of float
        The dose that effects are measured against.

    Examples
    --------
    >>> data = JOINT_DESIGNS["two_discounts"].draw(n=100, seed=0)
    >>> data.treatment.shape, data.baseline
    ((100, 2), (0.5, 0.5))
    """

    name: str
    description: str
    make: Callable[[FloatArray], Population]
    doses: Callable[[], FloatArray]
    baseline: float | tuple[float, ...]

    def draw(self, n: int = 2000, seed: int = 0) -> Simulation:
        """Draw b ~ U(-1, 1), units, doses and outcomes from one stream."""
        rng = np.random.default_rng(seed)
        population = self.make(rng.uniform(-1.0, 1.0, N_FEATURES))
        X, treatment, y = observe(population, n, rng)
        return Simulation(
            name=self.name,
            description=self.description,
            X=X,
            treatment=treatment,
            y=y,
            doses=self.doses(),
            baseline=self.baseline,
            population=population,
        )


def _square() -> FloatArray:
    axis = cell_middles(0.1, 0.9, 5)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def _arms() -> FloatArray:
    coupons = [[1.0, dose] for dose in cell_middles(5.0, 30.0, 5)]
    return np.array([*coupons, *([2.0, dose] for dose in cell_middles(1.0, 3.0, 5))])


JOINT_DESIGNS: dict[str, JointDesign] = {
    design.name: design
    for design in (
        JointDesign(
            "two_discounts",
            "two confounded discounts, the effect of each depends on the other",
            lambda main: TwoDiscounts(main, joint=6.0),
            _square,
            (0.5, 0.5),
        ),
        JointDesign(
            "two_discounts_apart",
            "two confounded discounts whose effects add up",
            lambda main: TwoDiscounts(main, joint=0.0),
            _square,
            (0.5, 0.5),
        ),
        JointDesign(
            "none_or_some",
            "a point mass at 0 with a jump beside it",
            NoneOrSome,
            lambda: cell_middles(5.0, 30.0, 10),
            0.0,
        ),
        JointDesign(
            "arms",
            "three arms, two of them with doses of their own",
            ArmsWithDoses,
            _arms,
            (0.0, 0.0),
        ),
    )
}
