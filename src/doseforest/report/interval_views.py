"""The method that shows effects of a few units with their intervals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.report import interval_plots
from doseforest.report.dose_axes import DoseAxes
from doseforest.report.dose_paths import dose_path
from doseforest.report.pictures import pyplot

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest


class IntervalViews:
    """Pictures of intervals; `_model` is the forest itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    @property
    @abstractmethod
    def _axes(self) -> DoseAxes:
        """How doses are drawn."""

    def plot_effect_bands(
        self,
        X: Any,
        units: Any = (0,),
        *,
        doses: Any = None,
        coverage: float = 0.95,
        ax: Any | None = None,
    ) -> Any:
        """Draw effects of a few units against the baseline, with intervals and bands.

        Needs ``inference="bags"``. Lines are the debiased effects that intervals are centred on;
        dashed is what `effect` answers.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        units : sequence of ints, default=(0,)
            Rows of X to draw, at most six.
        doses : array of shape (n_doses,), optional
            By default over the forest's grid. Doses have one component.
        coverage : float, default=0.95
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        model, axes = self._model, self._axes
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        shown = checked_units(units, len(table))
        if model.n_components > 1 or len(shown) > interval_plots.MOST_UNITS:
            raise ValueError(
                f"The 'units' parameter must hold at most {interval_plots.MOST_UNITS} units of a "
                f"forest whose doses have one component. Got {len(shown)} units and "
                f"{model.n_components} component(s) instead."
            )
        path = dose_path(model, axes, doses=doses)
        plain = replace(model, output="default")
        found = plain.effect_inference(table[shown], doses=path.doses)
        curves = plain.dose_response(table[shown], np.append(path.doses, model.baseline))
        outcome = f"effect on {axes.outcome} against {axes.told(model.baseline, 6)}"
        return interval_plots.plot_unit_bands(
            path.places,
            found.values,
            found.interval(coverage),
            found.band(coverage),
            curves[:, :-1] - curves[:, -1:],
            replace(path.marks, outcome=outcome),
            names=[f"unit {unit}" for unit in shown],
            coverage=coverage,
            ax=ax,
        )


def checked_units(units: Any, n_units: int) -> Any:
    """Places of rows of a table, or ValueError."""
    places = np.atleast_1d(np.asarray(units))
    wrong = places.ndim != 1 or not len(places) or places.dtype.kind not in "iu"
    if wrong or places.min() < 0 or places.max() >= n_units:
        raise ValueError(
            f"The 'units' parameter must hold rows of X, ints from 0 to {n_units - 1}. "
            f"Got {units!r} instead."
        )
    return places
