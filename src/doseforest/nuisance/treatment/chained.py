"""Densities of doses with several components: pi(t1 | x) pi(t2 | x, t1) pi(t3 | x, t1, t2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, DoseArray, FloatArray
from doseforest.doses.dose_values import AnyDoses, Doses
from doseforest.nuisance.treatment.conditional_density import ConditionalDensity, DensityLearner
from doseforest.nuisance.treatment.treatment_support import DoseSupport, dose_support


@dataclass(frozen=True, slots=True)
class ChainedDensity:
    """A density of each component given the covariates and the components before it."""

    parts: tuple[ConditionalDensity, ...]

    def density(self, X: FloatArray, doses: DoseArray) -> FloatArray:
        """Values pi(t | x), (n_units, n_doses)."""
        joint: FloatArray = np.prod(along_chain(X, doses, self._part), axis=0)
        return joint

    def _part(self, place: int, X: FloatArray, doses: FloatArray) -> FloatArray:
        return self.parts[place].density(X, doses)


def along_chain(
    X: FloatArray, doses: DoseArray, answer: Callable[[int, FloatArray, FloatArray], Array]
) -> Array:
    """Answers (n_components, n_units, n_doses) about each component given those before it.

    Parameters
    ----------
    X : array of shape (n_units, n_features)
    doses : array of shape (n_doses,) or (n_units, n_doses)
        A grid, or each unit's own doses.
    answer : callable
        Of a component's place, the units with the components before it as further columns, and
        values of the component, (n_doses,) or (n_units, n_doses).
    """
    table = Doses.of(doses).table
    n_doses, width = table.shape[-2:]
    out = []
    for place in range(width):
        own = None
        if doses.ndim == 1:
            starts, owner = np.unique(table[:, :place], axis=0, return_inverse=True)
            for number, start in enumerate(starts):
                mine = np.flatnonzero(owner.ravel() == number)
                joined = np.column_stack([X, np.tile(start, (len(X), 1))])
                answers = answer(place, joined, table[mine, place])
                own = np.empty((len(X), n_doses), answers.dtype) if own is None else own
                own[:, mine] = answers
        else:
            for dose in range(n_doses):
                joined = np.column_stack([X, table[:, dose, :place]])
                answers = answer(place, joined, table[:, dose, place][:, None])
                own = np.empty((len(X), n_doses), answers.dtype) if own is None else own
                own[:, [dose]] = answers
        out.append(own)
    return np.stack([each for each in out if each is not None])


@dataclass(frozen=True, slots=True)
class Chained:
    """A recipe for each component: the same, one component after the other.

    Examples
    --------
    >>> from doseforest.nuisance.treatment import LocationScale
    >>> from doseforest.doses.dose_values import Doses
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1))
    >>> first = x[:, 0] + rng.normal(size=1000)
    >>> dose = Doses.of_table(np.column_stack([first, first + rng.normal(size=1000)])).values
    >>> density = Chained(LocationScale()).fit(x, dose)
    >>> middle = Doses.of_table(np.array([[0.0, 0.0]])).values
    >>> value = density.density(np.zeros((1, 1)), middle)[0, 0]
    >>> bool(abs(value - 1 / (2 * np.pi)) < 0.03)
    True
    """

    learner: DensityLearner

    def fit(
        self,
        X: FloatArray,
        dose: DoseArray,
        *,
        support: Any = None,
        weights: FloatArray | None = None,
        seed: int = 0,
        n_threads: int = 1,
    ) -> ChainedDensity:
        """Fit a density to rows; see `DensityLearner.fit`."""
        table = Doses.of(dose).table
        grounds = joint_support(dose, weights) if support is None else support
        parts = [
            self.learner.fit(
                np.column_stack([X, table[:, :place]]),
                np.ascontiguousarray(table[:, place]),
                support=grounds[place],
                weights=weights,
                seed=seed,
                n_threads=n_threads,
            )
            for place in range(table.shape[1])
        ]
        return ChainedDensity(tuple(parts))


def joint_support(dose: AnyDoses, weights: FloatArray | None = None) -> tuple[DoseSupport, ...]:
    """Range, masses and scale of each component."""
    return tuple(dose_support(column, weights) for column in Doses.of(dose).columns)


def any_learner(learner: DensityLearner, dose: AnyDoses) -> DensityLearner:
    """A recipe for doses of one component, or of several."""
    return Chained(learner) if Doses.of(dose).joint else learner
