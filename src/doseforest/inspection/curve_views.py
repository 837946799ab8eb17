"""The methods that show a fitted forest of effects without its training data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.data.feature_places import feature_places
from doseforest.dtypes import FloatArray
from doseforest.inspection import curve_plots, effect_plots
from doseforest.inspection.curve_plots import UnitColours, spread_units
from doseforest.inspection.effect_importance import check_method, correction_importance
from doseforest.inspection.nodes import feature_label
from doseforest.inspection.pictures import DoseMarks, pyplot
from doseforest.treatments.grids import as_doses, check_count

if TYPE_CHECKING:
    from doseforest.prediction.effect_forest import EffectForest


class CurveViews:
    """What can be seen of a forest of effects; `_model` is the forest itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    @property
    def _marks(self) -> DoseMarks:
        """How doses are drawn: by what the correction knows of levels and point masses."""
        for part in self._model.parts:
            basis: Any = getattr(part.correction, "basis", None)
            if hasattr(basis, "levels"):
                return DoseMarks(tuple(basis.levels), continuous=False)
            if hasattr(basis, "masses"):
                return DoseMarks(tuple(basis.masses))
        return DoseMarks()

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
        units: Any = None,
        n_shown: int = 80,
        quantiles: Sequence[float] | None = None,
        color_by: Any = "effect",
        effects: bool = False,
        ax: Any | None = None,
    ) -> Any:
        """Draw the curves of units as thin lines, and their average on top.

        Doses that stand alone, levels and point masses, are dots.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        doses : array of shape (n_doses,), optional
            By default over the forest's grid.
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
        model, marks = self._model, self._marks
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        check_count(n_shown, 1, "n_shown")
        drawn = marks.drawn_doses(model.doses) if doses is None else as_doses(doses)
        everyone = model.dose_response(table, np.append(drawn, model.baseline))
        everyone, start = everyone[:, :-1], everyone[:, -1:]
        if effects:
            everyone = everyone - start
            outcome = f"effect on {marks.outcome} against {marks.dose} {model.baseline:g}"
            marks = DoseMarks(marks.masses, marks.continuous, marks.dose, outcome)
        average = everyone.mean(axis=0)
        if quantiles is not None:
            return curve_plots.plot_curve_bands(
                drawn, everyone, marks, quantiles=quantiles, average=average, ax=ax
            )
        top = int(np.argmax(drawn))
        gain = everyone[:, top] - (0.0 if effects else start[:, 0])
        shown = spread_units(gain, n_shown) if units is None else _checked_units(units, len(table))
        colours = self._colours(color_by, table, gain, float(drawn[top]))
        if colours is not None:
            colours = UnitColours(colours.values[shown], colours.label)
        return curve_plots.plot_unit_curves(
            drawn, everyone[shown], marks, average=average, colours=colours, ax=ax
        )

    def plot_effects(
        self,
        X: Any,
        dose: float | None = None,
        baseline: float | None = None,
        *,
        feature: Any = None,
        ax: Any | None = None,
    ) -> Any:
        """Draw how the effect of a dose differs between units, or how it goes with a feature.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
        dose, baseline : float, optional
            By default the highest dose of the grid, and the forest's baseline.
        feature : name or place of a feature, optional
            Draw effects over it; by default their distribution.
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        model, marks = self._model, self._marks
        table = np.concatenate([block for _, block in model.checked_table(X).blocks()])
        high = float(model.doses.max()) if dose is None else dose
        low = model.baseline if baseline is None else baseline
        values = model.effect(table, high, low)
        label = f"effect on {marks.outcome} of {marks.dose} {high:.4g} against {low:.4g}"
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
        self, color_by: Any, table: FloatArray, gain: FloatArray, dose: float
    ) -> UnitColours | None:
        model = self._model
        if color_by is None:
            return None
        if color_by == "effect" and "effect" not in (model.feature_names or ()):
            marks = self._marks
            label = f"effect of {marks.dose} {dose:.3g} against {model.baseline:.3g}"
            return UnitColours(gain, label)
        place = self._place(color_by, "color_by")
        return UnitColours(table[:, place], feature_label(model.feature_names, place))

    def _place(self, feature: Any, name: str) -> int:
        model = self._model
        places = feature_places([feature], name, model.feature_names, model.n_features)
        assert places is not None  # a feature was given
        return int(places[0])


def _checked_units(units: Any, n_units: int) -> Any:
    places = np.atleast_1d(np.asarray(units))
    wrong = places.ndim != 1 or not len(places) or places.dtype.kind not in "iu"
    if wrong or places.min() < 0 or places.max() >= n_units:
        raise ValueError(
            f"The 'units' parameter must hold rows of X, ints from 0 to {n_units - 1}. "
            f"Got {units!r} instead."
        )
    return places
