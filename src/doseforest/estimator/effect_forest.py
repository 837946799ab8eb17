"""A fitted generalized causal forest without its training data: curves and what follows of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from doseforest.base.accessors import Accessor
from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.base.late import late
from doseforest.base.machine import thread_count
from doseforest.data.categories import recoded
from doseforest.data.feature_table import BlockSource, Categories, as_table
from doseforest.doses.boxes import DoseBox
from doseforest.doses.curve_effects import (
    CurveEffects,
    dose_table,
    each_its_own,
    unit_doses,
)
from doseforest.doses.dose_slopes import check_positive, slope_doses
from doseforest.doses.dose_values import Doses
from doseforest.doses.grids import DoseRange, check_doses
from doseforest.doses.levels import DoseLevels, check_component_levels
from doseforest.engine.forest import Forest
from doseforest.estimator.answer_frames import FramedAnswers, as_frame, as_series
from doseforest.estimator.bags.unit_bags import UnitBags
from doseforest.nuisance.outcome.outcome_models import OutcomeModel

if TYPE_CHECKING:
    from doseforest.inference.changes.unit_shifts import UnitShifts
    from doseforest.inference.units.unit_intervals import UnitIntervals
    from doseforest.report.forest_plots import ForestPlots


class Correction(Protocol):
    """Corrects the curves of an outcome model."""

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Corrected curves, shape (n_units, n_doses).

        Parameters
        ----------
        outcome : OutcomeModel
        X : array of shape (n_units, n_features)
        splits : array of shape (n_units, n_effect_features)
            The covariates that trees split on.
        doses : array of shape (n_doses,) or (n_units, n_doses)
        """

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """Each forest, and how much of what it says is added to the curves."""

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return the same correction with other forests in the place of its own."""


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """The outcome model's curves as they are."""

    def curves(
        self,
        outcome: OutcomeModel,
        X: FloatArray,
        splits: FloatArray,
        doses: FloatArray,
        n_threads: int,
    ) -> FloatArray:
        """Curves of the outcome model."""
        return outcome.curves(X, doses, n_threads=n_threads)

    def forest_shares(self) -> list[tuple[Forest, float]]:
        """No forests."""
        return []

    def with_forests(self, change: Callable[[Forest], Any]) -> Self:
        """Return itself: there is nothing to change."""
        return self


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedOutcome:
    """An outcome model and its correction."""

    outcome: OutcomeModel
    correction: Correction


