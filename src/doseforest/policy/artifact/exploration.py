"""Policies beside the one of a forest: one dose for all, doses at random, and a share at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray, IntArray
from doseforest.base.late import late
from doseforest.data.checks import as_numbers
from doseforest.policy.artifact.alternatives import Alternatives, choose, weigh
from doseforest.policy.artifact.dose_limits import checked_components, checked_doses
from doseforest.policy.artifact.dose_policy import DosePolicy
from doseforest.policy.artifact.keyed_draws import keyed_uniform
from doseforest.policy.artifact.policy_decisions import (
    CODES,
    Decisions,
    decisions_at,
    joined,
    unpredicted,
)
from doseforest.policy.artifact.unit_columns import CheckedUnits, count_units, read_units


class _Saved:
    """What every policy can do."""

    __slots__ = ()

    def save(self, path: str | Path) -> None:
        """Write the policy to one file, which `load_policy` reads.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        late("doseforest.files.policy_file:save_policy")(self, path)


@dataclass(frozen=True, slots=True, eq=False)
class ConstantPolicy(_Saved):
    """The same dose for everybody, as the control of an experiment has.

    Parameters
    ----------
    dose : dose
        A number, or one for each component.
    components : sequence of str, optional
        Names of the components of a dose that has several, as in `DosePolicy`.

    Attributes
    ----------
    doses : array of shape (1,)
        The dose.

    Examples
    --------
    >>> ConstantPolicy(5.0).decide([[1.0], [2.0]]).dose
    array([5., 5.])
    """

    dose: Any
    components: tuple[str, ...] | None = None
    doses: DoseArray = field(init=False)  # (1,)

    def __post_init__(self) -> None:
        doses = checked_doses(np.asarray(self.dose)[None], "dose")
        object.__setattr__(self, "doses", doses.values)
        object.__setattr__(self, "dose", doses[0].element)
        object.__setattr__(self, "components", checked_components(self.components, doses))

    @property
    def columns(self) -> tuple[str, ...]:
        """It needs none."""
        return ()

    def decide(self, X: Any, context: Any = None) -> Decisions:
        """Give the dose to every unit.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units; only their number counts.
        context : mapping or frame of columns, optional
            Not read.

        Returns
        -------
        Decisions
            The dose, with propensity 1.
        """
        return self.decide_checked(read_units(X, context, (), None))

    def decide_checked(self, units: CheckedUnits) -> Decisions:
        """`decide` for units that were checked before, as a service has them.

        Parameters
        ----------
        units : CheckedUnits
            Features and columns of the units.

        Returns
        -------
        Decisions
            Doses, with reasons and propensities.
        """
        every = np.zeros(units.n_units, np.int64)
        return unpredicted(self.doses, self.components, "constant", every)

    def propensities(self, X: Any, context: Any = None) -> FloatArray:
        """Probability of every dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units; only their number counts.
        context : mapping or frame of columns, optional
            Not read.

        Returns
        -------
        array of shape (n_units, 1)
            Ones.
        """
        return np.ones((count_units(X), 1))


