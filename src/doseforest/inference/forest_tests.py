"""Tests of what a fitted forest says: heterogeneity, shapes, and what could be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from doseforest.base.progress import ProgressBar
from doseforest.data.checks import checked_columns
from doseforest.data.feature_places import feature_places
from doseforest.doses.compared_doses import compared_doses
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.dose_values import dose_text
from doseforest.doses.grids import check_count
from doseforest.estimator.early_checks import check_given
from doseforest.inference.doubts.compared_effects import (
    ends_to_compare,
    nearest_dose,
    refitted_recipe,
)
from doseforest.inference.doubts.omitted_variables import estimate_sensitivity
from doseforest.inference.doubts.refuters import (
    REFUTERS,
    GivenRows,
    Refutation,
    given_rows,
    refute_effect,
)
from doseforest.inference.doubts.sensitivity import Sensitivity
from doseforest.inference.heterogeneity.calibration import (
    CalibrationTest,
    HeterogeneityTest,
    calibrate,
)
from doseforest.inference.heterogeneity.contrast_scores import ContrastScores, contrast_scores
from doseforest.inference.heterogeneity.targeting import WEIGHTINGS, RankedEffects, ranked_effects
from doseforest.inference.judgeable import require_varied_outcome
from doseforest.inference.judged_rows import (
    JudgedRows,
    curve_shapes,
    new_rows_judged,
    training_rows_judged,
)
from doseforest.inference.robust_regression import clusters_of
from doseforest.inference.shapes.shape_test import ShapeTest, shape_test
from doseforest.inference.shapes.shapes import Shape, check_one_component, checked_shape

if TYPE_CHECKING:
    from doseforest.base.dtypes import FloatArray
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest


class ForestTests:
    """Tests of what a fitted forest says: ``forest.tests``.

    Parameters
    ----------
    forest : GeneralizedCausalForest
        Fitted.

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
    >>> forest.tests.heterogeneity().p_value > 0.05  # all units have the same slope
    True
    """

    def __init__(self, forest: GeneralizedCausalForest) -> None:
        self._forest = forest
        self._fitted = forest._fitted

    def calibration(
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

        By default the curves are tested as a whole: outcomes and curves are freed of what the
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
            One effect to test; by default all doses together. The baseline is the forest's.
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
        >>> found = forest.tests.calibration()
        >>> round(found.values[0]), found.heterogeneity_p_value > 0.05
        (1, True)
        """
        if dose is None and baseline is not None:
            raise ValueError(
                "The 'baseline' parameter of tests.calibration must come with a 'dose'. "
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

    def heterogeneity(
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
        that the forest predicts, the second line of `calibration`. It has power against what
        the forest sees; a forest that sees no differences cannot reject.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), optional
            Rows that the forest has not seen; by default the training rows, out of bag.
        y : array of shape (n_rows,), optional
            Their outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components), optional
            Their doses.
        sample_weight : array of shape (n_rows,), optional
            Weights of new rows; by default 1 each.
        groups : array of shape (n_rows,), optional
            Groups of new rows, which are one draw in standard errors.

        Returns
        -------
        HeterogeneityTest
            ``statistic`` and ``p_value``; prints as text.

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
        >>> forest.tests.heterogeneity().p_value > 0.05  # all units have the same slope
        True
        """
        result = self.calibration(X, y, treatment, sample_weight=sample_weight, groups=groups)
        error = float(result.standard_errors[1])
        ratio = float(result.values[1]) / error if error > 0 else 0.0
        return HeterogeneityTest(ratio, result.heterogeneity_p_value, result.n_rows)

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
        X : table of shape (n_rows, n_features), optional
            Rows that the forest has not seen; by default the training rows, out of bag.
        y : array of shape (n_rows,), optional
            Their outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components), optional
            Their doses.
        sample_weight : array of shape (n_rows,), optional
            Weights of new rows; by default 1 each.
        groups : array of shape (n_rows,), optional
            Groups of new rows, which are one draw in standard errors.
        n_bootstrap : int, default=200
            Half-samples for standard errors. More of them take longer.
        random_state : int, default=0
            Seed of the half-samples.

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
        >>> forest.tests.rate(1.0).p_value > 0.05  # nobody gains more than others
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

    def shape(
        self, shape: Shape, doses: Any = None, *, n_draws: int = 10_000, random_state: int = 0
    ) -> ShapeTest:
        """Test whether the data reject that the average curve has a shape.

        Parameters
        ----------
        shape : str or pair of str
            "increasing" or "decreasing", "concave" or "convex", or one of each.
        doses : array of shape (n_doses,), optional
            By default the forest's grid. Fewer doses make a sharper test, as long as they are not
            chosen by a look at the curve.
        n_draws : int, default=10000
            Draws of the noise for the p-value.
        random_state : int, default=0
            Seed of the draws.

        Returns
        -------
        ShapeTest
            ``statistic``, ``p_value``, ``projected`` (the nearest average curve of the shape),
            ``worst`` (where it is violated most); see `doseforest.inference.shapes.shape_test`.

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
        >>> forest.tests.shape("decreasing").p_value < 0.05
        True
        """
        model = self._fitted.model
        check_one_component(model.n_components, "tests.shape")
        checked_shape(shape)
        grid = dose_table(model.doses if doses is None else doses, 1).distinct
        model.check_asked(doses=grid)
        average = self._fitted.averager.average_curve(grid)
        return shape_test(average, shape, n_draws=n_draws, random_state=random_state)

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
        >>> found = forest.tests.sensitivity(0.0, 1.0)
        >>> 0 < found.robustness_of_interval() < found.robustness_value < 1
        True
        """
        rows = self._fitted.rows
        require_varied_outcome(rows, "sensitivity")
        ends = ends_to_compare(self._fitted, low, high)
        columns = feature_places(benchmark, "benchmark", rows.names, rows.X.shape[1])
        judged = training_rows_judged(self._fitted, "Sensitivity")
        return estimate_sensitivity(judged, ends, columns)

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
        X : table of shape (n_rows, n_features)
            Features, as in `fit`.
        y : array of shape (n_rows,)
            Outcomes.
        treatment : array of shape (n_rows,) or (n_rows, n_components)
            Observed doses.
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
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows, as in `fit`.
        groups : array of shape (n_rows,), optional
            Groups of the rows, as in `fit`.
        random_state : int, default=0
            Seed of the changes.

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
        >>> forest.tests.refute(data.X, data.y, data.treatment, n_repeats=2).passed  # a placebo
        True
        """
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
        ends = [end.plain for end in ends_to_compare(self._fitted, low, high)]
        rows = given_rows(X, y, treatment, sample_weight, groups)
        recipe = refitted_recipe(self._forest, kind, ends[0], {} if params is None else params)

        def effect_of(given: GivenRows) -> tuple[float, float]:
            forest = clone(recipe).fit(
                given.X,
                given.y,
                treatment=given.treatment,
                sample_weight=given.sample_weight,
                groups=given.groups,
            )
            low_end, high_end = (nearest_dose(forest.model_.support, end) for end in ends)
            effect = forest.average.effect(high_end, low_end)
            return effect.value, effect.standard_error

        with ProgressBar(n_repeats + 1, "refuting", "fit", self._forest.progress) as bar:
            return refute_effect(
                effect_of,
                rows,
                kind,
                low=ends[0],
                high=ends[1],
                n_repeats=n_repeats,
                share=share,
                seed=random_state,
                on_progress=bar.advance,
            )

    def _judged(
        self, X: Any, y: Any, treatment: Any, sample_weight: Any, groups: Any
    ) -> tuple[JudgedRows, bool]:
        """Rows to judge by, and whether they are new."""
        given = {"X": X, "y": y, "treatment": treatment}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == 3 and sample_weight is None and groups is None:
            what = "A test on the training rows"
            return training_rows_judged(self._fitted, what, or_new_rows=True), False
        if missing:
            raise ValueError(
                f"The {missing[0]!r} parameter must be given for new rows: X, y and treatment, or "
                "none of them for the training rows. Got None instead."
            )
        judged = new_rows_judged(
            self._fitted, X, y, treatment, sample_weight=sample_weight, groups=groups
        )
        return judged, True

    def _scores(
        self, judged: JudgedRows, new: bool, dose: Any, baseline: Any
    ) -> tuple[ContrastScores, Any]:
        """Scores of an effect, and its two doses."""
        model, names = self._fitted.model, ("baseline", "dose")
        start = model.baseline if baseline is None else baseline
        ends = compared_doses(start, dose, names, model.support, model.n_components)
        model.require_levels(**dict(zip(names, ends, strict=True)))
        if ends[0] == ends[1]:
            raise ValueError(
                "The 'dose' parameter must differ from the baseline. "
                f"Got {dose_text(ends[1])} for both instead."
            )
        weights = None if new else self._fitted.averager.weights.r
        return contrast_scores(judged, ends[1], ends[0], weights), ends
