"""The methods that show a fitted forest of effects beside its training data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from doseforest.base.dtypes import DoseArray, FloatArray
from doseforest.doses.bases.arms import ArmsBasis, has_arms
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.grids import check_doses
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.estimator.effect_importance import check_method
from doseforest.estimator.unit_support import supported
from doseforest.evaluation.permutation_importance import permutation_importance
from doseforest.report import overlap_plots
from doseforest.report.curve_plots import plot_average_curve
from doseforest.report.curve_views import CurveViews
from doseforest.report.dose_axes import DoseAxes, observed_axes
from doseforest.report.dose_paths import dose_path
from doseforest.report.model_summary import ModelSummary, summarise
from doseforest.report.overlap_components import grounds_of
from doseforest.report.overlap_report import WEAK_BELOW, OverlapReport, report_overlap
from doseforest.report.pictures import dose_strip, pyplot

if TYPE_CHECKING:
    from doseforest.estimator.averages.averaging import Averager
    from doseforest.estimator.fit_plan import FitPlan
    from doseforest.estimator.trained_parts import TrainedPart
    from doseforest.nuisance.treatment.conditional_density import ConditionalDensity

DOSES_AT_ONCE = 64  # of a surface, as many as a grid has
MOST_JUDGED = 2000  # units whose support is looked at


class EffectViews(CurveViews):
    """What can be seen of a `GeneralizedCausalForest`.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["randomised"].draw(n=300, seed=0)
    >>> forest = GeneralizedCausalForest(
    ...     n_trees=80, outcome_model=LinearRegression(), random_state=0, n_jobs=1)
    >>> forest = forest.fit(data.X, data.y, treatment=data.treatment)
    >>> bool(forest.overlap_report().supported.min() > 0.9)
    True
    >>> print(forest.summary())  # doctest: +ELLIPSIS
    GeneralizedCausalForest...
    """

    doses_: FloatArray
    baseline_: Any
    outcome_weights_: dict[str, float]
    rounds_: tuple[dict[str, Any], ...]
    seconds_: dict[str, float]
    correction: str
    _parts: tuple[TrainedPart, ...]
    _fit_plan: FitPlan
    _ground: Any  # DoseSupport, or one for each component
    _overlap: ConditionalDensity
    _labels: tuple[tuple[str, ...], str]  # of the components of the dose, and of the outcome

    @abstractmethod
    def average_dose_response(self, doses: Any = None) -> AverageDoseResponse:
        """Average outcome at each dose."""

    @abstractmethod
    def _averages(self) -> Averager:
        """What averages are made of."""

    @property
    def _axes(self) -> DoseAxes:
        check_is_fitted(self)
        return observed_axes(
            grounds_of(self._ground),
            *self._labels,
            isinstance(self._fit_plan.basis, ArmsBasis) or has_arms(self._parts[0].rows.dose),
        )

    def overlap_report(self, doses: Any = None, *, weak_below: float = WEAK_BELOW) -> OverlapReport:
        """Whether the data can answer: who could have had which dose, weights, balance.

        Parameters
        ----------
        doses : array of shape (n_doses,) or (n_doses, n_components), optional
            By default the forest's grid and the point masses of the dose.
        weak_below : float, default=0.1
            A unit has weak positivity where the variance of its dose given its covariates is
            below this share of the variance of all doses. Of several components each is judged
            given those before it; the dose of an arm against the doses of that arm.

        Returns
        -------
        OverlapReport
            ``print(report)``, ``report.plot()``, ``report.messages``: what is wrong and the cure.

        Notes
        -----
        Densities are those of the treatment weights, out of fold, where these come from a density;
        otherwise, and for support and positivity, those of the location-scale fit to all rows.
        Weights are chosen at the first call of an average, or here.
        """
        averager, model = self._averages(), self._model
        if doses is not None:
            grid = check_doses(dose_table(doses, 1, "doses", model.n_components)[0], model.support)
        elif model.n_components > 1:
            grid = model.doses
        else:
            grid = np.union1d(model.doses, self._ground.masses)
        return report_overlap(
            self._parts[0].rows,
            averager,
            self._overlap,
            self._ground,
            grid,
            axes=self._axes,
            weak_below=weak_below,
        )

    def feature_importance(
        self,
        method: str = "gain",
        *,
        decay: float | Sequence[float] = 0.0,
        max_depth: int | None = None,
        n_repeats: int = 5,
        random_state: int = 0,
    ) -> Any:
        """Importance of each feature, in the correction or in the whole curve.

        Parameters
        ----------
        method : {"gain", "permutation"}, default="gain"
            "gain": share of each feature in the gains of the correction's forests, over all rounds,
            each forest counted by its share in the correction. It is free, but knows nothing of
            the outcome model: a feature whose part in the effect the outcome model has found is
            not needed by the forests, and where they are left out all shares are 0.
            "permutation": rise of the curves' R-risk (`doseforest.evaluation.effect_risk`) when
            the feature's values are shuffled between the units, in outcome model and correction
            alike. It is about effects: a feature that moves only the level has none.
        decay, max_depth
            For "gain": weights of splits by depth, see `CurveForest.feature_importance`.
        n_repeats : int, default=5
            For "permutation": shuffles of each feature. Each costs a prediction for all rows.
        random_state : int, default=0
            For "permutation".

        Returns
        -------
        FeatureImportance or PermutationImportance
            ``values``, ``names``, ``ranked()``; the latter with ``standard_errors``.

        Notes
        -----
        Shuffled rows are answered by the models of the folds and by the trees that have not seen
        the row: a noise feature that the fit has learned by heart gains nothing by it. Features
        that say the same share or hide their importance: with one shuffled the other still
        speaks. Shuffling also makes units that do not exist.
        """
        check_method(method)
        if method == "gain":
            return super().feature_importance(decay=decay, max_depth=max_depth)
        check_is_fitted(self)
        return permutation_importance(
            self._parts, self._fit_plan, n_repeats=n_repeats, seed=random_state
        )

    def summary(self) -> ModelSummary:
        """What was fitted, on one screen: data, models, effects, overlap, time."""
        averager = self._averages()
        return summarise(
            type(self).__name__,
            self._parts,
            averager,
            self.overlap_report(),
            grounds_of(self._ground),
            self._axes,
            correction=self.correction,
            outcome_weights=self.outcome_weights_,
            rounds=self.rounds_,
            doses=self._model.doses,
            baseline=self._model.baseline,
            seconds=self.seconds_,
        )

    def plot_average_dose_response(
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
        component, at
            Which of several components changes, and where the others are held; see
            `plot_dose_response`. For two components at once there is `plot_surface`.
        level : float, default=0.95
            Of the intervals, one for each dose: value and standard error of
            `average_dose_response`.
        show_doses : bool, default=True
            Bars at the lower edge: where the observed doses are.
        ax : matplotlib axes, optional

        Returns
        -------
        The axes.
        """
        pyplot()
        path = dose_path(self._model, self._axes, doses=doses, component=component, at=at)
        found, rows = self.average_dose_response(path.doses), self._parts[0].rows
        curve = replace(
            found,
            doses=path.x,
            values=path.broken(found.values),
            standard_errors=path.broken(found.standard_errors),
        )
        ax = plot_average_curve(curve, path.marks, level=level, ax=ax)
        if show_doses:
            places, seen = path.observed(rows.dose)
            weights = None if rows.weights is None else rows.weights[seen]
            dose_strip(ax, places, path.marks, weights)
        path.label(ax)
        return ax

    def plot_overlap(self, doses: Any = None, *, ax: Any | None = None) -> Any:
        """Draw who could have had which dose, and the rows that speak about it.

        See `overlap_report`, which has four pictures: ``overlap_report().plot()``.
        """
        pyplot()
        return overlap_plots.plot_overlap(self.overlap_report(doses), ax=ax)

    def plot_weights(self, *, ax: Any | None = None) -> Any:
        """Draw the distribution of the treatment weights."""
        pyplot()
        return overlap_plots.plot_weights(self.overlap_report(), ax=ax)

    def _average_surface(self, doses: DoseArray) -> FloatArray:
        averager = self._averages()
        parts = np.array_split(doses, -(-len(doses) // DOSES_AT_ONCE))
        return np.concatenate([averager.average_curve(part).values for part in parts])

    def _supported_share(self, table: FloatArray | None, doses: DoseArray) -> FloatArray:
        rows = self._parts[0].rows
        seen = rows.treatment_features if table is None else table[:, rows.treatment_columns]
        places = np.unique(np.linspace(0, len(seen) - 1, MOST_JUDGED).round().astype(int))
        flags = supported(self._overlap, seen[places], doses, self._ground)
        weights = None if table is not None or rows.weights is None else rows.weights[places]
        share: FloatArray = np.average(flags, axis=0, weights=weights)
        return share
