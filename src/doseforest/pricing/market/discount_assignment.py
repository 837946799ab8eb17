"""Who sees which discount: at random, or as in the history where weak demand was discounted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, logit, ndtri, softmax

from doseforest.base.dtypes import FloatArray
from doseforest.pricing.market.demand import base_score, signals_of
from doseforest.pricing.market.regimes import (
    CITY,
    HISTORY,
    LEVELS,
    MAX_DISCOUNT,
    OPTIONS,
    History,
)
from doseforest.pricing.market.traffic import FEATURES

EXPERIMENT = "levels"  # what experiments do unless they are told otherwise
SAME = 1e-9  # levels are told apart by more


class Assignment(Protocol):
    """A rule with fixed probabilities; discounts of two options are drawn apart.

    Examples
    --------
    >>> RandomLevels().doses(np.zeros((2, 16)), np.array([[0.0], [0.99]]))
    array([[0. ],
           [0.3]])
    """

    def doses(self, X: FloatArray, chances: FloatArray) -> FloatArray:
        """Discounts of views by uniform numbers.

        Parameters
        ----------
        X : array of shape (n_views, n_features)
            Features of the views.
        chances : array of shape (n_views, n_options)
            Uniform numbers.

        Returns
        -------
        array of shape (n_views, n_options)
            The discounts.
        """

    def density(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Density (or probability) of discounts given the features.

        Parameters
        ----------
        doses : array of shape (n_views, n_options)
            Discounts.
        X : array of shape (n_views, n_features)
            Features of the views.

        Returns
        -------
        array of shape (n_views, n_options)
            The densities.
        """


@dataclass(frozen=True, slots=True)
class RandomLevels:
    """One of a few levels, all equally likely."""

    levels: tuple[float, ...] = LEVELS

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Of each level, shape (n_views, n_levels)."""
        return np.full((len(X), len(self.levels)), 1.0 / len(self.levels))

    def doses(self, X: FloatArray, chances: FloatArray) -> FloatArray:
        """The level whose part of the cumulated probabilities holds the number."""
        below = np.cumsum(self.probabilities(X), axis=1)[:, None, :-1]
        place = (chances[:, :, None] >= below).sum(axis=2)
        drawn: FloatArray = np.array(self.levels)[place]
        return drawn

    def density(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Product of the levels' probabilities; 0 between levels."""
        same = np.abs(doses[:, :, None] - np.array(self.levels)) < SAME
        own = (same * self.probabilities(X)[:, None, :]).sum(axis=2)
        density: FloatArray = own.prod(axis=1)
        return density


@dataclass(frozen=True, slots=True)
class RandomContinuous:
    """Uniform from no discount to the largest."""

    def doses(self, X: FloatArray, chances: FloatArray) -> FloatArray:
        """Discounts."""
        return MAX_DISCOUNT * chances

    def density(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Of the uniform law."""
        inside = ((doses >= 0) & (doses <= MAX_DISCOUNT)).all(axis=1)
        density: FloatArray = inside / MAX_DISCOUNT ** doses.shape[1]
        return density


def weakness(X: FloatArray, history: History = HISTORY) -> FloatArray:
    """Log odds of a high discount in the history, shape (n_views,): idle drivers, few requests."""
    idle, views = (X[:, FEATURES.index(name)] for name in ("idle_drivers", "recent_views"))
    slack = np.log((idle + 1.0) / (CITY.request_share * views + 1.0))
    appetite = base_score(OPTIONS[0], signals_of(X))
    odds: FloatArray = history.level + history.slack * slack - history.appetite * appetite
    return odds


@dataclass(frozen=True, slots=True)
class HistoryLevels(RandomLevels):
    """Levels, high ones likelier the weaker the demand."""

    history: History = HISTORY

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Of each level, shape (n_views, n_levels)."""
        tilt = self.history.sharpness * (2.0 * expit(weakness(X, self.history)) - 1.0)
        heights = np.array(self.levels) / MAX_DISCOUNT - 0.5
        shares: FloatArray = softmax(np.outer(tilt, heights), axis=1)
        return shares


@dataclass(frozen=True, slots=True)
class HistoryContinuous:
    """A logistic-normal share of the largest discount, around one by the weakness of demand."""

    history: History = HISTORY

    def doses(self, X: FloatArray, chances: FloatArray) -> FloatArray:
        """Discounts."""
        odds = weakness(X, self.history)[:, None] + self.history.noise * ndtri(chances)
        drawn: FloatArray = MAX_DISCOUNT * expit(odds)
        return drawn

    def density(self, doses: FloatArray, X: FloatArray) -> FloatArray:
        """Of the logistic-normal law."""
        share = np.clip(doses / MAX_DISCOUNT, 1e-12, 1.0 - 1e-12)
        away = (logit(share) - weakness(X, self.history)[:, None]) / self.history.noise
        normal = np.exp(-0.5 * away**2) / (np.sqrt(2.0 * np.pi) * self.history.noise)
        density: FloatArray = (normal / (share * (1.0 - share) * MAX_DISCOUNT)).prod(axis=1)
        return density


ASSIGNMENTS: dict[str, Assignment] = {
    "levels": RandomLevels(),
    "continuous": RandomContinuous(),
    "history": HistoryLevels(),
    "history_continuous": HistoryContinuous(),
}


def rule_of(assignment: str) -> Assignment:
    """The rule of a name, or an error."""
    if assignment not in ASSIGNMENTS:
        names = ", ".join(map(repr, ASSIGNMENTS))
        raise ValueError(
            f"The 'assignment' parameter must be one of {names}. Got {assignment!r} instead."
        )
    return ASSIGNMENTS[assignment]