class EffectMethods(CurveEffects):
    """What can be asked of a fitted forest, with its training rows or without; `_model` answers."""

    intervals: Accessor[UnitIntervals] = Accessor(
        "doseforest.inference.units.unit_intervals:UnitIntervals"
    )
    plot: Accessor[ForestPlots] = Accessor("doseforest.report.forest_plots:ForestPlots")
    shifts: Accessor[UnitShifts] = Accessor("doseforest.inference.changes.unit_shifts:UnitShifts")

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return self._model.n_components

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """The fitted forest."""

    def dose_response(self, X: Any, doses: Any = None) -> FloatArray:
        """Expected outcome of each unit at each dose, shape (n_units, n_doses).

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        doses : float, array of shape (n_doses,) or of shape (n_units, n_doses), optional
            A grid for all units, or a row of doses for each; in the support of the training doses.
            By default the forest's grid. Doses of several components have one axis more:
            (n_doses, n_components) or (n_units, n_doses, n_components).

        Returns
        -------
        array of shape (n_units, n_doses), or a frame where `set_output` says so
            Expected outcomes, a column per dose.
        """
        model = self._model
        asked = model.doses if doses is None else doses
        table = model.checked_table(X)
        by_unit = dose_table(asked, table.n_rows, n_components=model.n_components)
        shown = by_unit if each_its_own(asked, model.n_components) else by_unit[0]
        model.check_asked(doses=shown)
        framed: FloatArray = as_frame(model._curves_of(table, shown), shown, X, model.output)
        return framed

    def effect(self, X: Any, dose: Any, baseline: Any = None) -> FloatArray:
        """Theta: outcome at `dose` less outcome at `baseline`, shape (n_units,).

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose, baseline : float or array of shape (n_units,)
            One dose for all units, or one for each; by default the forest's baseline.

        Returns
        -------
        array of shape (n_units,), or a series where `set_output` says so
            The effects, in units of the outcome.
        """
        model = self._model
        n_units, width = len(X), model.support.n_components
        start = model.baseline if baseline is None else baseline
        ends = (
            unit_doses(start, n_units, "baseline", width),
            unit_doses(dose, n_units, "dose", width),
        )
        table = model.checked_table(X)
        doses = Doses.stack(ends)
        model.check_asked(doses=doses)
        curves = model._curves_of(table, doses)
        effects = curves[:, 1] - curves[:, 0]
        named: FloatArray = as_series(effects, "effect", X, model.output)
        return named

    def partial_effect(self, X: Any, first: Any, second: Any) -> FloatArray:
        """Change of the outcome per unit of dose between two doses, shape (n_units,)."""
        slopes = super().partial_effect(X, first, second)
        named: FloatArray = as_series(slopes, "partial_effect", X, self._model.output)
        return named

    def elasticity(self, X: Any, dose: Any, component: int | None = None) -> FloatArray:
        """Percent change of the outcome per percent change of the dose, shape (n_units,).

        The slope is taken over 2.5 % of the range of doses on either side.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose : float or array of shape (n_units,)
            One dose for all units, or one for each.
        component : int, optional
            Which component changes, where a dose has several.

        Returns
        -------
        array of shape (n_units,), or a series where `set_output` says so
            The elasticities.
        """
        model = self._model
        ends = slope_doses(model, dose, len(X), component)
        curves = np.asarray(self.dose_response(X, ends.side_by_side))
        check_positive(curves[:, 1], ends.middle)
        slopes = (curves[:, 2] - curves[:, 0]) / ends.length
        elasticities = ends.middle.table[:, ends.place] * slopes / curves[:, 1]
        named: FloatArray = as_series(elasticities, "elasticity", X, model.output)
        return named

    def effect_interval(
        self,
        X: Any,
        dose: Any = None,
        baseline: Any = None,
        *,
        doses: Any = None,
        coverage: float = 0.95,
        band: bool = False,
    ) -> tuple[Any, Any]:
        """Lower and upper ends of intervals of units' effects.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose : float or array of shape (n_units,), optional
            One dose for all units, or one for each.
        baseline : float or array of shape (n_units,), optional
            What it is compared with; by default the forest's baseline.
        doses : array of shape (n_doses,) or (n_units, n_doses), optional
            Several doses in place of one: a grid for all units, or a row for each.
        coverage : float, default=0.95
            Chance with which an interval covers the effect. Raise it for fewer misses and longer
            intervals.
        band : bool, default=False
            Let all `doses` of a unit lie between the ends at once.

        Returns
        -------
        low, high : arrays of shape (n_units,), or (n_units, n_doses)
            Centred on the debiased effect, not on `effect`.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), baseline=0.0,
        ...     inference="bags", random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> low, high = forest.effect_interval(data.X, dose=1.0)  # the effect is 2 for everyone
        >>> bool(((low <= 2) & (high >= 2)).mean() > 0.8)
        True
        """
        return self.intervals.effect(X, dose, baseline, doses=doses).ends(coverage, band=band)


