"""What can be asked of a forest with intervals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.base.intervals import checked_coverage
from doseforest.doses.curve_effects import dose_gaps, dose_table, each_its_own, unit_doses
from doseforest.doses.dose_slopes import check_positive, slope_doses
from doseforest.estimator.answer_frames import as_frame, as_series
from doseforest.inference.units.best_doses import best_doses
from doseforest.inference.units.differences import Differences, bags_of, differences
from doseforest.inference.units.unit_results import BestDoses, UnitInference

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest, EffectMethods


class UnitIntervals:
    """Intervals of what a forest says of units: ``forest.intervals``.

    They need ``inference="bags"`` in the fit, and are centred on a forest for inference alone,
    which is not shrunk, and not on what `effect` answers: that is nearer to the truth on average,
    but drawn to the outcome model.

    Parameters
    ----------
    forest : GeneralizedCausalForest or EffectForest
        Fitted.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from doseforest import GeneralizedCausalForest
    >>> from doseforest.datasets import DESIGNS
    >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
    >>> forest = GeneralizedCausalForest(
    ...     correction="none", outcome_model=LinearRegression(), density="none",
    ...     baseline=0.0, inference="bags", random_state=0,
    ... ).fit(data.X, data.y, treatment=data.treatment)
    >>> low, high = forest.intervals.effect(data.X[:4], dose=1.0).interval(0.9)
    >>> bool((low < 2).all() and (high > 2).all())
    True
    """

    def __init__(self, forest: EffectMethods) -> None:
        self._model: EffectForest = forest._model

    def effect(
        self, X: Any, dose: Any = None, baseline: Any = None, *, doses: Any = None
    ) -> UnitInference:
        """Debiased effects of units with standard errors, intervals and bands.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        dose : float or array of shape (n_units,), optional
            As in `effect`: one dose for all units, or one for each. Answers have shape (n_units,).
        baseline : float or array of shape (n_units,), optional
            By default the forest's baseline.
        doses : array of shape (n_doses,) or (n_units, n_doses), optional
            Several doses in place of one, as in `dose_response`: a grid for all units, or a row for
            each. Answers have shape (n_units, n_doses). By default the forest's grid.

        Returns
        -------
        UnitInference
            ``values``, ``standard_errors``, ``interval(coverage)`` and ``band(coverage)``. Effects
            on outcomes of 0 and 1 are differences of probabilities.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, inference="bags", random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> found = forest.intervals.effect(data.X[:4], doses=[1.0, 2.0])
        >>> found.values.shape, found.band(0.9)[0].shape
        ((4, 2), (4, 2))
        """
        model = self._model
        bags_of(model)
        if dose is not None and doses is not None:
            raise ValueError(
                "The 'doses' parameter must be None where 'dose' is given. Got both instead."
            )
        n_units, width = len(X), model.n_components
        low = model.baseline if baseline is None else baseline
        starts = unit_doses(low, n_units, "baseline", width)
        if dose is not None:
            ends = unit_doses(dose, n_units, "dose", width)
            model.check_asked(baseline=starts, dose=ends)
            return self._alone(differences(model, X, ends[:, None], starts[:, None]), "effect", X)
        given = model.doses if doses is None else doses
        asked = dose_table(given, n_units, n_components=width)
        shown = asked if each_its_own(given, width) else dose_table(given, 1, n_components=width)[0]
        model.check_asked(baseline=starts, doses=shown)
        return UnitInference(
            differences(model, X, asked, starts[:, None]),
            shown=partial(as_frame, doses=shown, X=X, output=model.output),
            limits=self._limits,
        )

    def partial_effect(self, X: Any, first: Any, second: Any) -> UnitInference:
        """Debiased changes of the outcome per unit of dose between two doses.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        first, second : float or array of shape (n_units,)
            The two doses: one for all units, or one for each.

        Returns
        -------
        UnitInference
            ``values``, ``standard_errors`` and ``interval(coverage)``, of shape (n_units,).

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, inference="bags", random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> forest.intervals.partial_effect(data.X[:4], 0.0, 1.0).values.round()
        array([2., 2., 2., 2.])
        """
        model = self._model
        bags_of(model)
        n_units, width = len(X), model.n_components
        starts = unit_doses(first, n_units, "first", width)
        ends = unit_doses(second, n_units, "second", width)
        gaps = dose_gaps(starts, ends)
        model.check_asked(first=starts, second=ends)
        result = differences(model, X, ends[:, None], starts[:, None])
        return self._alone(result, "partial_effect", X, 1 / gaps)

    def elasticity(self, X: Any, dose: Any, component: int | None = None) -> UnitInference:
        """Debiased elasticities of units.

        The slope is debiased. The outcome that it is divided by is the forest's, taken without
        error, which is small beside that of a slope.

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
        UnitInference
            ``values``, ``standard_errors`` and ``interval(coverage)``, of shape (n_units,).

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, inference="bags", random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> high_level = forest.dose_response(data.X, [1.0])[:, 0] > 2
        >>> units = data.X[high_level][:3]
        >>> forest.intervals.elasticity(units, dose=1.0).values.shape
        (3,)
        """
        model = self._model
        bags_of(model)
        ends = slope_doses(model, dose, len(X), component)
        level = np.asarray(model.dose_response(X, ends.middle[:, None]))[:, 0]
        check_positive(level, ends.middle)
        result = differences(model, X, ends.high[:, None], ends.low[:, None])
        factors = ends.middle.table[:, ends.place] / (ends.length * level)
        return self._alone(result, "elasticity", X, factors)

    def optimal_dose(
        self, X: Any, doses: Any = None, *, coverage: float = 0.95, minimize: bool = False
    ) -> BestDoses:
        """Which doses of a grid may be the best for each unit.

        Parameters
        ----------
        X : table of shape (n_units, n_features)
            Units.
        doses : array of shape (n_doses,), optional
            Doses to choose from, by default the forest's grid.
        coverage : float, default=0.95
            Chance that the best dose of a unit is among its plausible ones.
        minimize : bool, default=False
            Whether a low outcome is best.

        Returns
        -------
        BestDoses
            ``values``, ``plausible``, a table of units and doses, and ``interval()``, the lowest
            and the highest plausible dose.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, inference="bags", random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> found = forest.intervals.optimal_dose(data.X[:4])
        >>> bool((found.values > 2).all())  # the highest is best
        True
        """
        model = self._model
        bags_of(model)
        checked_coverage(coverage)
        if not isinstance(minimize, bool):
            raise ValueError(
                f"The 'minimize' parameter must be True or False. Got {minimize!r} instead."
            )
        given = model.doses if doses is None else doses
        if each_its_own(given, model.n_components):
            raise ValueError(
                "The 'doses' parameter must be one grid for all units. "
                f"Got shape {np.shape(given)} instead."
            )
        grid = dose_table(given, 1, n_components=model.n_components).distinct
        if not len(grid):
            raise ValueError("The 'doses' parameter must hold a dose or more. Got none instead.")
        model.check_asked(doses=grid)
        result = best_doses(model, X, grid, float(coverage), minimize=minimize)
        return replace(
            result, shown=partial(as_series, name="optimal_dose", X=X, output=model.output)
        )

    @property
    def _limits(self) -> tuple[float, float]:
        return (-1.0, 1.0) if self._model.bounded else (-np.inf, np.inf)

    def _alone(
        self, found: Differences, name: str, X: Any, factors: FloatArray | None = None
    ) -> UnitInference:
        """One difference of each unit, times a factor of its own."""
        own = np.ones(len(found.values)) if factors is None else factors
        return UnitInference(
            Differences(
                found.values[:, 0] * own,
                found.standard_errors[:, 0] * np.abs(own),
                found.degrees[:, 0],
                found.roots,
            ),
            shown=partial(as_series, name=name, X=X, output=self._model.output),
            limits=self._limits if factors is None else (-np.inf, np.inf),
        )
