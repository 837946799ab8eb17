"""The methods that look inside a forest, for all that have one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from doseforest.base.dtypes import FloatArray
from doseforest.base.late import late
from doseforest.engine.look_inside.split_importance import (
    FeatureImportance,
    Measure,
    feature_importance,
)
from doseforest.engine.look_inside.tree_text import tree_text

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest


class ForestViews:
    """What can be asked about the inside of a forest; `_inspected` is the forest itself.

    Examples
    --------
    >>> import numpy as np
    >>> from doseforest import CurveForest
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    >>> forest = CurveForest(20, min_node_size=50, honesty="none", random_state=0)
    >>> forest = forest.fit(x, np.where(x[:, :1] > 0, 2.0, 1.0) * [0.0, 1.0])
    >>> forest.feature_importances_
    array([1., 0.])
    >>> print(forest.tree_text())
    x[0] <= 0.000911, missing right (gain 52.5, weight 217)
    yes -> leaf 0: weight 89, curve 0 1
    no  -> leaf 1: weight 128, curve 0 2
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _inspected(self) -> Forest:
        """The finished forest."""

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gains of all splits, shape (n_features,)."""
        return feature_importance(self._inspected).values

    def feature_importance(
        self,
        *,
        by: Measure = "gain",
        decay: float | Sequence[float] = 0.0,
        max_depth: int | None = None,
    ) -> FeatureImportance:
        """Importance of each feature, adding up to 1; 0 for all when no tree has a split.

        The importance of a feature is the sum of ``w(depth) * v`` over the splits on it, in all
        trees, over that sum for all features; v is the gain of a split, or 1 for ``by="count"``.

        Parameters
        ----------
        by : {"gain", "count"}, default="gain"
            What a split counts with. Gains are those of growth: of the ``distance`` that the forest
            was grown with, positivity term included, in the rows that grew the tree. With distance
            "l2" they are the drop of the sum of squares; for one tree and one dose, the importance
            is scikit-learn's.
        decay : float or list of floats, default=0.0
            A number a gives a split at a depth, 0 for the root, the weight ``(1 + depth) ** -a``.
            A list gives the weights of depths 0, 1, … themselves, and 0 to all below.
        max_depth : int, optional
            Count only the splits above this depth: 1 for those of the roots.

        Returns
        -------
        FeatureImportance
            ``values``, and ``names`` where the training table had them.

        Notes
        -----
        This says what trees use, not what causes the outcome. A feature that splits deep down on
        noise gains a little each time, the more the more distinct values it has; a decay or a
        depth of about 4 leaves most of that out.
        """
        return feature_importance(self._inspected, by=by, decay=decay, max_depth=max_depth)

    def tree_text(self, tree: int = 0, *, max_depth: int | None = 5, precision: int = 3) -> str:
        """Write a tree line by line: splits with their two sides below, leaves with their curves.

        A leaf's weight is that of the rows that fill it: their number when rows have no weights. A
        split below which nothing is shown has the number of its leaves, and their mean curve.

        Parameters
        ----------
        tree : int, default=0
            Number of the tree.
        max_depth : int or None, default=5
            Depth of the deepest nodes that are written, 0 for the root; None for all.
        precision : int, default=3
            Digits of thresholds, gains and curves.

        Returns
        -------
        str
            The lines.
        """
        return tree_text(self._inspected, tree, max_depth=max_depth, precision=precision)

    def plot_tree(
        self,
        tree: int = 0,
        *,
        max_depth: int | None = 3,
        precision: int = 3,
        ax: Any | None = None,
    ) -> Any:
        """Draw a tree with matplotlib: a box for each node, and the curve over the doses in leaves.

        Rows that satisfy a split go left. Curves of all leaves share one scale, written in the
        title; see `tree_text` for the rest.

        Parameters
        ----------
        tree : int, default=0
            Number of the tree.
        max_depth : int or None, default=3
            Depth of the deepest boxes, 0 for the root; None for all.
        precision : int, default=3
            Digits of thresholds and of the scale.
        ax : matplotlib axes, optional
            Where to draw; by default a new figure whose size fits the tree.

        Returns
        -------
        matplotlib axes
            ``ax.figure.savefig("tree.png")`` writes the picture.

        Raises
        ------
        ImportError
            Where matplotlib is missing: ``pip install "doseforest[plot]"``.
        """
        return late("doseforest.report.tree_plot:plot_tree")(
            self._inspected, tree, max_depth=max_depth, precision=precision, ax=ax
        )
