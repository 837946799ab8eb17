"""Pictures of a fitted forest beside its training rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.estimator.unit_support import supported_shares
from doseforest.report.curve_plots import plot_average_curve
from doseforest.report.dose_axes import DoseAxes, fitted_axes
from doseforest.report.dose_paths import dose_path
from doseforest.report.forest_plots import ForestPlots
from doseforest.report.overlap import overlap_plots
from doseforest.report.overlap.overlap_report import report_overlap
from doseforest.report.pictures import dose_strip, pyplot

if TYPE_CHECKING:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

DOSES_AT_ONCE = 64  # of a surface, as many as a grid has
MOST_JUDGED = 2000  # units whose support is looked at


class PopulationPlots(ForestPlots):
    """Pictures of a forest beside its training rows: ``forest.plot``. They need matplotlib.

    Parameters
    ----------
    forest : GeneralizedCausalForest
        Fitted.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="none",
    ...     baseline=0.0, random_state=0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> ax = forest.plot.average_dose_response()  # doctest: +SKIP
    """

    def __init__(self, forest: GeneralizedCausalForest) -> None:
        super().__init__(forest)
        self._fitted = forest._fitted

    @property
    def _axes(self) -> DoseAxes:
        return fitted_axes(self._fitted)

    def average_dose_response(
        self,
        doses: Any = None,
        *,
        component: int | None = None,
        at: Any = None,
        level: float = 0.95,
        show_doses: bool = True,
        ax: Any | None = None,
    ) -> Any:
        """Draw the average curve with its pointwise band; of arms, those of all side by side.

        Parameters
        ----------
        doses : array of shape (n_doses,), optional
            By default over the forest's grid.
        component : int, optional
            Which component of the dose changes, where it has several. For two components at once
            there is `surface`.
        at : array of shape (n_components,), optional
            What the other components are held at; by default the baseline.
        level : float, default=0.95
            Coverage of the intervals, one for each dose: value and standard error of
            `PopulationAverages.dose_response`.
        show_doses : bool, default=True
            Bars at the lower edge: where the observed doses are.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
        """
        pyplot()
        path = dose_path(self._model, self._axes, doses=doses, component=component, at=at)
        result, rows = self._fitted.averager.average_curve(path.doses), self._fitted.rows
        curve = replace(
            result,
            doses=path.x,
            values=path.broken(result.values),
            standard_errors=path.broken(result.standard_errors),
        )
        ax = plot_average_curve(curve, path.marks, level=level, ax=ax)
        if show_doses:
            places, seen = path.observed(rows.dose)
            weights = None if rows.weights is None else rows.weights[seen]
            dose_strip(ax, places, path.marks, weights)
        path.label(ax)
        return ax

    def overlap(self, doses: Any = None, *, ax: Any | None = None) -> Any:
        """Draw who could have had which dose, and the rows that speak about it.

        See `overlap_report`, which has four pictures: ``overlap_report().plot()``.

        Parameters
        ----------
        doses : array of shape (n_doses,), optional
            By default over the forest's grid.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        pyplot()
        return overlap_plots.plot_overlap(report_overlap(self._fitted, doses), ax=ax)

    def weights(self, *, ax: Any | None = None) -> Any:
        """Draw the distribution of the treatment weights.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture.
        """
        pyplot()
        return overlap_plots.plot_weights(report_overlap(self._fitted), ax=ax)

    def _average_surface(self, doses: Doses) -> FloatArray:
        averager = self._fitted.averager
        parts = np.array_split(doses.values, -(-len(doses) // DOSES_AT_ONCE))
        return np.concatenate([averager.average_curve(Doses(part)).values for part in parts])

    def _supported_share(self, table: FloatArray | None, doses: Doses) -> FloatArray:
        rows = self._fitted.rows
        seen = rows.treatment_features if table is None else table[:, rows.treatment_columns]
        places = np.unique(np.linspace(0, len(seen) - 1, MOST_JUDGED).round().astype(int))
        weights = None if table is not None or rows.weights is None else rows.weights[places]
        fitted = self._fitted
        return supported_shares(fitted.overlap, seen[places], doses.values, fitted.grounds, weights)
