"""The method that draws the outcome over two components of the dose."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.grids import DoseRange, as_doses, check_doses
from doseforest.doses.vectors import components, grid_of
from doseforest.report.dose_axes import DoseAxes
from doseforest.report.pictures import DoseMarks, pyplot
from doseforest.report.surface_plot import plot_surface

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest

N_POINTS = 17  # along each component


class SurfaceViews:
    """Surfaces of a forest of effects; `_model` is the forest itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    @property
    @abstractmethod
    def _axes(self) -> DoseAxes:
        """How doses are drawn."""

    def plot_surface(
        self,
        X: Any = None,
        *,
        unit: int | None = None,
        doses: Any = None,
        effects: bool = False,
        ax: Any | None = None,
    ) -> Any:
        """Draw the outcome over two quantities: the average, that of units, or that of one unit.

        Hatched where fewer than a tenth of the units could have had both doses, which a forest
        without its training rows cannot tell. Point masses are left out.

        Parameters
        ----------
        X : table of shape (n_units, n_features), optional
            Units whose mean is drawn; by default the average over the training population, doubly
            robust, see `average_dose_response`.
        unit : int, optional
            Row of X to draw in place of the mean.
        doses : pair of arrays, optional
            Values of either component; by default 17 of each over the forest's grid.
        effects : bool, default=False
            Draw effects against the baseline in place of outcomes.
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        model, axes = self._model, self._axes
        first, second = _surface_axes(model, axes, doses)
        grid = grid_of([first, second])
        asked = check_doses(np.append(grid, model.baseline), model.support)
        if X is None:
            if unit is not None:
                raise ValueError(
                    "The 'X' parameter must be given where 'unit' is a row of it. Got None instead."
                )
            table, values = None, self._average_surface(asked)
        else:
            rows = np.concatenate([block for _, block in model.checked_table(X).blocks()])
            table = rows if unit is None else rows[[_checked_unit(unit, len(rows))]]
            values = _mean_surface(model, table, asked)
        drawn = values[:-1] - (values[-1] if effects else 0.0)
        share = self._supported_share(table, grid)
        shape = (len(first), len(second))
        what = axes.outcome
        if effects:
            what = f"effect on {what} against {axes.told(model.baseline)}"
        if unit is None:
            what = f"average {what}"
        return plot_surface(
            first,
            second,
            drawn.reshape(shape),
            labels=(axes.labels[0], axes.labels[1], what),
            supported=None if share is None else share.reshape(shape),
            ax=ax,
        )

    def _average_surface(self, doses: DoseArray) -> FloatArray:
        """Average outcomes of the training population, (n_doses,)."""
        raise ValueError(
            "The 'X' parameter must be given: a forest without its training rows draws units "
            "alone. Got None instead."
        )

    def _supported_share(self, table: FloatArray | None, doses: DoseArray) -> FloatArray | None:
        """Share of units (by default the training rows) that could have had each dose."""
        return None


def _surface_axes(model: EffectForest, axes: DoseAxes, doses: Any) -> tuple[FloatArray, FloatArray]:
    """Values of both components."""
    levels = [own.dose for own in axes.parts if not own.continuous]
    if model.n_components != 2 or axes.arms or levels:
        if model.n_components == 1:
            got, cure = "one component", "plot_dose_response"
        elif axes.arms:
            got, cure = "arms", "plot_dose_response, which draws them side by side,"
        else:
            got = f"levels of {levels[0]}" if levels else f"{model.n_components} components"
            cure = "plot_dose_response with 'component' and 'at'"
        raise ValueError(
            f"The dose must have two components, both quantities, for plot_surface. Got {got} "
            f"instead: use {cure}."
        )
    if doses is None:
        table = components(model.doses)
        first, second = (
            _spread(np.unique(table[:, k]), own, model.ranges[k])
            for k, own in enumerate(axes.parts)
        )
        return first, second
    if isinstance(doses, str) or not hasattr(doses, "__len__") or len(doses) != 2:
        raise ValueError(
            "The 'doses' parameter of plot_surface must be a pair: values of either component. "
            f"Got {doses!r} instead."
        )
    return as_doses(doses[0], "doses"), as_doses(doses[1], "doses")


def _spread(values: FloatArray, marks: DoseMarks, observed: DoseRange) -> FloatArray:
    """Values at equal distances over those of a grid, beside masses."""
    own = values[~np.isin(values, marks.masses)]
    low, high = (own[0], own[-1]) if len(own) > 1 else (observed.low, observed.high)
    return np.linspace(low, high, N_POINTS)


def _checked_unit(unit: Any, n_units: int) -> int:
    wrong = not isinstance(unit, Integral) or isinstance(unit, bool)
    if wrong or not 0 <= unit < n_units:
        raise ValueError(
            f"The 'unit' parameter must be a row of X, an int from 0 to {n_units - 1}. "
            f"Got {unit!r} instead."
        )
    return int(unit)


def _mean_surface(model: EffectForest, table: FloatArray, doses: DoseArray) -> FloatArray:
    """Mean outcome of units at each dose, in blocks that memory does not feel."""
    total = np.zeros(len(doses))
    for _, block in model.checked_table(table).blocks():
        total += model.curves(block, doses).sum(axis=0)
    mean: FloatArray = total / len(table)
    return mean
