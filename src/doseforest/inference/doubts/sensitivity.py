"""How strong a confounder that nobody measured would have to be to explain an effect away.

The bound is that of Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022) for averages of a
regression: with e the residual of the outcome and a the representer of the effect (the effect is
the mean of a times the outcome), leaving a confounder out biases the estimate by at most

    sqrt(R_y * R_d / (1 - R_d) * E[e^2] * E[a^2])

where R_y is the share of the variance of e that the confounder explains, and R_d the share of the
variance of the representer that it would add.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.estimates import Estimate
from doseforest.base.intervals import student_quantile
from doseforest.base.late import late
from doseforest.doses.dose_values import dose_text

WIDTH = 88


@dataclass(frozen=True, slots=True)
class EffectBounds:
    """Where an effect may lie when a confounder of some strength was left out.

    Attributes
    ----------
    low, high : float
        The bounds.
    interval : tuple of float
        Ends of an interval that covers the sampling errors of both.

    Examples
    --------
    >>> Sensitivity(1.0, 0.0, 1.0, 1.0, 4.0, np.zeros((3, 3))).bounds(0.0, 0.0).low
    1.0
    """

    low: float
    high: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """How strong a covariate is that was measured, as if it had not been.

    Attributes
    ----------
    name : str
        Name of the covariate.
    outcome_strength : float
        Variance it explains, over what is left of the outcome.
    dose_strength : float
        The same of the dose's part in the effect.

    Examples
    --------
    >>> Benchmark("age", 0.1, 0.02).name
    'age'
    """

    name: str
    outcome_strength: float
    dose_strength: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivity(Estimate):
    """Sensitivity of an average effect to unmeasured confounding; printed, a paragraph.

    Strengths are shares in [0, 1): `outcome_strength` of the variance of the outcome that dose and
    covariates leave unexplained, `dose_strength` of the variance of the representer with the
    confounder that is due to it. Where the dose enters by a line the latter is the share of the
    dose's variance, given the covariates, that the confounder explains.

    Attributes
    ----------
    value : float
        Average outcome at the high dose less that at the low one.
    standard_error : float
        Its standard error, by the covariance.
    degrees : float
        Degrees of freedom of the standard error.
    low, high : dose
        The two doses.
    residual_variance : float
        E[e^2] of the residuals e of the outcome.
    representer_square : float
        E[a^2] of the representer a of the effect.
    covariance : array of shape (3, 3)
        Covariance of the sampling errors of value, residual variance and representer square.
    benchmarks : tuple of Benchmark
        Strengths of measured covariates.

    Examples
    --------
    >>> doubt = Sensitivity(1.0, 0.0, 1.0, 1.0, 4.0, np.zeros((3, 3)))
    >>> round(doubt.robustness_value, 4)
    0.3904
    """

    standard_error: float = field(init=False)
    low: Any
    high: Any
    residual_variance: float
    representer_square: float
    covariance: FloatArray  # (3, 3)
    benchmarks: tuple[Benchmark, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "standard_error", float(np.sqrt(self.covariance[0, 0])))

    @property
    def robustness_value(self) -> float:
        """Strength, the same for outcome and dose, that is just enough to bring the effect to 0.

        Examples
        --------
        >>> doubt = Sensitivity(1.0, 0.0, 1.0, 1.0, 4.0, np.zeros((3, 3)))
        >>> round(doubt.robustness_value, 4)
        0.3904
        >>> round(doubt.bias(0.3904, 0.3904), 2)
        1.0
        """
        if self.value == 0:
            return 0.0
        inverse = self.residual_variance * self.representer_square / self.value**2
        return float(2 / (1 + np.sqrt(1 + 4 * inverse)))

    def robustness_of_interval(self, coverage: float = 0.95) -> float:
        """Strength that is just enough to bring 0 into the interval; 0 where it is there anyway.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the effect.

        Returns
        -------
        float
            The strength, the same for outcome and dose.
        """
        if self._reaches_zero(0.0, coverage):
            return 0.0
        weak, strong = 0.0, self.robustness_value
        for _ in range(60):
            middle = (weak + strong) / 2
            weak, strong = (
                (weak, middle) if self._reaches_zero(middle, coverage) else (middle, strong)
            )
        return strong

    def bias(self, outcome_strength: float, dose_strength: float) -> float:
        """Largest bias by a confounder of these strengths.

        Parameters
        ----------
        outcome_strength, dose_strength : float
            Strengths in [0, 1).

        Returns
        -------
        float
            The bias, in units of the outcome.
        """
        size = _product_of_strengths(outcome_strength, dose_strength)
        return float(np.sqrt(size * self.residual_variance * self.representer_square))

    def bounds(
        self, outcome_strength: float, dose_strength: float, *, coverage: float = 0.95
    ) -> EffectBounds:
        """Lowest and highest effect where a confounder of these strengths was left out.

        Parameters
        ----------
        outcome_strength, dose_strength : float
            Strengths in [0, 1).
        coverage : float, default=0.95
            Coverage of the interval around both bounds.

        Returns
        -------
        EffectBounds
            The bounds, with an interval.
        """
        reach = float(student_quantile(self.degrees, coverage))
        bias = self.bias(outcome_strength, dose_strength)
        size = np.sqrt(_product_of_strengths(outcome_strength, dose_strength))
        root = np.sqrt(self.residual_variance * self.representer_square)
        slope = np.array([self.representer_square, self.residual_variance]) * size / (2 * root)
        errors = [
            np.sqrt(max(float(way @ self.covariance @ way), 0.0))
            for way in (np.array([1.0, *-slope]), np.array([1.0, *slope]))
        ]
        low, high = self.value - bias, self.value + bias
        return EffectBounds(low, high, (low - reach * errors[0], high + reach * errors[1]))

    def _reaches_zero(self, strength: float, coverage: float) -> bool:
        low, high = self.bounds(strength, strength, coverage=coverage).interval
        return low <= 0 <= high

    def __str__(self) -> str:
        share, safe = self.robustness_value, self.robustness_of_interval()
        text = (
            f"The average outcome at dose {dose_text(self.high, 4)} less that at dose "
            f"{dose_text(self.low, 4)} is "
            f"{self.value:.4g} (standard error {self.standard_error:.3g}). To bring it to zero, "
            f"a confounder that was not measured would have to explain {share:.1%} of what is left "
            "of the outcome and as much of what is left of the dose"
        )
        text += (
            f"; {safe:.1%} of both would bring zero into the 95 % interval."
            if safe > 0
            else "; zero is in the 95 % interval as it is."
        )
        for benchmark in self.benchmarks:
            both = benchmark.outcome_strength, benchmark.dose_strength
            text += f" A confounder like {benchmark.name} ({both[0]:.1%} and {both[1]:.1%})"
            if max(both) >= 1:
                text += " could explain any effect."
            else:
                text += f" would move the effect by {self.bias(*both):.3g} at most."
        return "\n".join(textwrap.wrap(text, WIDTH))

    __repr__ = __str__

    def plot(self, *, most: float | None = None, ax: Any | None = None) -> Any:
        """Draw how far confounders of all strengths could move the effect towards zero.

        Lines join strengths that leave the same effect at worst; beyond the red one it may be 0.

        Parameters
        ----------
        most : float, optional
            Largest strength that is drawn; by default what shows the benchmarks and the red line.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.sensitivity_plot:plot_sensitivity")(self, most=most, ax=ax)


def _product_of_strengths(outcome_strength: float, dose_strength: float) -> float:
    given = {"outcome_strength": outcome_strength, "dose_strength": dose_strength}
    for name, value in given.items():
        if not isinstance(value, Real) or not 0 <= value < 1:
            raise ValueError(
                f"The {name!r} parameter must be a float in [0, 1). Got {value!r} instead."
            )
    return outcome_strength * dose_strength / (1 - dose_strength)
