"""The methods that show a fitted forest of effects without its training data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.data.feature_places import feature_places
from doseforest.doses.curve_effects import one_dose
from doseforest.doses.grids import check_count
from doseforest.doses.vectors import dose_text
from doseforest.engine.look_inside.node_names import feature_label
from doseforest.estimator.effect_importance import check_method, correction_importance
from doseforest.report import curve_plots, effect_plots
from doseforest.report.curve_plots import UnitColours, spread_units
from doseforest.report.dose_axes import DoseAxes, known_axes
from doseforest.report.dose_paths import dose_path
from doseforest.report.interval_views import IntervalViews, checked_units
from doseforest.report.pictures import pyplot
from doseforest.report.surface_views import SurfaceViews

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest


class CurveViews(IntervalViews, SurfaceViews):
    """What can be seen of a forest of effects; `_model` is the forest itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    @property
    def _axes(self) -> DoseAxes:
        """How doses are drawn: by what the correction knows of levels, point masses and arms."""
        bases = [getattr(part.correction, "basis", None) for part in self._model.parts]
        return known_axes(bases, self._model.doses)

    def feature_importance(
        self,
        method: str = "gain",
        *,
        decay: float | Sequence[float] = 0.0,
        max_depth: int | None = None,
    ) -> Any:
        """Share of each feature in the gains of the correction's forests, adding up to 1.

        Over all forests of all rounds, each counted by its share in the correction. The outcome
        model is not among them: a feature that it has used up has nothing left to gain here, and
        where forests are left out all shares are 0. For importance in the whole curve ask the
        fitted `GeneralizedCausalForest` for ``method="permutation"``.

        Parameters
        ----------
        method : {"gain"}, default="gain"
        decay, max_depth
            Weights of splits by depth, see `CurveForest.feature_importance`.

        Returns
        -------
        FeatureImportance
            ``values``, ``names``, and ``ranked()``.
        """
        check_method(method)
        if method == "permutation":
            raise ValueError(
                "The 'method' parameter must be 'gain' for a forest without its training rows. "
                "Got 'permutation' instead: ask the GeneralizedCausalForest that was fitted."
            )
        return correction_importance(self._model, decay=decay, max_depth=max_depth)

    def plot_dose_response(
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
        each over its own doses.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        doses : array of shape (n_doses,), optional
            By default over the forest's grid. Values of the component that changes, or, for arms,
            shape (n_doses, 2).
        component : int, optional
            Which component of the dose changes, where it has several; see `plot_surface` for two
            at once. Of arms: 1, for the curves of one arm.
        at : array of shape (n_components,), optional
            What the other components are held at; by default the baseline.
        units : sequence of ints, optional
            Rows of X to draw; by default `n_shown` that stand for all, equally spaced in the order
            of their effect. The average is always over all units of X.
        n_shown : int, default=80
        quantiles : sequence of floats, optional
            Draw bands between these quantiles of the units' curves in place of lines.
        color_by : "effect", feature or None, default="effect"
            Name or place of a feature, or the effect of the highest dose against the baseline.
        effects : bool, default=False
            Draw effects against the baseline in place of outcomes.
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        model, axes = self._model, self._axes
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        check_count(n_shown, 1, "n_shown")
        path = dose_path(model, axes, doses=doses, component=component, at=at)
        marks = path.marks
        asked = np.append(path.doses, model.baseline)
        everyone = np.asarray(model.dose_response(table, asked))
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

    def plot_effects(
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
        dose, baseline : float or array of shape (n_components,), optional
            By default the last dose of the grid, which is the highest, and the forest's baseline.
        feature : name or place of a feature, optional
            Draw effects over it; by default their distribution.
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        model, axes = self._model, self._axes
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        high = model.doses[-1] if dose is None else one_dose(dose, "dose", model.n_components)
        low = model.baseline
        if baseline is not None:
            low = one_dose(baseline, "baseline", model.n_components)
        values = np.asarray(model.effect(table, high, low))
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

    def plot_importance(
        self, importance: Any = "gain", *, n_shown: int = 15, ax: Any | None = None
    ) -> Any:
        """Draw the importance of the most important features as bars.

        Parameters
        ----------
        importance : "gain", "permutation", or what `feature_importance` has answered
        n_shown : int, default=15
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        answer = importance
        if not hasattr(answer, "ranked"):
            answer = self.feature_importance(importance)
        return effect_plots.plot_importances(answer, n_shown=n_shown, ax=ax)

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
