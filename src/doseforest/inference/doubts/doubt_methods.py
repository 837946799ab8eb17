"""The methods of a fitted forest that look for what could be wrong with its effects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from doseforest.base.progress import ProgressBar
from doseforest.data.feature_places import feature_places
from doseforest.doses.compared_doses import compared_doses
from doseforest.doses.grids import DoseRange, check_count, dose_sample
from doseforest.doses.vectors import plain_dose
from doseforest.estimator.early_checks import check_given
from doseforest.inference.doubts.omitted_variables import estimate_sensitivity
from doseforest.inference.doubts.refuters import (
    REFUTERS,
    FirstColumns,
    GivenRows,
    Refutation,
    given_rows,
    refute_effect,
)
from doseforest.inference.doubts.sensitivity import Sensitivity
from doseforest.inference.judgeable import require_varied_outcome
from doseforest.inference.judged_rows import training_rows_judged

if TYPE_CHECKING:
    from doseforest.estimator.effect_forest import EffectForest
    from doseforest.estimator.fit_plan import FitPlan
    from doseforest.estimator.trained_parts import TrainedPart

LOW_AND_HIGH = np.array([0.25, 0.75])  # quantiles of the doses that are compared by default


class DoubtMethods:
    """Sensitivity to what was not measured, and refuters; of a `GeneralizedCausalForest`."""

    progress: bool | None
    _parts: tuple[TrainedPart, ...]
    _fit_plan: FitPlan

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """What answers for new units."""

    def sensitivity(
        self, low: Any = None, high: Any = None, *, benchmark: Any = None
    ) -> Sensitivity:
        """How strong an unmeasured confounder would have to be to explain an average effect away.

        Parameters
        ----------
        low, high : float or array of shape (n_components,), optional
            The effect is the average outcome at the high dose less that at the low one; by default
            the quartiles of the observed doses.
        benchmark : sequence of names or places, optional
            Covariates to compare with: how strong each of them is, as if it had not been measured.
            Each costs fits of the means given the others.

        Returns
        -------
        Sensitivity
            ``robustness_value``, ``robustness_of_interval()``, ``bounds(…)``, ``benchmarks``,
            ``plot()``; prints as a paragraph. See docs/trust.md.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> found = forest.sensitivity(0.0, 1.0)
        >>> 0 < found.robustness_of_interval() < found.robustness_value < 1
        True
        """
        check_is_fitted(self)
        rows = self._parts[0].rows
        require_varied_outcome(rows, "sensitivity")
        ends = self._ends_to_compare(low, high)
        columns = feature_places(benchmark, "benchmark", rows.names, rows.X.shape[1])
        judged = training_rows_judged(self._parts, self._fit_plan, "Sensitivity")
        return estimate_sensitivity(judged, ends[0], ends[1], columns)

    def refute(
        self,
        X: Any,
        y: Any,
        treatment: Any,
        *,
        kind: str = "placebo",
        low: Any = None,
        high: Any = None,
        n_repeats: int = 5,
        share: float = 0.8,
        params: Mapping[str, Any] | None = None,
        sample_weight: Any = None,
        groups: Any = None,
        random_state: int = 0,
    ) -> Refutation:
        """Refit to changed data in which one knows what should become of the average effect.

        Parameters
        ----------
        X, y, treatment, sample_weight, groups
            As in `fit`.
        kind : {"placebo", "random_common_cause", "subset"}, default="placebo"
            "placebo" shuffles the doses between the rows: the effect should vanish.
            "random_common_cause" adds a covariate of noise: it should stay. "subset" keeps a
            random share of the rows: it should stay within its error.
        low, high : float or array of shape (n_components,), optional
            The effect is the average outcome at the high dose less that at the low one; by default
            the quartiles of the forest's training doses. A subset that does not reach one of them
            is asked at the nearest dose that it has.
        n_repeats : int, default=5
            Changed data sets. There is one fit for each and one for the data as they are.
        share : float, default=0.8
            Of the rows (of the groups) that a subset has.
        params : mapping, optional
            Parameters of the refitted clones that differ from the forest's, as
            ``{"n_trees": 100, "outcome_model": LinearRegression()}`` to be faster; a known
            assignment, which shuffling undoes, is not used by placebos.
        random_state : int, default=0
            Of the changes.

        Returns
        -------
        Refutation
            ``original``, ``standard_error``, ``refuted``, ``p_value``, ``passed``; prints as text.

        Examples
        --------
        >>> from sklearn.linear_model import LinearRegression
        >>> from doseforest import GeneralizedCausalForest
        >>> from doseforest.datasets import DESIGNS
        >>> data = DESIGNS["linear"].draw(n=300, seed=0)  # a slope of 2 for everyone
        >>> forest = GeneralizedCausalForest(
        ...     correction="none", outcome_model=LinearRegression(), density="none",
        ...     baseline=0.0, random_state=0,
        ... ).fit(data.X, data.y, treatment=data.treatment)
        >>> forest.refute(data.X, data.y, data.treatment, n_repeats=2).passed  # a placebo
        True
        """
        check_is_fitted(self)
        if kind not in tuple(REFUTERS):
            raise ValueError(
                f"The 'kind' parameter must be one of {', '.join(REFUTERS)}. Got {kind!r} instead."
            )
        check_count(n_repeats, 2, "n_repeats")
        check_count(random_state, 0, "random_state")
        if not isinstance(share, Real) or not 0 < share < 1:
            raise ValueError(
                f"The 'share' parameter must be a float in (0, 1). Got {share!r} instead."
            )
        if not (params is None or isinstance(params, Mapping)):
            raise ValueError(
                "The 'params' parameter must be a mapping of parameters to values. "
                f"Got {params!r} instead."
            )
        check_given(treatment, "refute")
        ends = [plain_dose(dose) for dose in self._ends_to_compare(low, high)]
        rows = given_rows(X, y, treatment, sample_weight, groups)
        recipe: Any = clone(self)
        changed = {"baseline": ends[0], "doses": None, "progress": False, "verbose": False}
        changed |= {} if params is None else params
        density = changed.get("density", recipe.density)
        known = not isinstance(density, str)
        if known and (kind == "placebo" or (kind == "subset" and not callable(density))):
            changed["density"] = "auto"
        elif callable(density) and kind == "random_common_cause":
            n_columns = len(self._parts[0].rows.treatment_columns)
            changed["density"] = FirstColumns(density, n_columns)
        recipe.set_params(**changed)

        def fitted(given: GivenRows) -> tuple[float, float]:
            forest = clone(recipe).fit(
                given.X,
                given.y,
                treatment=given.treatment,
                sample_weight=given.sample_weight,
                groups=given.groups,
            )
            low_end, high_end = (_nearest(forest.model_.support, end) for end in ends)
            effect = forest.average_effect(high_end, low_end)
            return effect.value, effect.standard_error

        with ProgressBar(n_repeats + 1, "refuting", "fit", self.progress) as bar:
            return refute_effect(
                fitted,
                rows,
                kind,
                low=ends[0],
                high=ends[1],
                n_repeats=n_repeats,
                share=share,
                seed=random_state,
                on_progress=bar.advance,
            )

    def _ends_to_compare(self, low: Any, high: Any) -> Any:
        """The doses asked for, or the quartiles of the observed ones, or the ends."""
        rows, model = self._parts[0].rows, self._model
        width = model.n_components
        if width > 1:
            for name, dose in (("low", low), ("high", high)):
                if dose is None:
                    raise ValueError(
                        f"The {name!r} parameter must be given for doses of {width} components. "
                        "Got None instead."
                    )
            usual = [low, high]
        else:
            sample = dose_sample(rows.dose, rows.weights)
            usual = sample.quantiles(LOW_AND_HIGH).tolist()
            if usual[0] == usual[1]:
                usual = [sample.range().low, sample.range().high]
        given = [
            own if asked is None else asked for own, asked in zip(usual, (low, high), strict=True)
        ]
        ends = compared_doses(given[0], given[1], ("low", "high"), model.support, width)
        if ends[0] == ends[1]:
            raise ValueError(
                f"The 'high' parameter must differ from 'low'. Got {plain_dose(ends[1])} for both "
                "instead."
            )
        return ends


def _nearest(support: Any, dose: Any) -> Any:
    """The dose, or the nearest one of a range that it lies beyond."""
    return float(support.clip(np.array([dose]))[0]) if isinstance(support, DoseRange) else dose
