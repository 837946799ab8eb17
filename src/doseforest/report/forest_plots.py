"""Pictures of a fitted forest, without its training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.feature_places import feature_places
from doseforest.doses.curve_effects import one_dose
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import check_count, check_doses
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.evaluation.importance import effect_importance
from doseforest.report import curve_plots, effect_plots, interval_plots
from doseforest.report.curve_plots import UnitColours, spread_units
from doseforest.report.dose_axes import DoseAxes, known_axes
from doseforest.report.dose_paths import dose_path
from doseforest.report.pictures import pyplot
from doseforest.report.surface_doses import (
    checked_unit,
    coded_units,
    mean_surface,
    surface_axes,
)
from doseforest.report.surface_plot import plot_surface

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest, EffectMethods


class ForestPlots:
    """Pictures of a fitted forest: ``forest.plot``. They need matplotlib.

    Parameters
    ----------
    forest : GeneralizedCausalForest or EffectForest
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
    >>> ax = forest.model_.plot.effects(data.X, 1.0)  # doctest: +SKIP
    """

    def __init__(self, forest: EffectMethods) -> None:
        self._forest = forest
        self._model: EffectForest = forest._model

    @property
    def _axes(self) -> DoseAxes:
        """How doses are drawn: by what the correction knows of levels, point masses and arms."""
        bases = [getattr(part.correction, "basis", None) for part in self._model.parts]
        return known_axes(bases, self._model.doses)

    def dose_response(
        self,
        X: Any,
        *,
        doses: Any = None,
        component: int | None = None,
        at: Any = None,
        units: Any = None,
        n_shown: int = 80,
        quantiles: Sequence[float] | None = None,
        color_by: Any = "effect",
        effects: bool = False,
        ax: Any | None = None,
    ) -> Any:
        """Draw the curves of units as thin lines, and their average on top.

        Doses that stand alone, levels and point masses, are dots. Arms are drawn side by side,
        each over its doses.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        doses : array of shape (n_doses,), optional
            By default over the forest's grid. Values of the component that changes, or, for arms,
            shape (n_doses, 2).
        component : int, optional
            Which component of the dose changes, where it has several; see `surface` for two
            at once. Of arms: 1, for the curves of one arm.
        at : array of shape (n_components,), optional
            What the other components are held at; by default the baseline.
        units : sequence of ints, optional
            Rows of X to draw; by default `n_shown` that stand for all, equally spaced in the order
            of their effect. The average is always over all units of X.
        n_shown : int, default=80
            Number of lines.
        quantiles : sequence of floats, optional
            Draw bands between these quantiles of the units' curves in place of lines.
        color_by : "effect", feature or None, default="effect"
            Name or place of a feature, or the effect of the highest dose against the baseline.
        effects : bool, default=False
            Draw effects against the baseline in place of outcomes.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
        """
        pyplot()
        model, axes = self._model, self._axes
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        check_count(n_shown, 1, "n_shown")
        path = dose_path(model, axes, doses=doses, component=component, at=at)
        marks = path.marks
        asked = np.append(path.doses, model.baseline)
        everyone = np.asarray(model.dose_response(coded_units(model, table), asked))
        everyone, start = everyone[:, :-1], everyone[:, -1:]
        if effects:
            everyone = everyone - start
            outcome = f"effect on {marks.outcome} against {axes.told(model.baseline, 6)}"
            marks = replace(marks, outcome=outcome)
        average = path.broken(everyone.mean(axis=0))
        if quantiles is not None:
            curves = path.broken(everyone)
            ax = curve_plots.plot_curve_bands(
                path.x, curves, marks, quantiles=quantiles, average=average, ax=ax
            )
            path.label(ax)
            return ax
        top = int(np.argmax(path.places))
        gain = everyone[:, top] - (0.0 if effects else start[:, 0])
        shown = spread_units(gain, n_shown) if units is None else checked_units(units, len(table))
        colours = self._colours(color_by, table, gain, path.doses[top])
        if colours is not None:
            colours = UnitColours(colours.values[shown], colours.label)
        curves = path.broken(everyone[shown])
        ax = curve_plots.plot_unit_curves(
            path.x, curves, marks, average=average, colours=colours, ax=ax
        )
        path.label(ax)
        return ax

    def effects(
        self,
        X: Any,
        dose: Any = None,
        baseline: Any = None,
        *,
        feature: Any = None,
        ax: Any | None = None,
    ) -> Any:
        """Draw how the effect of a dose differs between units, or how it goes with a feature.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose, baseline : float or array of shape (n_components,), optional
            By default the last dose of the grid, which is the highest, and the forest's baseline.
        feature : name or place of a feature, optional
            Draw effects over it; by default their distribution.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
        """
        pyplot()
        model, axes = self._model, self._axes
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        width = model.n_components
        high = one_dose(model.doses[-1] if dose is None else dose, "dose", width)
        low = one_dose(model.baseline if baseline is None else baseline, "baseline", width)
        values = np.asarray(model.effect(coded_units(model, table), high, low))
        label = f"effect on {axes.outcome} of {axes.told(high)} against {dose_text(low, 4)}"
        if feature is None:
            return effect_plots.plot_effect_distribution(values, label=label, ax=ax)
        place = self._place(feature, "feature")
        return effect_plots.plot_effects_by_feature(
            values,
            table[:, place],
            label=label,
            name=feature_label(model.feature_names, place),
            ax=ax,
        )

    def importance(
        self, importance: Any = "gain", *, n_shown: int = 15, ax: Any | None = None
    ) -> Any:
        """Draw the importance of the most important features as bars.

        Parameters
        ----------
        importance : "gain", "permutation", or the answer of `effect_importance`, default="gain"
            What to draw; "permutation" predicts all rows many times, which takes longer.
        n_shown : int, default=15
            Number of features.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
        """
        pyplot()
        answer = importance
        if not hasattr(answer, "ranked"):
            answer = effect_importance(self._forest, importance)
        return effect_plots.plot_importances(answer, n_shown=n_shown, ax=ax)

    def effect_bands(
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
            Units.
        units : sequence of ints, default=(0,)
            Rows of X to draw, at most six.
        doses : array of shape (n_doses,), optional
            By default over the forest's grid. Doses have one component.
        coverage : float, default=0.95
            Chance with which each interval, and each band, covers the truth.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
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
        asked = coded_units(plain, table[shown])
        result = plain.intervals.effect(asked, doses=path.doses)
        curves = plain.dose_response(asked, np.append(path.doses, model.baseline))
        outcome = f"effect on {axes.outcome} against {axes.told(model.baseline, 6)}"
        return interval_plots.plot_unit_bands(
            path.places,
            result.values,
            result.interval(coverage),
            result.band(coverage),
            curves[:, :-1] - curves[:, -1:],
            replace(path.marks, outcome=outcome),
            names=[f"unit {unit}" for unit in shown],
            coverage=coverage,
            ax=ax,
        )

    def surface(
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
            robust, see `PopulationAverages.dose_response`.
        unit : int, optional
            Row of X to draw in place of the mean.
        doses : pair of arrays, optional
            Values of either component; by default 17 of each over the forest's grid.
        effects : bool, default=False
            Draw effects against the baseline in place of outcomes.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The picture; ``ax.figure.savefig("picture.png")`` writes it.
        """
        pyplot()
        model, axes = self._model, self._axes
        first, second = surface_axes(model, axes, doses)
        grid = Doses.product([first, second])
        asked = check_doses(Doses(np.append(grid, model.baseline)), model.support)
        if X is None:
            if unit is not None:
                raise ValueError(
                    "The 'X' parameter must be given where 'unit' is a row of it. Got None instead."
                )
            table, values = None, self._average_surface(asked)
        else:
            rows = np.concatenate([block for _, block in model.checked_table(X).blocks()])
            table = rows if unit is None else rows[[checked_unit(unit, len(rows))]]
            values = mean_surface(model, table, asked.values)
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

    def _average_surface(self, doses: Doses) -> FloatArray:
        """Average outcomes of the training population, (n_doses,)."""
        raise ValueError(
            "The 'X' parameter must be given: a forest without its training rows draws units "
            "alone. Got None instead."
        )

    def _supported_share(self, table: FloatArray | None, doses: Doses) -> FloatArray | None:
        """Share of units (by default the training rows) that could have had each dose."""
        return None

    def _colours(
        self, color_by: Any, table: FloatArray, gain: FloatArray, dose: Any
    ) -> UnitColours | None:
        model = self._model
        if color_by is None:
            return None
        if color_by == "effect" and "effect" not in (model.feature_names or ()):
            if np.ptp(gain) <= 1e-9 * np.abs(gain).max():
                return None  # the same for all units, but for rounding
            against = dose_text(model.baseline, 3)
            return UnitColours(gain, f"effect of {self._axes.told(dose, 3)} against {against}")
        place = self._place(color_by, "color_by")
        return UnitColours(table[:, place], feature_label(model.feature_names, place))

    def _place(self, feature: Any, name: str) -> int:
        model = self._model
        places = feature_places([feature], name, model.feature_names, model.n_features)
        assert places is not None  # a feature was given
        return int(places[0])


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
