"""Whether arms have as many units as planned: if not, something lost units, and results lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from doseforest.pricing.experiments.hashed_arms import checked_shares

ALARM = 0.001  # p-value below which the ratio is taken for broken; few false alarms over many tests


@dataclass(frozen=True, slots=True)
class SampleRatioCheck:
    """Units of each arm beside the plan.

    Attributes
    ----------
    counts : dict of int
        Units by arm.
    shares : dict of float
        Planned shares by arm.
    statistic : float
        Chi-square.
    p_value : float
        Chance of counts as far from the plan.

    Examples
    --------
    >>> check_sample_ratio({"a": 510, "b": 490}).statistic
    0.4
    """

    counts: dict[str, int]
    shares: dict[str, float]
    statistic: float
    p_value: float

    @property
    def holds(self) -> bool:
        """Whether the counts are as planned, but for chance."""
        return self.p_value >= ALARM

    def __str__(self) -> str:
        total = sum(self.counts.values())
        result = " : ".join(f"{count / total:.1%}" for count in self.counts.values())
        planned = " : ".join(f"{share:.1%}" for share in self.shares.values())
        verdict = "as planned" if self.holds else "NOT as planned, do not trust the comparison"
        return f"{result} of units ({planned} planned), p = {self.p_value:.2g}: {verdict}"


def check_sample_ratio(
    counts: Mapping[str, int], shares: Mapping[str, float] | None = None
) -> SampleRatioCheck:
    """Chi-square test of the numbers of assigned units.

    Parameters
    ----------
    counts : mapping from arm to int
        Number of units of each arm.
    shares : mapping from arm to float, optional
        Planned share of each arm; by default the same for all.

    Returns
    -------
    SampleRatioCheck
        The test; ``holds`` is False where the assignment went wrong.

    Examples
    --------
    >>> print(check_sample_ratio({"a": 510, "b": 490}))
    51.0% : 49.0% of units (50.0% : 50.0% planned), p = 0.53: as planned
    >>> check_sample_ratio({"a": 5600, "b": 5000}).holds
    False
    """
    result = {str(arm): _checked_count(count) for arm, count in counts.items()}
    planned = checked_shares({arm: 1 / len(result) for arm in result} if shares is None else shares)
    if set(planned) != set(result) or sum(result.values()) == 0:
        raise ValueError(
            f"The 'counts' parameter must have units, and the arms of 'shares' ({list(planned)}). "
            f"Got {dict(counts)!r} instead."
        )
    own = {arm: result[arm] for arm in planned}
    expected = sum(own.values()) * np.array(list(planned.values()))
    statistic = float(((np.array(list(own.values())) - expected) ** 2 / expected).sum())
    return SampleRatioCheck(own, planned, statistic, float(chdtrc(len(own) - 1, statistic)))


def _checked_count(count: Any) -> int:
    if isinstance(count, bool) or count != int(count) or count < 0:
        raise ValueError(
            "The 'counts' parameter must hold numbers of units of at least 0. "
            f"Got {count!r} instead."
        )
    return int(count)
