"""The methods of a fitted forest about shapes of curves."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.doses.curve_effects import dose_table
from doseforest.inference.shapes.shape_test import ShapeTest, shape_test
from doseforest.inference.shapes.shaped_forest import shaped_forest
from doseforest.inference.shapes.shapes import Shape, check_one_component, checked_shape

if TYPE_CHECKING:
    from doseforest.estimator.averages.average_curves import AverageDoseResponse
    from doseforest.estimator.effect_forest import EffectForest


class ShapeMethods:
    """Curves of a shape, and whether the data reject it; of a `GeneralizedCausalForest`."""

    @property
    @abstractmethod
    def _model(self) -> EffectForest:
        """What answers for new units."""

    @abstractmethod
    def average_dose_response(self, doses: Any = None) -> AverageDoseResponse:
        """Average outcome at each dose."""

    def with_shape(self, shape: Shape, *, doses: Any = None) -> EffectForest:
        """Return a forest that answers with curves of a shape: the nearest to the fitted ones.

        Parameters
        ----------
        shape : str or pair of str
            "increasing" or "decreasing", "concave" or "convex", or one of each.
        doses : array of shape (n_doses,), optional
            Grid on which curves are projected, by default the forest's; between its doses curves
            are straight.

        Returns
        -------
        EffectForest
            See `doseforest.inference.shapes.shaped_forest.shaped_forest`, which also takes what
            `load_forest` reads. `test_shape` tells whether the data reject the shape.

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
        >>> curves = forest.with_shape("increasing").dose_response(data.X[:5])
        >>> bool((np.diff(curves, axis=1) >= 0).all())
        True
        """
        return shaped_forest(self, shape, doses)

    def test_shape(
        self, shape: Shape, doses: Any = None, *, n_draws: int = 10_000, random_state: int = 0
    ) -> ShapeTest:
        """Test whether the data reject that the average curve has a shape.

        Parameters
        ----------
        shape : str or pair of str
            As in `with_shape`.
        doses : array of shape (n_doses,), optional
            By default the forest's grid. Fewer doses make a sharper test, as long as they are not
            chosen by a look at the curve.
        n_draws : int, default=10000
            Draws of the noise for the p-value.
        random_state : int, default=0

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
        >>> forest.test_shape("decreasing").p_value < 0.05
        True
        """
        model = self._model
        check_one_component(model.n_components, "test_shape")
        checked_shape(shape)
        grid = model.doses if doses is None else np.unique(dose_table(doses, 1, "doses")[0])
        average = self.average_dose_response(grid)
        return shape_test(average, shape, n_draws=n_draws, random_state=random_state)
