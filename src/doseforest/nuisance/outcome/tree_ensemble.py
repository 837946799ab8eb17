"""Boosted trees as plain arrays, scored by the compiled core: no boosting library, no code.

So that a file can hold them; what comes out of one is checked before anything walks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from doseforest import _core
from doseforest.base.dtypes import (
    LEAF,
    MISSING_LEFT,
    NODE_DTYPE,
    ZERO_MISSING,
    Array,
    DoseArray,
    FloatArray,
    IntArray,
)
from doseforest.doses.dose_values import MAX_COMPONENTS, Doses
from doseforest.doses.stored_values import FLOATS, INTEGERS, ArrayTypes, FileChecks
from doseforest.engine.node_checks import check_trees

LINKS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identity": np.positive,
    "logistic": expit,
    "clipped": lambda values: np.clip(values, 0.0, 1.0),
}
CHECKS = FileChecks("outcome model")
TREE_ARRAYS: ArrayTypes = {
    "roots": (INTEGERS, 1),
    "nodes": (NODE_DTYPE, 1),
    "leaf_values": (FLOATS, 1),
    "leaf_constants": (FLOATS, 1),
    "leaf_slopes": (FLOATS, 1),
    "term_starts": (INTEGERS, 1),
    "term_features": (np.dtype("<i4"), 1),
    "term_coefficients": (FLOATS, 1),
}


@dataclass(frozen=True, slots=True, eq=False)
class TreeEnsemble:
    """A sum of trees of covariates and dose, each leaf a line in some of them.

    The dose is the last feature, number `n_features`; the components of a dose are the last ones. A
    row that lacks one of its leaf's covariates gets the leaf's plain value.

    Examples
    --------
    >>> from doseforest.nuisance.outcome.boosting import PLAIN_TREES, fit_boosting
    >>> x, t = np.arange(60.0)[:, None], np.tile([0.0, 1.0], 30)
    >>> trees = fit_boosting(x, t, 3 * t, PLAIN_TREES)
    >>> trees.curves(x[:2], np.array([1.0, 0.0])).round(1)
    array([[3., 0.],
           [3., 0.]])
    >>> trees.shorter(1).n_trees
    1
    """

    roots: IntArray  # (n_stored_trees,)
    nodes: Array  # (n_nodes,) NODE_DTYPE, tree after tree, breadth-first in each
    leaf_values: FloatArray  # (n_leaves,) where one of the leaf's covariates is missing
    leaf_constants: FloatArray  # (n_leaves,)
    leaf_slopes: FloatArray  # (n_leaves,) by the dose
    term_starts: IntArray  # (n_leaves + 1,) first term of each leaf, and the end of the last
    term_features: NDArray[np.int32]  # (n_terms,) covariates
    term_coefficients: FloatArray  # (n_terms,)
    n_features: int  # covariates, without the dose
    n_trees: int  # how many of the stored trees count
    link: str  # one of LINKS
    n_components: int = 1  # of a dose

    def predict(self, X: FloatArray, dose: FloatArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at its own dose."""
        return self.curves(X, dose[:, None], n_threads=n_threads)[:, 0]

    def curves(self, X: FloatArray, doses: DoseArray, *, n_threads: int = 1) -> FloatArray:
        """Mean outcome of each row at each dose, (n_rows, n_doses).

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            NaN is missing.
        doses : array of shape (n_doses,) or (n_rows, n_doses)
            A grid, or each row's own doses, in any order.
        n_threads : int, default=1
            The number does not change a bit of the result.
        """
        table = np.atleast_2d(doses)
        self._check(X, doses, table)
        if self.n_components > 1:
            return self._joint_curves(X, doses, n_threads)
        return LINKS[self.link](self._scores(X, table, n_threads))

    def _joint_curves(self, X: FloatArray, doses: DoseArray, n_threads: int) -> FloatArray:
        """Curves along the last component; the others join the covariates."""
        parts = Doses.of(doses).table
        scores = np.empty((len(X), parts.shape[-2]))
        if doses.ndim == 1:
            starts, owner = np.unique(parts[:, :-1], axis=0, return_inverse=True)
            for place, start in enumerate(starts):
                own = np.flatnonzero(owner.ravel() == place)
                joined = np.column_stack([X, np.tile(start, (len(X), 1))])
                scores[:, own] = self._scores(joined, parts[None, own, -1], n_threads)
        else:
            for place in range(parts.shape[1]):
                joined = np.column_stack([X, parts[:, place, :-1]])
                scores[:, [place]] = self._scores(joined, parts[:, place, -1:], n_threads)
        return LINKS[self.link](scores)

    def _scores(self, X: FloatArray, table: FloatArray, n_threads: int) -> FloatArray:
        """Sums over trees, before the link, at doses (n_rows or 1, n_doses)."""
        order = np.argsort(table, axis=1, kind="stable")
        scores = np.empty((len(X), table.shape[1]))
        _core.score(
            self.roots[: self.n_trees],
            self.nodes.view(np.uint8),
            self.leaf_values,
            self.leaf_constants,
            self.leaf_slopes,
            self.term_starts,
            self.term_features,
            self.term_coefficients,
            np.ascontiguousarray(X, np.float64),
            np.ascontiguousarray(np.take_along_axis(table, order, axis=1), np.float64),
            n_threads,
            scores,
        )
        as_given = np.empty_like(scores)
        np.put_along_axis(as_given, np.broadcast_to(order, scores.shape), scores, axis=1)
        return as_given

    def shorter(self, n_trees: int) -> TreeEnsemble:
        """Return the first trees alone; the arrays are shared."""
        return replace(self, n_trees=min(n_trees, self.n_trees))

    def _check(self, X: FloatArray, doses: DoseArray, table: DoseArray) -> None:
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(
                f"The 'X' parameter must have shape (n_rows, {self.n_features}), as in training. "
                f"Got shape {X.shape} instead."
            )
        if table.ndim != 2 or (doses.ndim == 2 and len(doses) != len(X)):
            raise ValueError(
                f"The 'doses' parameter must be a grid or have one row per row of X ({len(X)}). "
                f"Got shape {doses.shape} instead."
            )
        numbers = table[..., None] if table.dtype.names is None else Doses.of(table).table
        if numbers.shape[-1] != self.n_components:
            raise ValueError(
                f"The 'doses' parameter must have {self.n_components} component(s), as in "
                f"training. Got {numbers.shape[-1]} instead."
            )
        if not np.isfinite(numbers).all():
            raise ValueError(
                "The 'doses' parameter must be finite. "
                f"Got {numbers[~np.isfinite(numbers)][0]} instead."
            )

    @property
    def dose_components(self) -> set[int]:
        """Number of components of the doses that they are of."""
        return {self.n_components}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Plain values and arrays of the trees."""
        values: dict[str, Any] = {"n_trees": self.n_trees, "link": self.link}
        if self.n_components > 1:
            values["n_components"] = self.n_components
        return values, {name: getattr(self, name) for name in TREE_ARRAYS}

    @classmethod
    def from_arrays(
        cls, values: Mapping[str, Any], arrays: Mapping[str, Array], n_features: int
    ) -> TreeEnsemble:
        """Put trees together again; ForestFileError if they cannot be walked."""
        own = CHECKS.arrays(arrays, TREE_ARRAYS)
        n_leaves, n_terms = len(own["leaf_values"]), len(own["term_features"])
        n_components = 1
        if "n_components" in values:
            n_components = CHECKS.count(values, "n_components", 2, MAX_COMPONENTS)
        check_trees(
            own["nodes"],
            own["roots"],
            n_leaves=n_leaves,
            n_features=n_features + n_components,  # the dose comes last
            flags=LEAF | MISSING_LEFT | ZERO_MISSING,
            owner=CHECKS.owner,
        )
        starts = own["term_starts"]
        CHECKS.require(
            len(own["leaf_constants"]) == n_leaves
            and len(own["leaf_slopes"]) == n_leaves
            and len(own["term_coefficients"]) == n_terms
            and len(starts) == n_leaves + 1,
            "has terms that do not fit its leaves",
        )
        CHECKS.require(
            starts[0] == 0 and starts[-1] == n_terms and bool((starts[1:] >= starts[:-1]).all()),
            "has terms out of order",
        )
        features, n_covariates = own["term_features"], n_features + n_components - 1
        inside = (features >= 0) & (features < n_covariates)
        CHECKS.require(bool(inside.all()), "has a term of no covariate")
        link = values["link"]
        CHECKS.require(link in LINKS, f"has the unknown link {link!r:.80}")
        n_trees = CHECKS.count(values, "n_trees", 1, len(own["roots"]))
        return cls(
            **own, n_features=n_features, n_trees=n_trees, link=link, n_components=n_components
        )
