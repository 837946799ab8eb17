"""What an A/B test found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from doseforest.pricing.experiments.increment_plots import plot_increments
from doseforest.pricing.experiments.increments import Increment
from doseforest.pricing.experiments.sample_ratio import SampleRatioCheck


@dataclass(frozen=True, slots=True)
class ABResult:
    """Increment of a metric in the treated arm, what it rests on, and what it cost.

    Attributes
    ----------
    metric : str
        What the outcome is called.
    control, treatment : str
        Names of the arms.
    increment : Increment
        The increment, adjusted by covariates.
    unadjusted : Increment
        The increment without covariates.
    adjustment : {"lin", "cuped", "none"}
        How covariates were used.
    n_covariates : int
        Number of covariates.
    n_units : tuple of int
        Units of control and treatment.
    n_rows : tuple of int
        Rows of control and treatment.
    sample_ratio : SampleRatioCheck
        Units of each arm beside the plan.
    spend : Increment or None
        Cost for each unit, where costs were passed.
    total_spend : tuple of float or None
        Total cost of control and treatment.

    Examples
    --------
    >>> from doseforest.pricing.experiments import compare_arms
    >>> result = compare_arms([1.0, 2.0, 3.0, 4.0] * 10, [0, 0, 1, 1] * 10, control=0)
    >>> result.increment.absolute, result.n_units
    (2.0, (20, 20))
    """

    metric: str
    control: str
    treatment: str
    increment: Increment
    unadjusted: Increment
    adjustment: str
    n_covariates: int
    n_units: tuple[int, int]
    n_rows: tuple[int, int]
    sample_ratio: SampleRatioCheck
    spend: Increment | None = None
    total_spend: tuple[float, float] | None = None

    @property
    def p_value(self) -> float:
        """Of no increment at all, two-sided."""
        return self.increment.p_value

    @property
    def variance_reduction(self) -> float:
        """Share of the increment's variance that covariates took away."""
        before = self.unadjusted.standard_error**2
        return 1.0 - self.increment.standard_error**2 / before if before > 0 else 0.0

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the absolute increment.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth.

        Returns
        -------
        low, high : float
            Its ends.
        """
        return self.increment.interval(coverage)

    def relative_interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the relative increment.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth.

        Returns
        -------
        low, high : float
            Its ends.
        """
        return self.increment.relative_interval(coverage)

    def as_dict(self, coverage: float = 0.95) -> dict[str, Any]:
        """Everything as plain values, for JSON.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the intervals cover the truth.

        Returns
        -------
        dict
            Numbers by name.
        """
        return {
            "metric": self.metric,
            "control": self.control,
            "treatment": self.treatment,
            "coverage": coverage,
            "increment": self.increment.as_dict(coverage),
            "unadjusted": self.unadjusted.as_dict(coverage),
            "adjustment": self.adjustment,
            "n_covariates": self.n_covariates,
            "variance_reduction": self.variance_reduction,
            "n_units": list(self.n_units),
            "n_rows": list(self.n_rows),
            "sample_ratio_p_value": self.sample_ratio.p_value,
            "sample_ratio_holds": self.sample_ratio.holds,
            "spend": None if self.spend is None else self.spend.as_dict(coverage),
            "total_spend": None if self.total_spend is None else list(self.total_spend),
        }

    def __str__(self) -> str:
        return self.text()

    def text(self, coverage: float = 0.95) -> str:
        """The result in lines.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the intervals cover the truth.

        Returns
        -------
        str
            The lines.
        """
        width = max(len(self.control), len(self.treatment))
        values = (self.increment.control, self.increment.treatment)
        arms = zip((self.control, self.treatment), values, self.n_units, strict=True)
        lines = [f"{self.metric}: {self.treatment} against {self.control}"]
        lines += [f"  {arm:<{width}}  {value:.5g}  ({count:,} units)" for arm, value, count in arms]
        lines.append(
            f"  increment {increment_text(self.increment, coverage)}, p = {self.p_value:.2g}"
        )
        if self.n_covariates:
            lines.append(
                f"  adjusted by {_covariates(self.n_covariates)} ({self.adjustment}): variance "
                f"{-self.variance_reduction:+.0%}"
            )
        if self.spend is not None:
            lines.append(
                f"  spend {increment_text(self.spend, coverage)}: {self.budget_text(coverage)}"
            )
        lines.append(f"  {self.sample_ratio}")
        return "\n".join(lines)

    def budget_text(self, coverage: float = 0.95) -> str:
        """Whether both arms spent the same.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth.

        Returns
        -------
        str
            A line.
        """
        if self.spend is None:
            return "no cost was given"
        low, high = self.spend.interval(coverage)
        if low <= 0 <= high:
            return "the same budget, but for chance"
        return f"{self.treatment} spent {'more' if low > 0 else 'less'}"

    def plot(self, *, coverage: float = 0.95, ax: Any | None = None) -> Any:
        """Draw relative increments with intervals: adjusted, unadjusted, and of the spend.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the intervals cover the truth.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        shown = {self.metric: self.increment}
        if self.n_covariates:
            shown["without covariates"] = self.unadjusted
        if self.spend is not None:
            shown["spend"] = self.spend
        title = f"{self.treatment} against {self.control}"
        return plot_increments(shown, title=title, coverage=coverage, ax=ax)


def increment_text(increment: Increment, coverage: float = 0.95) -> str:
    """Absolute and relative increment, with intervals."""
    low, high = increment.interval(coverage)
    text = f"{increment.absolute:+.4g} [{low:.4g}, {high:.4g}]"
    if increment.control:
        low, high = increment.relative_interval(coverage)
        text += f", {increment.relative:+.2%} [{low:.2%}, {high:.2%}]"
    return text


def _covariates(count: int) -> str:
    return f"{count} covariate{'s' if count > 1 else ''}"
