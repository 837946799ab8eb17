"""Who gains by a shift: forests on doubly robust scores of the training rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

from doseforest.inference.changes.dose_changes import ChangeScores
from doseforest.inference.changes.dose_moves import AtEdge
from doseforest.inference.changes.score_forests import ChangeForest, grow_change_forest
from doseforest.inference.changes.unit_shifts import UnitShifts

if TYPE_CHECKING:
    from doseforest.estimator.generalized_causal_forest import GeneralizedCausalForest


class PopulationShifts(UnitShifts):
    """Effects of shifts on units, and forests of who gains by them: ``forest.shifts``.

    Averages are at ``forest.average.shift_effect`` and ``forest.average.derivative``.

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
    >>> forest.shifts.forest(0.5, n_trees=20).predict(data.X[:3]).round()
    array([1., 1., 1.])
    """

    def __init__(self, forest: GeneralizedCausalForest) -> None:
        super().__init__(forest)
        self._fitted = forest._fitted

    def forest(
        self,
        delta: float | None = None,
        *,
        factor: float | None = None,
        at_edge: AtEdge = "clip",
        n_trees: int = 400,
        min_node_size: int = 20,
    ) -> ChangeForest:
        """Who gains by a shift: an honest forest on its doubly robust scores.

        Parameters
        ----------
        delta : float, optional
            What is added to every dose; negative for less.
        factor : float, optional
            What every dose is multiplied by, in place of `delta`.
        at_edge : {"clip", "stay"}, default="clip"
            Units whose dose would leave the range of the training doses get its end,
            min(T + delta, max), or stay at their dose.
        n_trees : int, default=400
            Trees. Raise it where two seeds give changes that differ by more than matters; time
            grows in proportion.
        min_node_size : int, default=20
            Smallest number of rows that grow a leaf. Lower it for more detail, at the cost of
            noise.

        Returns
        -------
        ChangeForest
            With ``predict(X)``, ``out_of_bag``, ``scores`` and ``average``.

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
        >>> forest.shifts.forest(0.5, n_trees=20).predict(data.X[:3]).round()
        array([1., 1., 1.])
        """
        scores = self._fitted.changes.shifts(self._model.support, delta, factor, at_edge)
        return self._change_forest(scores, n_trees, min_node_size)

    def derivative_forest(self, *, n_trees: int = 400, min_node_size: int = 20) -> ChangeForest:
        """Slopes by covariates: an honest forest on the scores of `PopulationAverages.derivative`.

        Parameters
        ----------
        n_trees : int, default=400
            Trees. Raise it where two seeds give slopes that differ by more than matters; time grows
            in proportion.
        min_node_size : int, default=20
            Smallest number of rows that grow a leaf. Lower it for more detail, at the cost of
            noise.

        Returns
        -------
        ChangeForest
            With ``predict(X)``, ``out_of_bag``, ``scores`` and ``average``.

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
        >>> forest.shifts.derivative_forest(n_trees=20).predict(data.X[:3]).round()
        array([2., 2., 2.])
        """
        return self._change_forest(self._fitted.changes.slopes(), n_trees, min_node_size)

    def _change_forest(
        self, scores: ChangeScores, n_trees: int, min_node_size: int
    ) -> ChangeForest:
        for name, value in (("n_trees", n_trees), ("min_node_size", min_node_size)):
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(
                    f"The {name!r} parameter must be an int of at least 1. Got {value!r} instead."
                )
        plan = self._fitted.plan
        return grow_change_forest(
            scores,
            self._fitted.model,
            plan.growth,
            n_trees=int(n_trees),
            min_node_size=int(min_node_size),
            seed=plan.seed,
        )
