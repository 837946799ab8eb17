"""The three designs of the GCF paper (Wan et al. 2022, Table 1).

Its supplement prints three curves (`PRINTED_CURVES`) and a Psi; other readings are open. Each is a
parameter of `PublishedDesign`, and the defaults are the ones that come closest to known errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, expit

from doseforest.base.dtypes import FloatArray
from doseforest.datasets.simulation import N_DOSES, Simulation, cell_middles, observe
from doseforest.doses.grids import INTERIOR_TAIL, interior

Generator = np.random.Generator
Transform = Callable[[FloatArray], FloatArray]
Draw = Callable[[Generator, tuple[int, ...]], FloatArray]


def polynomial(doses: FloatArray) -> FloatArray:
    """0.2 (t - 5)^2 - t - 5.

    >>> polynomial(np.array([0.0, 10.0]))
    array([  0., -10.])
    """
    return 0.2 * (doses - 5.0) ** 2 - doses - 5.0


def sinusoidal(doses: FloatArray) -> FloatArray:
    """5.5 sin(t) + t; see `printed_sinusoidal`."""
    return 5.5 * np.sin(doses) + doses


def exponential(doses: FloatArray) -> FloatArray:
    """0.52 t log(t + 0.1) - 0.8 t, by the paper's name: a dip, then a rise that gets steeper.

    `printed_exponential` is what the supplement has. It has no value from -0.1 down.

    >>> exponential(np.array([0.0, 0.9]))
    array([-0.  , -0.72])
    """
    _require_above_the_pole(doses)
    return 0.52 * doses * np.log(doses + 0.1) - 0.8 * doses


def printed_sinusoidal(doses: FloatArray) -> FloatArray:
    """5 sin(t) + t, as the supplement prints it."""
    return 5.0 * np.sin(doses) + doses


def printed_exponential(doses: FloatArray) -> FloatArray:
    """log(1 + e^t / (t + 0.1)) - log(11), as the supplement prints it; above -0.1 alone.

    >>> printed_exponential(np.array([0.9, 20.0])).round(4)
    array([-1.1567, 14.6014])
    """
    _require_above_the_pole(doses)
    curve: FloatArray = np.logaddexp(0.0, doses - np.log(doses + 0.1)) - np.log(11.0)
    return curve


def _require_above_the_pole(doses: FloatArray) -> None:
    if (doses <= -0.1).any():
        raise ValueError(
            "The 'doses' parameter must lie above -0.1 for the exponential curve, where "
            f"clip_at_zero=True keeps drawn doses. Got {doses.min():g} instead."
        )


def _beta_cdf(share: FloatArray) -> FloatArray:
    values: FloatArray = betainc(2.0, 3.0, share)
    return values


def _beta_pdf(share: FloatArray) -> FloatArray:
    return 12.0 * share * (1.0 - share) ** 2


def _square(x: FloatArray) -> FloatArray:
    return x**2


def _absolute(x: FloatArray) -> FloatArray:
    out: FloatArray = 1.5 * np.abs(x)
    return out


def _sine(x: FloatArray) -> FloatArray:
    return 1.5 * np.sin(2.0 * x)


def _growth(x: FloatArray) -> FloatArray:
    out: FloatArray = np.exp(x / 1.5)
    return out


def _step(x: FloatArray) -> FloatArray:
    return np.where(x > 0.5, 2.0, 0.0)


def _line(x: FloatArray) -> FloatArray:
    return x


def _uniform(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.uniform(-1.0, 1.0, shape)


def _normal(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    return rng.standard_normal(shape)


DOSE_CURVES: dict[str, Transform] = {
    "polynomial": polynomial,
    "sinusoidal": sinusoidal,
    "exponential": exponential,
}
PRINTED_CURVES: dict[str, Transform] = {
    "polynomial": polynomial,
    "sinusoidal": printed_sinusoidal,
    "exponential": printed_exponential,
}
SLOPES: dict[str, Transform] = {
    "square": _square,  # the paper's
    "abs": _absolute,
    "sine": _sine,
    "exp": _growth,
    "step": _step,
    "line": _line,
}
DOSE_TRANSFORMS: dict[str, Transform] = {"cdf": _beta_cdf, "pdf": _beta_pdf}
DRAWS: dict[str, Draw] = {"uniform": _uniform, "normal": _normal}
DRAW_SCALES = {"uniform": 3.0**-0.5, "normal": 1.0}  # standard deviations
DOSE_RANGES = ("observed", "interior")
SPARSE_CONFOUNDERS = 5  # of 50, those with a slope of their own among them; our reading of "sparse"


@dataclass(frozen=True, slots=True)
class PublishedPopulation:
    """Units of the GCF paper: confounders X, features U of the outcome alone, Z of the dose alone.

    T = 20 Psi(sigmoid(X'a + Z'c)) + v,
    Y = curve(T) + 0.2 (slope(x1) + x4) T + X'b + U'd + e, with slope(x1) = x1^2 in the paper.
    """

    outcome_weights: FloatArray  # (n_features,) b on X, d on U, 0 on Z
    dose_weights: FloatArray  # (n_features,) a on X, 0 on U, c on Z
    curve: Transform
    slope: Transform
    dose_transform: Transform  # Psi
    noise: str  # of DRAWS
    clip_at_zero: bool

    def draw_units(self, n_units: int, rng: Generator) -> FloatArray:
        """Features N(0, I), in the order X, U, Z."""
        return rng.standard_normal((n_units, len(self.outcome_weights)))

    def assign(self, X: FloatArray, rng: Generator) -> FloatArray:
        """Doses that the features all but decide."""
        doses = 20.0 * self.dose_transform(expit(X @ self.dose_weights))
        doses = doses + DRAWS[self.noise](rng, (len(X),))
        return np.maximum(doses, 0.0) if self.clip_at_zero else doses

    def mean(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Exact mu(t, x)."""
        slope = 0.2 * (self.slope(X[:, :1]) + X[:, 3:4])
        return self.curve(doses) + slope * doses + (X @ self.outcome_weights)[:, None]

    def noise_scale(self, mean: FloatArray, X: FloatArray) -> FloatArray:
        """The same for all."""
        return np.full(mean.shape, DRAW_SCALES[self.noise])

    def draw_outcomes(self, mean: FloatArray, X: FloatArray, rng: Generator) -> FloatArray:
        """Noise U(-1, 1) by default."""
        return mean + DRAWS[self.noise](rng, mean.shape)


