"""What a comparison of models says: a winner, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.late import late
from doseforest.base.text_tables import text_table
from doseforest.evaluation.row_estimates import RowEstimate
from doseforest.evaluation.selection_metrics import Metric

MANY_TIMES = 1000  # so many times as many rows are not worth a sentence


@dataclass(frozen=True, slots=True)
class SelectionVerdict:
    """Who is best, who may be as good, and whether the best wins.

    Attributes
    ----------
    best : str
        Candidate of best score.
    winner : str or None
        The best, where it is better than all others beyond noise.
    tied : tuple of str
        The best, and those within noise of it; empty where one wins.
    reason : str
        Why there is a winner or none.

    Examples
    --------
    >>> verdict = SelectionVerdict("forest", None, ("forest", "boosting"), "They are too close.")
    >>> verdict.winner is None
    True
    """

    best: str
    winner: str | None
    tied: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelSelection:
    """Candidates compared on rows that they have not seen; printed, a table and who wins.

    Attributes
    ----------
    metric : str
        What was compared.
    estimates : mapping from str to RowEstimate
        Score of each candidate; higher is better.
    verdict : SelectionVerdict
        Who wins, and why.
    test : RowEstimate or None
        Score of the best on rows that had no part in choosing it.
    models : mapping from str to model
        The models that were compared; empty with cross-validation.
    model : model or None
        The winner, fitted; None where nobody wins.

    Examples
    --------
    >>> from doseforest.baselines import ZeroEffect, boosting
    >>> from doseforest.datasets import DISCOUNT_DESIGNS
    >>> from doseforest.evaluation import select_model
    >>> data = DISCOUNT_DESIGNS["threshold"].draw(n=3000, seed=0)
    >>> candidates = {"few trees": boosting(5), "no effect": ZeroEffect()}
    >>> selection = select_model(
    ...     candidates, data.X, data.y, data.treatment, scores="randomised", refit=False)
    >>> selection.best
    'few trees'
    """

    metric: str
    estimates: Mapping[str, RowEstimate] = field(repr=False)
    verdict: SelectionVerdict
    test: RowEstimate | None
    models: Mapping[str, Any] = field(repr=False)
    model: Any

    @property
    def winner(self) -> str | None:
        """Name of the winner; None where the data cannot tell."""
        return self.verdict.winner

    @property
    def best(self) -> str:
        """Name of the candidate of best score, winner or not."""
        return self.verdict.best

    @property
    def tied(self) -> tuple[str, ...]:
        """Candidates that the data cannot tell from the best, itself the first."""
        return self.verdict.tied

    @property
    def reason(self) -> str:
        """Why there is a winner or none."""
        return self.verdict.reason

    @property
    def ranking(self) -> tuple[str, ...]:
        """Names by descending score."""
        return tuple(sorted(self.estimates, key=lambda name: -self.estimates[name].value))

    def difference(self, first: str, second: str) -> RowEstimate:
        """Score of one candidate less that of another, paired row by row.

        Parameters
        ----------
        first, second : str
            Names of candidates.

        Returns
        -------
        RowEstimate
            The difference; above 0 where the first is better.
        """
        for name in (first, second):
            if name not in self.estimates:
                raise ValueError(
                    f"The candidates must be among {', '.join(self.estimates)}. "
                    f"Got {name!r} instead."
                )
        return self.estimates[first].minus(self.estimates[second])

    def plot(self, *, ax: Any | None = None) -> Any:
        """Draw paired differences to the best with 95 % intervals; needs the `plot` extra.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        return late("doseforest.report.selection_plot:plot_selection")(self, ax=ax)

    def __str__(self) -> str:
        lines = []
        for name in self.ranking:
            estimate = self.estimates[name]
            low, high = estimate.interval()
            cells = [name, f"{estimate.value:.4g}", f"[{low:.4g}, {high:.4g}]"]
            if name == self.best:
                lines.append([*cells, "", "", ""])
                continue
            gap = self.difference(name, self.best)
            low, high = gap.interval()
            lines.append(
                [*cells, f"{gap.value:.3g}", f"[{low:.3g}, {high:.3g}]", f"{gap.p_value:.2g}"]
            )
        header = [self.metric, "score", "95 %", f"less {self.best}", "95 %", "p"]
        text = [*text_table(header, lines), self.reason]
        if self.test is not None:
            low, high = self.test.interval()
            text.append(
                f"On rows that had no part in this, {self.best} scores {self.test.value:.4g} "
                f"[{low:.4g}, {high:.4g}]."
            )
        return "\n".join(text)

    __repr__ = __str__


def decide(
    estimates: Mapping[str, RowEstimate], metric: Metric, level: float, n_rows: int
) -> SelectionVerdict:
    """Name the winner, or say why there is none.

    Examples
    --------
    >>> from doseforest.evaluation.row_estimates import mean_of_rows
    >>> from doseforest.evaluation.selection_metrics import METRICS
    >>> noise = np.random.default_rng(0).normal(size=(2, 100))
    >>> found = {"a": mean_of_rows(1.0 + noise[0]), "b": mean_of_rows(0.9 + noise[1])}
    >>> decide(found, METRICS["policy_value"], 0.05, 100).tied
    ('a', 'b')
    """
    best = max(estimates, key=lambda name: estimates[name].value)
    top = estimates[best]
    gaps = {name: top.minus(estimate) for name, estimate in estimates.items() if name != best}
    near = [name for name, gap in gaps.items() if gap.p_value > level]
    if metric.zero_is_chance and not (top.value > 0 and top.p_value <= level):
        low, high = top.interval()
        reason = (
            f"Nobody is declared: the best, {best!r}, is not beyond chance, {metric.name} "
            f"{top.value:.3g} [{low:.3g}, {high:.3g}] on {n_rows:,} rows."
        )
        return SelectionVerdict(best, None, (best, *near), reason)
    if near:
        reason = _tie_text(best, {name: gaps[name] for name in near}, n_rows)
        return SelectionVerdict(best, None, (best, *near), reason)
    if not gaps:
        return SelectionVerdict(best, best, (), f"{best!r} is the only candidate.")
    closest = min(gaps, key=lambda name: gaps[name].value)
    gap = gaps[closest]
    reason = (
        f"{best!r} wins on {n_rows:,} rows: ahead of every other one, the closest {closest!r} by "
        f"{gap.value:.3g} (p = {gap.p_value:.2g}, paired)."
    )
    return SelectionVerdict(best, best, (), reason)


def _tie_text(best: str, gaps: Mapping[str, RowEstimate], n_rows: int) -> str:
    listed = ", ".join(
        f"{name!r} by {gap.value:.3g} (p = {gap.p_value:.2g})" for name, gap in gaps.items()
    )
    text = (
        f"Nobody is declared: {n_rows:,} rows cannot tell the best, {best!r}, from {listed}, "
        "paired."
    )
    needed = _times_needed(np.array([gap.value for gap in gaps.values()]), gaps)
    if needed < MANY_TIMES:
        text += f" If these differences are real, it takes about {needed:.0f} times as many rows."
    return text


def _times_needed(values: FloatArray, gaps: Mapping[str, RowEstimate]) -> float:
    """How many times as many rows would make the smallest difference as large as 2.8 errors."""
    errors = np.array([gap.standard_error for gap in gaps.values()])
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(values > 0, (2.8 * errors / values) ** 2, np.inf)
    return float(np.ceil(times.max()))