@dataclass(frozen=True, slots=True, eq=False)
class ExplorationPolicy(_Saved):
    """Doses at random, with known propensities.

    Parameters
    ----------
    doses : array of shape (n_doses,) or (n_doses, n_components)
        Ascending.
    probabilities : array of shape (n_doses,), optional
        They add up to 1; by default all are equal.
    key : str, default="unit"
        Column with the units' keys: whoever has the same key gets the same dose.
    salt : str
        Of the experiment: with the salt of another one, the same units would get the same draws
        again, and results of one would be mixed up with effects of the other.
    components : sequence of str, optional
        Names of the components of doses that have several, as in `DosePolicy`.

    Examples
    --------
    >>> policy = ExplorationPolicy([0.0, 5.0, 10.0], [0.5, 0.25, 0.25], key="rider", salt="spring")
    >>> decisions = policy.decide(np.zeros((4, 1)), {"rider": ["ann", "bob", "cem", "ann"]})
    >>> decisions.dose, decisions.propensity
    (array([10.,  0.,  5., 10.]), array([0.25, 0.5 , 0.25, 0.25]))
    """

    doses: DoseArray
    probabilities: FloatArray = None  # type: ignore[assignment]  # (n_doses,) once it is made
    key: str = "unit"
    salt: str = field(kw_only=True)  # without a default: two experiments must not share one
    components: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        doses = checked_doses(self.doses)
        _check_text(self.key, "key", "the name of a column")
        _check_text(self.salt, "salt", "text of the experiment's own, such as its name")
        object.__setattr__(self, "doses", doses.values)
        object.__setattr__(self, "components", checked_components(self.components, doses))
        given = np.full(len(doses), 1 / len(doses))
        if self.probabilities is not None:
            given = _checked_probabilities(self.probabilities, len(doses))
        object.__setattr__(self, "probabilities", given)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of keys."""
        return (self.key,)

    def decide(self, X: Any, context: Any = None) -> Decisions:
        """Draw a dose for every unit, by its key.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units; a frame may also hold the column of keys.
        context : mapping or frame of columns, optional
            Columns beside X, with an entry for each unit or one for all.

        Returns
        -------
        Decisions
            Doses with their propensities.
        """
        return self.decide_checked(read_units(X, context, (self.key,), None))

    def decide_checked(self, units: CheckedUnits) -> Decisions:
        """`decide` for units that were checked before, as a service has them.

        Parameters
        ----------
        units : CheckedUnits
            Features and columns of the units.

        Returns
        -------
        Decisions
            Doses, with reasons and propensities.
        """
        chances = np.broadcast_to(self.probabilities, (units.n_units, len(self.doses)))
        choice = _drawn(chances, units.columns[self.key], self.salt, self.key)
        return unpredicted(self.doses, self.components, "explored", choice, chances)

    def propensities(self, X: Any, context: Any = None) -> FloatArray:
        """Probability of every dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units; only their number counts.
        context : mapping or frame of columns, optional
            Not read.

        Returns
        -------
        array of shape (n_units, n_doses)
            The probabilities.
        """
        return np.tile(self.probabilities, (count_units(X), 1))


@dataclass(frozen=True, slots=True, eq=False)
class Explore(_Saved):
    """A policy's decisions, but for a share of doses drawn at random, to learn from.

    A dose is drawn among those that the unit may have (its limits, its support), and the decision
    carries the propensity of what came out: the policy's choice has ``1 - share`` plus its part of
    the share. Units that the policy cannot decide on get the baseline, always.

    Parameters
    ----------
    policy : DosePolicy
        The policy that decides on the others.
    share : float
        Chance of a drawn dose, in [0, 1]. Raise it to learn faster from the experiment; each drawn
        dose costs what the best one would have brought more.
    probabilities : array of shape (n_doses,), optional
        Of drawn doses, divided by their sum over those that a unit may have; by default equal.
        Where all of its doses have probability 0, a unit keeps the policy's.
    key : str, default="unit"
        Column with the units' keys, as in `ExplorationPolicy`.
    salt : str
        Name of the experiment, as in `ExplorationPolicy`.

    Examples
    --------
    >>> from doseforest.policy import DosePolicy, DoseCost, unit_table
    >>> x = np.linspace(0, 4, 200)[:, None]
    >>> curves = unit_table(x, x * [0.0, 1.0], doses=[0.0, 1.0])
    >>> policy = DosePolicy(curves, cost=DoseCost(1.0), budget_price=2.0)
    >>> Explore(policy, 0.1, key="rider", salt="spring").propensities([[3.8]])
    array([[0.05, 0.95]])
    """

    policy: DosePolicy
    share: float
    probabilities: FloatArray = None  # type: ignore[assignment]  # (n_doses,) once it is made
    key: str = "unit"
    salt: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, DosePolicy):
            raise TypeError(
                "The 'policy' parameter must be a DosePolicy. "
                f"Got {type(self.policy).__name__} instead; mixtures without a forest are an "
                "ExplorationPolicy."
            )
        is_number = isinstance(self.share, Real) and not isinstance(self.share, bool)
        if not is_number or not 0 <= self.share <= 1:
            raise ValueError(
                f"The 'share' parameter must be a number from 0 to 1. Got {self.share!r} instead."
            )
        drawn = ExplorationPolicy(self.doses, self.probabilities, self.key, salt=self.salt)
        object.__setattr__(self, "share", float(self.share))
        object.__setattr__(self, "probabilities", drawn.probabilities)

    @property
    def doses(self) -> DoseArray:
        """Doses of the policy."""
        return self.policy.doses

    @property
    def components(self) -> tuple[str, ...] | None:
        """Names of the components of the policy's doses."""
        return self.policy.components

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the policy, and that of keys."""
        return tuple(dict.fromkeys([*self.policy.columns, self.key]))

    def decide(self, X: Any, context: Any = None) -> Decisions:
        """Decide on every unit: the policy's dose, or a drawn one.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            The forest's features; a frame may also hold the columns of rules and keys.
        context : mapping or frame of columns, optional
            Columns beside X, with an entry for each unit or one for all.

        Returns
        -------
        Decisions
            Doses, reasons and propensities.
        """
        units = read_units(X, context, self.columns, self.policy.forest)
        return joined([self.decide_checked(block) for block in units.blocks()])

    def decide_checked(self, units: CheckedUnits) -> Decisions:
        """`decide` for units that were checked before, as a service has them.

        Parameters
        ----------
        units : CheckedUnits
            Features and columns of the units.

        Returns
        -------
        Decisions
            Doses, with reasons and propensities.
        """
        weighed = weigh(self.policy, units)
        best = choose(weighed)
        chances = self._chances(weighed, best.dose_index)
        choice = _drawn(chances, units.columns[self.key], self.salt, self.key)
        other = choice != best.dose_index
        codes = np.where(other, CODES["explored"], best.reason_code).astype(np.int8)
        return decisions_at(weighed, choice, codes, chances)

    def propensities(self, X: Any, context: Any = None) -> FloatArray:
        """Probability of every dose.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            The forest's features; a frame may also hold the columns of rules.
        context : mapping or frame of columns, optional
            Columns beside X, with an entry for each unit or one for all.

        Returns
        -------
        array of shape (n_units, n_doses)
            The probabilities.
        """
        units = read_units(X, context, self.policy.columns, self.policy.forest)
        pieces = [weigh(self.policy, block) for block in units.blocks()]
        return np.concatenate([self._chances(piece, choose(piece).dose_index) for piece in pieces])

    def _chances(self, weighed: Alternatives, best: IntArray) -> FloatArray:
        """Probability of every dose, (n_units, n_doses)."""
        every = np.arange(len(best))
        drawn = np.where(weighed.usable, self.probabilities, 0.0)
        total = drawn.sum(axis=1, keepdims=True)
        some = total[:, 0] > 0
        drawn[~some, best[~some]] = 1.0
        chances: FloatArray = self.share * drawn / np.where(total > 0, total, 1.0)
        chances[every, best] += 1 - self.share
        return chances


def _drawn(chances: FloatArray, keys: Array, salt: str, name: str) -> IntArray:
    """A place for each unit with its chances, never one of chance 0."""
    draws = keyed_uniform(keys, salt, name)
    ends = np.cumsum(chances, axis=1)
    place = (draws[:, None] * ends[:, -1:] >= ends).sum(axis=1)
    drawn: IntArray = np.minimum(place, chances.shape[1] - 1).astype(np.int64)
    return drawn


def _checked_probabilities(given: Any, n_doses: int) -> FloatArray:
    own = as_numbers(given, "probabilities").astype(np.float64)
    fits = own.shape == (n_doses,) and bool((own >= 0).all())
    if not fits or not abs(own.sum() - 1) <= 1e-9:
        raise ValueError(
            f"The 'probabilities' parameter must be {n_doses} numbers of at least 0, one per dose, "
            f"that add up to 1. Got {given!r} instead."
        )
    return own


def _check_text(given: Any, name: str, rule: str) -> None:
    if not isinstance(given, str) or not given:
        raise ValueError(f"The {name!r} parameter must be {rule}. Got {given!r} instead.")
