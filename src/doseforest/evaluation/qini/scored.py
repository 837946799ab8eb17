"""What all Qini curves share: a score, and how sure it is."""

from __future__ import annotations

from doseforest.evaluation.row_estimates import RowEstimate


class Scored:
    """A curve with the estimate of its score."""

    __slots__ = ()
    estimate: RowEstimate

    @property
    def score(self) -> float:
        """Mean gain beyond that of the reference: units at random, or the best without a model."""
        return self.estimate.value

    @property
    def standard_error(self) -> float:
        """Of the score."""
        return self.estimate.standard_error

    @property
    def p_value(self) -> float:
        """Two-sided: that the model is no better or worse than the reference."""
        return self.estimate.p_value

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Interval of the score.

        Parameters
        ----------
        coverage : float, default=0.95
            Chance with which the interval covers the truth. Raise it for fewer misses and longer
            intervals.

        Returns
        -------
        low, high : float
            Its ends.
        """
        return self.estimate.interval(coverage)