@dataclass(frozen=True, slots=True)
class PublishedDesign:
    """A simulation of the GCF paper, with its open readings.

    The dose is almost a function of the features, and every unit has a slope of its own on top of
    the same curve. The polynomial is the paper's. The sine and the exponential by name are not
    those of its supplement, `PRINTED_CURVES`: they were chosen among several because the errors of
    random forests, causal forests and Kennedy's curve under them are the known ones, within a
    tenth. Psi is printed as the density of Beta(2, 3), and the printed numbers are those of its
    distribution function. `curve` takes any.

    Parameters
    ----------
    name : str
        "polynomial", "sinusoidal" or "exponential"; anything when `curve` is given.
    curve : callable, optional
        What all units share, a function of an array of doses; by default that of the name.
    slope : {"square", "abs", "sine", "exp", "step", "line"}, default="square"
        How the first confounder changes a unit's slope; the paper's is its square.
    dose_transform : {"cdf", "pdf"}, default="cdf"
        Psi: distribution function or density of Beta(2, 3).
    shared_coefficients : bool, default=False
        Whether the confounders move the outcome by the coefficients that move the dose (a = b),
        a harder confounding.
    coefficients, noise : {"uniform", "normal"}, default="uniform"
        U(-1, 1) or N(0, 1).
    n_relevant : int, optional
        Confounders that move the dose and the outcome, the first ones; the coefficients of the
        others are 0. By default all do (dense coefficients); see `SPARSE_CONFOUNDERS`.
    clip_at_zero : bool, default=True
        Whether negative doses become 0; about 13 % of all are then 0.
    dose_range : {"observed", "interior"} or (float, float), default="observed"
        Where errors are measured: from 0 to the highest drawn dose, between the 5 % and 95 %
        quantiles, or as given.
    n_confounders, n_outcome_only, n_dose_only : int, default=50, 5, 5
        Features of both, of the outcome alone, of the dose alone.
    n_doses : int, default=20
        Doses at which errors are measured.

    Examples
    --------
    >>> simulation = PublishedDesign("sinusoidal").draw(n=1000, seed=0)
    >>> simulation.X.shape
    (1000, 60)
    >>> low, high = simulation.support
    >>> low, 20 < high < 21
    (0.0, True)
    """

    name: str
    curve: Transform | None = None
    slope: str = "square"
    dose_transform: str = "cdf"
    shared_coefficients: bool = False
    coefficients: str = "uniform"
    noise: str = "uniform"
    n_relevant: int | None = None
    clip_at_zero: bool = True
    dose_range: str | tuple[float, float] = "observed"
    n_confounders: int = 50
    n_outcome_only: int = 5
    n_dose_only: int = 5
    n_doses: int = N_DOSES

    def __post_init__(self) -> None:
        for parameter, table in (
            ("name", {self.name: self.curve} if self.curve else DOSE_CURVES),
            ("slope", SLOPES),
            ("dose_transform", DOSE_TRANSFORMS),
            ("coefficients", DRAWS),
            ("noise", DRAWS),
        ):
            if getattr(self, parameter) not in table:
                raise ValueError(
                    f"The {parameter!r} parameter of PublishedDesign must be one of "
                    f"{sorted(table)}. Got {getattr(self, parameter)!r} instead."
                )
        if isinstance(self.dose_range, str):
            valid = self.dose_range in DOSE_RANGES
        else:
            valid = len(self.dose_range) == 2 and self.dose_range[0] < self.dose_range[1]
        if not valid:
            raise ValueError(
                f"The 'dose_range' parameter of PublishedDesign must be one of {DOSE_RANGES} or "
                f"two ascending doses. Got {self.dose_range!r} instead."
            )
        if self.n_confounders < 4:
            raise ValueError(
                "The 'n_confounders' parameter of PublishedDesign must be an int of at least 4. "
                f"Got {self.n_confounders!r} instead."
            )
        if self.n_relevant is not None and not 1 <= self.n_relevant <= self.n_confounders:
            raise ValueError(
                "The 'n_relevant' parameter of PublishedDesign must be an int in "
                f"[1, n_confounders={self.n_confounders}]. Got {self.n_relevant!r} instead."
            )

    @property
    def description(self) -> str:
        """What the design is hard at."""
        shape = self.name.removesuffix("_sparse").removesuffix("_printed").removesuffix("_density")
        deciding = "features" if self.n_relevant is None else "a few features"
        return f"A {shape} curve and a slope for each unit, at doses that {deciding} decide."

    def draw(self, n: int = 1000, seed: int = 0) -> Simulation:
        """Draw coefficients, units, doses and outcomes from one stream.

        The three curves have the same units, doses and noise at the same seed.
        """
        rng = np.random.default_rng(seed)
        population = self._population(rng)
        X, treatment, y = observe(population, n, rng)
        low, high = self._dose_limits(treatment)
        return Simulation(
            name=self.name,
            description=self.description,
            X=X,
            treatment=treatment,
            y=y,
            doses=cell_middles(low, high, self.n_doses),
            baseline=0.0,
            population=population,
        )

    def _population(self, rng: Generator) -> PublishedPopulation:
        draw = DRAWS[self.coefficients]
        on_dose = draw(rng, (self.n_confounders,))
        on_outcome = on_dose if self.shared_coefficients else draw(rng, (self.n_confounders,))
        # Zeros come after the draws: dense and sparse data sets of a seed have the same units.
        kept = np.arange(self.n_confounders) < (self.n_relevant or self.n_confounders)
        on_dose, on_outcome = kept * on_dose, kept * on_outcome
        outcome_only, dose_only = draw(rng, (self.n_outcome_only,)), draw(rng, (self.n_dose_only,))
        return PublishedPopulation(
            outcome_weights=np.concatenate([on_outcome, outcome_only, np.zeros(self.n_dose_only)]),
            dose_weights=np.concatenate([on_dose, np.zeros(self.n_outcome_only), dose_only]),
            curve=self.curve or DOSE_CURVES[self.name],
            slope=SLOPES[self.slope],
            dose_transform=DOSE_TRANSFORMS[self.dose_transform],
            noise=self.noise,
            clip_at_zero=self.clip_at_zero,
        )

    def _dose_limits(self, treatment: FloatArray) -> tuple[float, float]:
        if not isinstance(self.dose_range, str):
            return self.dose_range
        if self.dose_range == "observed":
            return 0.0, float(treatment.max())
        inner = interior(treatment, tail=INTERIOR_TAIL)
        return inner.low, inner.high