@dataclass(frozen=True, slots=True, eq=False)
class EffectForest(FramedAnswers, EffectMethods):
    """The dose-response curve of every unit, without the training rows.

    `GeneralizedCausalForest.fit` makes it (``model_``), and `load_forest`.

    Attributes
    ----------
    parts : tuple of CorrectedOutcome
        Outcome models with what corrects them, averaged; two where halves were swapped.
    n_features : int
        Number of features.
    feature_names : tuple of str or None
        Names of the features, where the training table had them.
    effect_columns : array of int
        Features that trees split on.
    doses : array of shape (n_doses,)
        The default grid.
    baseline : dose
        The dose that effects are measured against.
    support : DoseRange or DoseBox
        Range of the training doses.
    bounded : bool
        Whether outcomes are kept to [0, 1].
    n_jobs : int or None
        Number of threads; all cores by default.
    categories : dict
        Labels of each categorical feature, by its place.
    output : {"default", "pandas", "polars"}
        What answers come in, see `set_output`.
    bags : UnitBags or None
        The forest of intervals, where the fit had ``inference="bags"``.
    component_levels : tuple of tuple of float
        Levels of each component of the dose, without entries where it is a quantity. Between the
        levels of one component answers are interpolated, with an `OverlapWarning`.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="none", baseline=0.0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> forest.model_.effect(data.X[:2], dose=1.0).round()
    array([2., 2.])
    """

    parts: tuple[CorrectedOutcome, ...]
    n_features: int
    feature_names: tuple[str, ...] | None
    effect_columns: IntArray
    doses: DoseArray  # (n_doses,)
    baseline: Any
    support: DoseRange | DoseBox
    bounded: bool
    n_jobs: int | None = None
    categories: Categories = field(default_factory=dict)
    output: str = "default"
    bags: UnitBags | None = None
    component_levels: tuple[tuple[float, ...], ...] = ((),)

    @property
    def _model(self) -> EffectForest:
        return self

    @property
    def n_components(self) -> int:
        """Number of components of a dose."""
        return self.support.n_components

    @property
    def ranges(self) -> tuple[DoseRange, ...]:
        """Range of each component of the doses."""
        return self.support.ranges if isinstance(self.support, DoseBox) else (self.support,)

    def save(self, path: str | Path) -> None:
        """Write the forest to one file, which `load_forest` reads.

        `n_jobs` stays behind: it belongs to a machine. An outcome model or a basis made of your
        code is a TypeError.

        Parameters
        ----------
        path : str or Path
            Where to write; a file that is there is replaced, never left half written.
        """
        late("doseforest.files.effect_file:save_effect_forest")(self, path)

    def checked_table(self, X: Any) -> BlockSource:
        """Check a table of units and cut it into blocks of rows.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units; columns with names are put in the order of the training table.

        Returns
        -------
        BlockSource
            Blocks of rows, with categories as codes.
        """
        table = as_table(
            X, expected_names=self.feature_names, with_categories=bool(self.categories)
        )
        if table.n_features != self.n_features:
            raise ValueError(
                f"The 'X' parameter must have {self.n_features} features, as in fit: X has "
                f"{table.n_features} features, but GeneralizedCausalForest is expecting "
                f"{self.n_features} features as input."
            )
        return recoded(table, self.categories) if self.categories else table

    def checked_component(self, component: int | None) -> int:
        """Place of the component that an elasticity is of.

        Parameters
        ----------
        component : int or None
            The component; needed where a dose has several.

        Returns
        -------
        int
            Its place.

        Raises
        ------
        ValueError
            Where the component has levels, between which the forest has no curve.
        """
        place = 0 if component is None and self.n_components == 1 else component
        if type(place) is not int or not 0 <= place < self.n_components:
            raise ValueError(
                f"The 'component' parameter must be an int from 0 to {self.n_components - 1}, the "
                f"component of the dose that changes. Got {component!r} instead."
            )
        levels = self.levels(place)
        if levels:
            raise ValueError(
                "The 'dose' parameter must be a quantity for an elasticity. This forest knows the "
                f"levels {list(levels)} alone: compare two of them by partial_effect, or fit it "
                "with basis='legendre'."
            )
        return place

    def levels(self, place: int = 0) -> tuple[float, ...]:
        """Levels of a component of the dose between which the forest has no curve, if any.

        Parameters
        ----------
        place : int, default=0
            Place of the component.

        Returns
        -------
        tuple of float
            The levels; empty for a continuous component.
        """
        return self.component_levels[place] if any(self.component_levels) else ()

    @property
    def dose_levels(self) -> DoseLevels:
        """Levels of a dose of one component, between which answers are interpolated."""
        return DoseLevels(() if self.n_components > 1 else self.component_levels[0])

    def require_levels(self, **asked: Doses) -> None:
        """Refuse doses between levels, for answers that cannot be interpolated.

        Parameters
        ----------
        **asked : Doses
            Doses of a call by the names of its parameters.
        """
        for name, doses in asked.items():
            if self.n_components > 1:
                check_component_levels(doses.values, self.component_levels, name)
            else:
                self.dose_levels.require(doses.values, name)

    def check_asked(self, **asked: Doses) -> None:
        """Refuse doses that the forest cannot answer for, and warn of those between levels.

        Parameters
        ----------
        **asked : Doses
            Doses of a call by the names of its parameters.
        """
        for name, doses in asked.items():
            check_doses(doses, self.support, name)
        if not any(self.component_levels):
            return
        if self.n_components > 1:
            for name, doses in asked.items():
                check_component_levels(doses.values, self.component_levels, name)
        else:
            every = np.concatenate([doses.values.ravel() for doses in asked.values()])
            self.dose_levels.warn(every)

    def _curves_of(self, table: BlockSource, doses: Doses) -> FloatArray:
        """Curves of a checked table at a grid, or at each unit's doses."""
        asked = doses.values
        out = np.empty((table.n_rows, asked.shape[-1]))
        for first, block in table.blocks():
            rows = slice(first, first + len(block))
            out[rows] = self.curves(block, asked if asked.ndim == 1 else asked[rows])
        return out

    def curves(self, X: FloatArray, doses: DoseArray) -> FloatArray:
        """Curves of units of a checked table at checked doses.

        Parameters
        ----------
        X : array of shape (n_units, n_features)
            Features in the order of the training table, categories as codes.
        doses : array of shape (n_doses,) or (n_units, n_doses)
            Checked doses.

        Returns
        -------
        array of shape (n_units, n_doses)
            The curves.
        """
        if any(self.component_levels):
            levels = self.dose_levels
            if levels.apart(doses).any():
                return levels.read(self.curves(X, np.array(levels.values)), doses)
        n_threads = thread_count(self.n_jobs)
        splits = np.ascontiguousarray(X[:, self.effect_columns])
        total = np.zeros((len(X), doses.shape[-1]))
        for part in self.parts:
            total += part.correction.curves(part.outcome, X, splits, doses, n_threads)
        mean = total / len(self.parts)
        return np.clip(mean, 0.0, 1.0) if self.bounded else mean
