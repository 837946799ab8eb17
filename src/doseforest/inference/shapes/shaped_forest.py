"""Forests whose curves have a shape: every unit's curve is projected on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.grids import DoseRange, check_doses
from doseforest.engine.forest import Forest
from doseforest.engine.splits.distances import trapezoid_weights
from doseforest.estimator.effect_forest import CorrectedOutcome, EffectForest
from doseforest.inference.shapes.shape_projection import project
from doseforest.inference.shapes.shapes import (
    Shape,
    check_one_component,
    checked_shape,
    shape_constraints,
)
from doseforest.nuisance.outcome.outcome_models import OutcomeModel

LEAST_GAP = 1e-6  # of the range: closer doses of a grid are one


@dataclass(frozen=True, slots=True, eq=False)
class ShapedCurves:
    """A correction that gives the corrected curves of a forest a shape.

    The curves are projected on a grid, with the weights of an integral over the dose, and are
    straight between its doses and beyond them: there the shape holds as on the grid.
    """

    parts: tuple[CorrectedOutcome, ...]  # whose mean curves are projected
    shape: tuple[str, ...]
    grid: FloatArray  # (n_doses,) ascending
    bounded: bool  # outcomes are kept to [0, 1]

    @property
    def basis(self) -> Any:
        """Functions of the dose of what is projected, where it has some."""
        return getattr(self.parts[0].correction, "basis", None)

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Shaped curves, shape (n_units, n_doses); `outcome` is among the parts already."""
        total = np.zeros((len(X), len(self.grid)))
        for part in self.parts:
            total += part.correction.curves(part.outcome, X, splits, self.grid, n_threads)
        mean = total / len(self.parts)
        shaped = shaped_values(np.clip(mean, 0.0, 1.0) if self.bounded else mean, self)
        asked = doses if doses.ndim == 2 else np.broadcast_to(doses, (len(X), len(doses)))
        return straight_between(self.grid, shaped, asked)

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """Forests of all parts."""
        return [pair for part in self.parts for pair in part.correction.forest_shares()]

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same correction with other forests in the place of its own."""
        changed = (
            replace(part, correction=part.correction.with_forests(change)) for part in self.parts
        )
        return replace(self, parts=tuple(changed))


def shaped_values(curves: FloatArray, shaped: ShapedCurves) -> FloatArray:
    """Nearest curves of the shape on its grid."""
    constraints = shape_constraints(shaped.shape, shaped.grid)
    return project(curves, constraints, 1 / trapezoid_weights(shaped.grid))


def shaped_forest(forest: Any, shape: Shape, doses: Any = None) -> EffectForest:
    """Return a forest like the one given, the curves of which have a shape.

    Each unit's curve is replaced by the nearest one of the shape: in the mean square over the
    doses of the grid, no curve of the shape is further from it than from the curve before. Where
    the truth has the shape, the error over that grid can only fall.

    Parameters
    ----------
    forest : GeneralizedCausalForest or EffectForest
        Fitted; of doses of one component.
    shape : str or pair of str
        "increasing" or "decreasing", "concave" or "convex", or one of each.
    doses : array of shape (n_doses,), optional
        Grid on which curves are projected; by default that of the forest. The ends of the support
        are added. Between its doses curves are straight.

    Returns
    -------
    EffectForest
        It answers all that the forest does for new units: `dose_response`, `effect`, … A binary
        outcome is kept to [0, 1] afterwards. It cannot be saved; save the forest itself, and shape
        what `load_forest` reads.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["randomised"].draw(n=300, seed=300)
    >>> forest = GeneralizedCausalForest(
    ...     n_trees=40, outcome_model=LinearRegression(), baseline=5.0, random_state=0)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment)
    >>> rising = shaped_forest(forest, "increasing").dose_response(data.X)
    >>> bool((np.diff(rising) > -1e-9).all())
    True
    """
    model: EffectForest = forest._model
    check_one_component(model.n_components, "shapes")
    names = checked_shape(shape)
    given = model.doses
    if doses is not None:
        checked = check_doses(dose_table(doses, 1)[0], model.support)
        model.require_levels(doses=checked)
        given = checked.values
    assert isinstance(model.support, DoseRange)  # of one component
    grid = np.unique(np.concatenate([[model.support.low], given, [model.support.high]]))
    grid = grid[np.append(True, np.diff(grid) > LEAST_GAP * np.ptp(grid))]
    shape_constraints(names, grid)  # raises where doses are too few
    curves = ShapedCurves(model.parts, names, grid, model.bounded)
    return replace(model, parts=(CorrectedOutcome(model.parts[0].outcome, curves),))


def straight_between(grid: FloatArray, curves: FloatArray, doses: FloatArray) -> FloatArray:
    """Curves on a grid at a table of doses, both (n_units, ...); straight beyond the grid too.

    Examples
    --------
    >>> straight_between(np.array([0.0, 2.0]), np.array([[0.0, 4.0]]), np.array([[0.5, 3.0]]))
    array([[1., 6.]])
    """
    right = np.clip(np.searchsorted(grid, doses), 1, len(grid) - 1)
    share = (doses - grid[right - 1]) / (grid[right] - grid[right - 1])
    low = np.take_along_axis(curves, right - 1, axis=1)
    return low + share * (np.take_along_axis(curves, right, axis=1) - low)
