"""What can be asked about the training population: average curves, effects, shifts, projections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from doseforest.base.estimates import Estimate
from doseforest.doses.compared_doses import compared_doses
from doseforest.doses.curve_effects import dose_table
from doseforest.doses.dose_values import Doses
from doseforest.estimator.averages.average_curves import AverageDoseResponse
from doseforest.inference.averages.projection_columns import projection_columns
from doseforest.inference.averages.projections import LinearProjection, project
from doseforest.inference.changes.dose_changes import AverageChange
from doseforest.inference.changes.dose_moves import AtEdge
from doseforest.inference.judgeable import require_out_of_bag, require_varied_outcome
from doseforest.inference.robust_regression import clusters_of
from doseforest.nuisance.treatment.treatment_weights import TreatmentWeights

if TYPE_CHECKING:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest

PROJECTED = ("effect", "partial_effect", "derivative")


class PopulationAverages:
    """Averages over the training population, doubly robust: ``forest.average``.

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
    >>> low, high = forest.average.effect(1.0).interval()
    >>> low < 2 < high
    True
    >>> curve = forest.average.dose_response([0.0, 1.0])
    >>> low, high = curve.band()
    >>> curve.values.round(), bool((low < [0, 2]).all() and (high > [0, 2]).all())
    (array([0., 2.]), True)
    >>> round(forest.average.partial_effect(-1.0, 1.0).value)
    2
    >>> round(forest.average.derivative().value)
    2
    >>> moved, after = forest.average.shift_effect(0.5), forest.average.shift_outcome(0.5)
    >>> round(moved.value), bool(np.isclose(after.value - data.y.mean(), moved.value))
    (1, True)
    >>> line = forest.average.best_linear_projection([0], dose=1.0)
    >>> line.names, bool(line.p_values[1] > 0.05)  # effects do not depend on the feature
    (('intercept', 'x0'), True)
    """

    def __init__(self, forest: GeneralizedCausalForest) -> None:
        self._fitted = forest._fitted

    def dose_response(
        self, doses: Any = None, *, bias_correction: bool = False
    ) -> AverageDoseResponse:
        """Average outcome of the training population at each dose, doubly robust.

        The mean of the units' out-of-bag curves plus a weighted local mean of their residuals;
        see ``density`` for the weights, which are chosen at the first call.

        Parameters
        ----------
        doses : array of shape (n_doses,), optional
            By default the forest's grid.
        bias_correction : bool, default=False
            By default the values are those of least estimated error: bandwidth, weights and the
            share of the correction by residuals trade bias for noise (method "least_error").
            With bias correction the correction is made in full, by local parabolas in place of
            lines, with a bandwidth of at most the rule of thumb (method "bias_corrected"): noisier
            values, for intervals that cover whatever the outcome model missed.

        Returns
        -------
        AverageDoseResponse
            With ``doses``, ``values``, ``standard_errors``, ``covariance``, ``bandwidth``,
            ``method``, ``interval()`` dose by dose, ``band()`` for all doses at once, and
            ``elasticity()``.

        Notes
        -----
        Standard errors are by the influence function of the stabilised estimator, clustered by
        groups: M_i + W_i (e_i - f_t(T_i)), f_t the local line (or parabola) through the residuals.
        Those of "least_error" are of the whole correction with a bandwidth of at most the rule of
        thumb, for noise of the outcomes is in the curves too.
        """
        model, averager = self._fitted.model, self._fitted.averager
        asked = dose_table(model.doses if doses is None else doses, 1, "doses", model.n_components)
        model.check_asked(doses=asked[0])
        return averager.average_curve(asked[0], bias_correction=_checked_flag(bias_correction))

    def effect(self, dose: Any, baseline: Any = None, *, bias_correction: bool = False) -> Estimate:
        """Average effect of a dose against the baseline, with its standard error.

        Parameters
        ----------
        dose : float or array of shape (n_components,)
            The dose.
        baseline : float or array of shape (n_components,), optional
            What it is compared with; by default the forest's baseline.
        bias_correction : bool, default=False
            Take the smoothing bias of the curve away. Set it where the curve bends within a
            bandwidth; standard errors grow.

        Returns
        -------
        Estimate
            The effect with its standard error, clustered by groups.
        """
        ends = self._two_doses(baseline, dose, ("baseline", "dose"))
        return self._fitted.averager.average_effect(
            ends[1], ends[0], bias_correction=_checked_flag(bias_correction)
        )

    def partial_effect(self, low: Any, high: Any, *, bias_correction: bool = False) -> Estimate:
        """Slope of the average curve between two doses: average effect per unit of dose.

        Parameters
        ----------
        low, high : float or array of shape (n_components,)
            The two doses; those of several components may differ in one of them.
        bias_correction : bool, default=False
            Take the smoothing bias of the curve away. Set it where the curve bends within a
            bandwidth; standard errors grow.

        Returns
        -------
        Estimate
            The slope with its standard error, clustered by groups.
        """
        ends = self._two_doses(low, high, ("low", "high"))
        gap = _gap(ends, "high", "low")
        effect = self._fitted.averager.average_effect(
            ends[1], ends[0], bias_correction=_checked_flag(bias_correction)
        )
        return Estimate(
            effect.value / gap, effect.standard_error / abs(gap), degrees=effect.degrees
        )

    def derivative(self) -> AverageChange:
        """Mean over units of the slope of their outcome at the dose they have, E[d mu(T, X) / dt].

        Doubly robust, with a root-n standard error clustered by groups. It needs no baseline and
        little overlap: only doses near those that units have. The slope is a difference over
        3 % of the doses' spread to either side; at an end of the range, to one side.

        Returns
        -------
        AverageChange
            With ``value``, ``standard_error`` and ``interval()``.
        """
        average: AverageChange = self._fitted.changes.slopes().average()
        return average

    def shift_effect(
        self, delta: float | None = None, *, factor: float | None = None, at_edge: AtEdge = "clip"
    ) -> AverageChange:
        """Mean change of the outcome when everyone's dose is shifted, E[mu(T + delta, X)] - E[Y].

        Doubly robust, with a root-n standard error clustered by groups; no baseline is needed, and
        overlap only between a dose and the shifted one.

        Parameters
        ----------
        delta : float, optional
            What is added to every dose; negative for less.
        factor : float, optional
            What every dose is multiplied by, in place of `delta`.
        at_edge : {"clip", "stay"}, default="clip"
            Units whose dose would leave the range of the training doses get its end,
            min(T + delta, max), or stay at their dose.

        Returns
        -------
        AverageChange
            With ``value``, ``standard_error``, ``interval()``, ``n``, ``held`` (the share of units
            at an edge) and ``representer``.
        """
        changes, support = self._fitted.changes, self._fitted.model.support
        average: AverageChange = changes.shifts(support, delta, factor, at_edge).average()
        return average

    def shift_outcome(
        self, delta: float | None = None, *, factor: float | None = None, at_edge: AtEdge = "clip"
    ) -> AverageChange:
        """Mean outcome when everyone's dose is shifted, E[mu(T + delta, X)].

        The value of the policy, where `shift_effect` has what it changes: the mean outcome as it is
        comes on top, and its noise with it.

        Parameters
        ----------
        delta : float, optional
            What is added to every dose; negative for less.
        factor : float, optional
            What every dose is multiplied by, in place of `delta`.
        at_edge : {"clip", "stay"}, default="clip"
            Units whose dose would leave the range of the training doses get its end,
            min(T + delta, max), or stay at their dose.

        Returns
        -------
        AverageChange
            With ``value``, ``standard_error`` and ``interval()``.
        """
        changes, support = self._fitted.changes, self._fitted.model.support
        scores = changes.shifts(support, delta, factor, at_edge)
        average: AverageChange = scores.of_outcomes().average()
        return average

    def best_linear_projection(
        self,
        features: Any = None,
        *,
        dose: Any = None,
        baseline: Any = None,
        of: Literal["effect", "partial_effect", "derivative"] = "effect",
    ) -> LinearProjection:
        """Regression of doubly robust scores of the units on covariates: who responds more.

        Parameters
        ----------
        features : list of names or places, or table of shape (n_rows, n_columns), optional
            Columns of the training table, or columns for its rows; by default the covariates that
            trees split on. Categories have an indicator for each label but the most frequent.
        dose : float or array of shape (n_components,), optional
            The dose whose effect is regressed. Not for "derivative".
        baseline : float or array of shape (n_components,), optional
            What it is compared with; by default the forest's baseline. Not for "derivative".
        of : {"effect", "partial_effect", "derivative"}, default="effect"
            The effect of the dose, the same per unit of dose, or the slope at the unit's observed
            dose.

        Returns
        -------
        LinearProjection
            ``print`` shows names, coefficients, standard errors, t and p values and intervals.
            Standard errors are HC3, or by groups.
        """
        rows = self._fitted.rows
        require_out_of_bag(self._fitted.plan, "A projection")
        require_varied_outcome(rows, "projections")
        scores = self._projected_scores(dose, baseline, of)
        columns, names = projection_columns(features, rows)
        clusters = clusters_of(rows.ids)
        return project(scores, columns, names, weights=rows.weights, clusters=clusters)

    @property
    def treatment_weights(self) -> TreatmentWeights:
        """The weights of averages: name, scores of all candidates, and r of each weighted row."""
        return self._fitted.averager.weights

    def _projected_scores(self, dose: Any, baseline: Any, of: Any) -> Any:
        if of not in PROJECTED:
            raise ValueError(
                f"The 'of' parameter must be one of {', '.join(PROJECTED)}. Got {of!r} instead."
            )
        if (dose is None) != (of == "derivative"):
            rule = "be left out for a derivative" if of == "derivative" else "be given"
            raise ValueError(f"The 'dose' parameter must {rule}. Got {dose!r} instead.")
        if of == "derivative":
            if baseline is not None:
                raise ValueError(
                    "The 'baseline' parameter must be left out for a derivative. "
                    f"Got {baseline!r} instead."
                )
            return self._fitted.changes.slopes().values
        ends = self._two_doses(baseline, dose, ("baseline", "dose"))
        gap = _gap(ends, "dose", "baseline") if of == "partial_effect" else 1.0
        both = self._fitted.averager.scores(ends.values)
        return (both[:, 1] - both[:, 0]) / gap

    def _two_doses(self, first: Any, second: Any, names: tuple[str, str]) -> Doses:
        model = self._fitted.model
        start = model.baseline if first is None else first
        ends = compared_doses(start, second, names, model.support, model.n_components)
        model.check_asked(**dict(zip(names, ends, strict=True)))
        return ends


def _checked_flag(bias_correction: Any) -> bool:
    if not isinstance(bias_correction, bool | np.bool_):
        raise ValueError(
            "The 'bias_correction' parameter must be True or False. "
            f"Got {bias_correction!r} instead."
        )
    return bool(bias_correction)


def _gap(ends: Doses, name: str, other: str) -> float:
    """Distance of two doses that differ in one component."""
    both = ends.table
    gaps = both[1] - both[0]
    if (gaps != 0).sum() != 1:
        rule = f"differ from {other!r}" + (" in one component" if len(gaps) > 1 else "")
        raise ValueError(f"The {name!r} parameter must {rule}. Got {both[1].tolist()} instead.")
    return float(gaps.sum())
