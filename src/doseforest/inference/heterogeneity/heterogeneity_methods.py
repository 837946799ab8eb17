"""The methods of a fitted forest that test the differences it sees between units."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from doseforest.data.checks import checked_columns
from doseforest.doses.compared_doses import compared_doses
from doseforest.doses.grids import check_count
from doseforest.doses.vectors import dose_text
from doseforest.inference.heterogeneity.calibration import (
    CalibrationTest,
    HeterogeneityTest,
    calibrate,
)
from doseforest.inference.heterogeneity.contrast_scores import ContrastScores, contrast_scores
from doseforest.inference.heterogeneity.targeting import WEIGHTINGS, RankedEffects, ranked_effects
from doseforest.inference.judged_rows import (
    JudgedRows,
    curve_shapes,
    new_rows_judged,
    training_rows_judged,
)
from doseforest.inference.robust_regression import clusters_of

if TYPE_CHECKING:
    from doseforest.base.dtypes import FloatArray
    from doseforest.estimator.averages.averaging import Averager
    from doseforest.estimator.effect_forest import EffectForest
    from doseforest.estimator.fit_plan import FitPlan
    from doseforest.estimator.trained_parts import TrainedPart


class HeterogeneityMethods:
    """Tests of heterogeneity by doubly robust scores; of a `GeneralizedCausalForest`."""

    baseline_: Any
    _parts: tuple[TrainedPart, ...]
    _fit_plan: FitPlan

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """What answers for new units."""

    @abstractmethod
    def _averages(self) -> Averager:
        """What averages are made of."""

    def test_calibration(
        self,
        X: Any = None,
        y: Any = None,
        treatment: Any = None,
        *,
        dose: Any = None,
        baseline: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> CalibrationTest:
        """Test whether effects rise one for one with their predictions.

        By default the curves are judged as a whole: outcomes and curves are freed of what the
        covariates explain, and the former regressed on the average curve and on how each unit's
        curve differs from it, at the observed doses. That needs means of functions of the dose
        given the covariates but no density, and every row has its say: it is sounder and sharper
        than scores at single doses, where only rows nearby count. With `dose` it is the doubly
        robust score of that effect which is regressed on its prediction.

        Parameters
        ----------
        X, y, treatment : table and arrays, optional
            Rows that the forest has not seen. By default the training rows, with their
            out-of-bag curves: those of a row have not seen its outcome, but rows have seen each
            other, which makes p-values a little too careful.
        dose, baseline : float or array of shape (n_components,), optional
            One effect to judge; by default all doses together. The baseline is the forest's.
        sample_weight, groups : arrays of shape (n_rows,), optional
            Of new rows. Rows of a group are one draw in standard errors.

        Returns
        -------
        CalibrationTest
            ``coefficients``, ``standard_errors``, ``p_values``; prints as a table.

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
        >>> found = forest.test_calibration()
        >>> round(found.values[0]), found.heterogeneity_p_value > 0.05
        (1, True)
        """
        if dose is None and baseline is not None:
            raise ValueError(
                "The 'baseline' parameter of test_calibration must come with a 'dose'. "
                f"Got {baseline!r} alone instead."
            )
        judged, new = self._judged(X, y, treatment, sample_weight, groups)
        rows = judged.rows
        common: dict[str, Any] = {"weights": rows.weights, "clusters": clusters_of(rows.ids)}
        if dose is None:
            shapes = curve_shapes(judged, of_shapes=True)
            middle = np.average(shapes.coefficients, axis=0, weights=rows.weights)
            average = shapes.functions @ middle
            target = shapes.own + shapes.residual
            return calibrate(target, average, shapes.own - average, what="curves", **common)
        found, ends = self._scores(judged, new, dose, baseline)
        mean = float(np.average(found.predictions, weights=rows.weights))
        return calibrate(
            found.scores,
            np.full(rows.n_rows, mean),
            found.predictions - mean,
            what=f"the effect of dose {dose_text(ends[1])} against {dose_text(ends[0])}",
            **common,
        )

    def test_heterogeneity(
        self,
        X: Any = None,
        y: Any = None,
        treatment: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> HeterogeneityTest:
        """Test that curves are the same for every unit, but for their level.

        One number over all doses: whether outcomes follow the differences between units' curves
        that the forest predicts, the second line of `test_calibration`. It has power against what
        the forest has found; a forest that found nothing cannot reject.

        Parameters
        ----------
        X, y, treatment, sample_weight, groups
            As in `test_calibration`.

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
        >>> forest.test_heterogeneity().p_value > 0.05  # all units have the same slope
        True
        """
        found = self.test_calibration(X, y, treatment, sample_weight=sample_weight, groups=groups)
        error = float(found.standard_errors[1])
        ratio = float(found.values[1]) / error if error > 0 else 0.0
        return HeterogeneityTest(ratio, found.heterogeneity_p_value, found.n_rows)

    def rate(
        self,
        dose: Any,
        baseline: Any = None,
        *,
        priority: Any = None,
        weighting: str = "autoc",
        X: Any = None,
        y: Any = None,
        treatment: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        n_bootstrap: int = 200,
        random_state: int = 0,
    ) -> RankedEffects:
        """How well a ranking finds the units on which a dose has most effect (TOC and RATE).

        Parameters
        ----------
        dose, baseline : float or array of shape (n_components,)
            The effect by which units are to be ranked; by default against the forest's baseline.
        priority : array of shape (n_rows,), optional
            Units with the highest come first; ties are shared. By default the predicted effect. On
            the training rows that is the out-of-bag prediction: it has not seen a row's own
            outcome, but predictions and scores of other rows share what they have seen. To be
            safe, give rows that the forest has not seen, or a priority from elsewhere.
        weighting : {"autoc", "qini"}, default="autoc"
            "autoc" counts every share of the units alike, "qini" by its size: the former finds a
            few that stand out, the latter says what treating many by rank is worth.
        X, y, treatment, sample_weight, groups
            Rows that the forest has not seen; by default the training rows, out of bag.
        n_bootstrap : int, default=200
            Half-samples for standard errors.
        random_state : int, default=0

        Returns
        -------
        RankedEffects
            ``value``, ``standard_error``, ``p_value``, ``shares``, ``toc``; ``plot()``.

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
        >>> forest.rate(1.0).p_value > 0.05  # nobody gains more than others
        True
        """
        if weighting not in tuple(WEIGHTINGS):
            raise ValueError(
                f"The 'weighting' parameter must be one of {', '.join(WEIGHTINGS)}. "
                f"Got {weighting!r} instead."
            )
        check_count(n_bootstrap, 20, "n_bootstrap")
        check_count(random_state, 0, "random_state")
        judged, new = self._judged(X, y, treatment, sample_weight, groups)
        rows = judged.rows
        ranks: FloatArray | None = None
        if priority is not None:
            ranks = checked_columns(priority, "priority", rows.n_given, 1)[:, 0].astype(np.float64)
        found, _ = self._scores(judged, new, dose, baseline)
        return ranked_effects(
            found.scores,
            found.predictions if ranks is None else rows.of_given(ranks),
            weighting=weighting,
            weights=rows.weights,
            clusters=rows.ids,
            n_bootstrap=n_bootstrap,
            seed=random_state,
        )

    def _judged(
        self, X: Any, y: Any, treatment: Any, sample_weight: Any, groups: Any
    ) -> tuple[JudgedRows, bool]:
        """Rows to judge by, and whether they are new."""
        check_is_fitted(self)
        given = {"X": X, "y": y, "treatment": treatment}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == 3 and sample_weight is None and groups is None:
            parts, plan = self._parts, self._fit_plan
            what = "A test on the training rows"
            return training_rows_judged(parts, plan, what, or_new_rows=True), False
        if missing:
            raise ValueError(
                f"The {missing[0]!r} parameter must be given for new rows: X, y and treatment, or "
                "none of them for the training rows. Got None instead."
            )
        trained = self._parts[0].rows
        judged = new_rows_judged(
            self._model,
            trained,
            self._fit_plan,
            X,
            y,
            treatment,
            sample_weight=sample_weight,
            groups=groups,
        )
        return judged, True

    def _scores(
        self, judged: JudgedRows, new: bool, dose: Any, baseline: Any
    ) -> tuple[ContrastScores, Any]:
        """Scores of an effect, and its two doses."""
        model, names = self._model, ("baseline", "dose")
        start = self.baseline_ if baseline is None else baseline
        ends = compared_doses(start, dose, names, model.support, model.n_components)
        if ends[0] == ends[1]:
            raise ValueError(
                "The 'dose' parameter must differ from the baseline. "
                f"Got {dose_text(ends[1])} for both instead."
            )
        weights = None if new else self._averages().weights.r
        return contrast_scores(judged, ends[1], ends[0], weights), ends
