"""Fitted outcome models and how they answer; their fitting is in `outcome_stack`.

Nothing here or below imports a library that fits: a saved model predicts without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import MAX_COMPONENTS
from doseforest.doses.stored_values import FileChecks
from doseforest.nuisance.outcome.curve_process import CurveProcess
from doseforest.nuisance.outcome.spline_model import SplineCore
from doseforest.nuisance.outcome.tree_ensemble import TreeEnsemble

CHECKS = FileChecks("outcome model")
MOST_LETTERS = 200  # of a member's name in an error


class OutcomeModel(Protocol):
    """A fitted model of the mean outcome given covariates and dose."""

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose, shape (n_rows, n_doses).

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            NaN is missing.
        doses : array of shape (n_doses,) or (n_rows, n_doses)
            A grid, or each row's own doses.
        n_threads : int, default=1
            The number does not change a bit of the result.
        """


class SizedModel(OutcomeModel, Protocol):
    """An outcome model that says which doses it is of, as all do that come from a file."""

    @property
    def dose_components(self) -> set[int]:
        """Numbers of components of the doses that its parts are of; one if they fit."""


# What is made of other models is stored by their numbers in a file: `to_parts` gives plain values
# and asks for the number of each part, `from_parts` asks for the part of each number.
Numbered = Callable[[Any], int]
Part = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class BoostedCore:
    """The spline core plus what was fitted to its residuals: boosted trees, or a process."""

    core: SplineCore
    rest: TreeEnsemble | CurveProcess

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        return self.from_core(self.core.curves(X, doses), X, doses, n_threads)

    def from_core(
        self, values: FloatArray, X: FloatArray, doses: FloatArray, n_threads: int
    ) -> FloatArray:
        """The same from the curves of the core, which other members may share."""
        values = values + self.rest.curves(X, doses, n_threads=n_threads)
        return np.clip(values, 0.0, 1.0) if self.core.binary else values

    @property
    def dose_components(self) -> set[int]:
        """Numbers of components of the doses that the parts are of."""
        return self.core.dose_components | self.rest.dose_components

    def to_parts(self, number: Numbered) -> dict[str, Any]:
        """Plain values, with the numbers of the parts."""
        return {"core": number(self.core), "trees": number(self.rest)}

    @classmethod
    def from_parts(cls, values: Mapping[str, Any], part: Part, n_features: int) -> BoostedCore:
        """Put core and trees together again."""
        core, rest = part(values["core"]), part(values["trees"])
        CHECKS.require(
            isinstance(core, SplineCore) and isinstance(rest, TreeEnsemble | CurveProcess),
            "corrects something else than a spline core, or by no trees and no process",
        )
        return cls(core, rest)


@dataclass(frozen=True, slots=True)
class CheckedModel:
    """A user's model, its answers checked; those for a binary outcome are kept to [0, 1]."""

    name: str  # of the member of the stack
    model: Any  # with `curves(X, doses)`
    binary: bool
    n_features: int
    n_components: int  # of a dose

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None])[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        values = np.asarray(self.model.curves(X, doses), np.float64)
        shape = len(X), doses.shape[-1]
        if values.shape != shape:
            raise ValueError(
                f"The 'outcome_model' parameter must predict curves of shape {shape}. "
                f"Got {values.shape} from its member {self.name!r} instead."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                "The 'outcome_model' parameter must predict finite numbers. "
                f"Got {values[~np.isfinite(values)][0]} from its member {self.name!r} instead."
            )
        return np.clip(values, 0.0, 1.0) if self.binary else values

    @property
    def dose_components(self) -> set[int]:
        """Number of components of the doses that it is of."""
        return {self.n_components}

    def to_parts(self, number: Numbered) -> dict[str, Any]:
        """Plain values, with the number of the user's model."""
        return {
            "name": self.name,
            "model": number(self.model),
            "binary": self.binary,
            "n_components": self.n_components,
        }

    @classmethod
    def from_parts(cls, values: Mapping[str, Any], part: Part, n_features: int) -> CheckedModel:
        """Put the checks around the user's model again."""
        name, model = values["name"], part(values["model"])
        CHECKS.require(isinstance(name, str) and len(name) <= MOST_LETTERS, "has no proper name")
        CHECKS.require(not isinstance(model, Stack | CheckedModel), "checks what is checked")
        return cls(
            name,
            model,
            CHECKS.flag(values, "binary"),
            n_features,
            CHECKS.count(values, "n_components", 1, MAX_COMPONENTS),
        )


@dataclass(frozen=True, slots=True)
class Stack:
    """A convex combination of members.

    Examples
    --------
    >>> from doseforest.nuisance.outcome.spline_core import fit_spline_core
    >>> x, t = np.zeros((50, 1)), np.linspace(0, 9, 50)
    >>> stack = Stack(
    ...     members={"up": fit_spline_core(x, t, t), "down": fit_spline_core(x, t, -t)},
    ...     weights={"up": 0.75, "down": 0.25},
    ... )
    >>> stack.curves(x[:2], np.array([2.0, 4.0])).round(3)
    array([[1., 2.],
           [1., 2.]])
    """

    members: Mapping[str, OutcomeModel]
    weights: Mapping[str, float]  # not negative, adding up to 1

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose of a grid, or at its own doses."""
        total = np.zeros((len(X), doses.shape[-1]))
        core: OutcomeModel | None = None
        core_curves = total  # of the last core: members share one
        for name, weight in self.weights.items():
            if weight <= 0:
                continue
            member = self.members[name]
            boosted = member if isinstance(member, BoostedCore) else None
            start = member if boosted is None else boosted.core
            if start is not core:
                core, core_curves = start, start.curves(X, doses, n_threads=n_threads)
            curves = core_curves
            if boosted is not None:
                curves = boosted.from_core(core_curves, X, doses, n_threads)
            total += weight * curves
        return total

    @property
    def dose_components(self) -> set[int]:
        """Numbers of components of the doses that the members are of; one if they fit."""
        members: Mapping[str, Any] = self.members
        return set().union(*(own.dose_components for own in members.values()))

    def to_parts(self, number: Numbered) -> dict[str, Any]:
        """Names, numbers and shares of the members that have a share."""
        # A list: answers are added in the order of the members, and a JSON object may lose it.
        # Members without a share answer nothing and need no room.
        used = {name: float(share) for name, share in self.weights.items() if share > 0}
        return {
            "members": [[name, number(self.members[name]), share] for name, share in used.items()]
        }

    @classmethod
    def from_parts(cls, values: Mapping[str, Any], part: Part, n_features: int) -> Stack:
        """Put the members together again."""
        members: dict[str, OutcomeModel] = {}
        shares: dict[str, float] = {}
        for name, place, share in values["members"]:
            named = isinstance(name, str) and name not in members
            CHECKS.require(named, "has members without a name")
            counted = isinstance(share, float) and 0 <= share <= 1
            CHECKS.require(counted, "has a member without a share")
            members[name], shares[name] = part(place), share
            CHECKS.require(hasattr(members[name], "dose_components"), "has an unchecked member")
            # Stacks of stacks of stacks would double the work with every line of a description.
            CHECKS.require(not isinstance(members[name], Stack), "has a stack in a stack")
        CHECKS.require(abs(sum(shares.values()) - 1) < 1e-6, "has shares that do not add up to 1")
        return cls(members, shares)
