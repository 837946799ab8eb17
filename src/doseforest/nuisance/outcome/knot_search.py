"""Where covariates bend or jump: the best hinge and the best step, for each function of the dose.

What main effects leave of the outcome is regressed on B_k(t) and x B_k(t), and on one more product
with B_k(t), a hinge or a step of x, at each of up to 254 quantiles of x. All of these regressions
follow from sums by bin. The search runs without each fold, so that what a fold says of the terms is
said without its help, but for its part in the main effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray, IntArray

N_BINS = 255
MIN_SHARE = 0.02  # of the weight on either side of a knot
SEEN = 1e-3  # of a product's square that lines must leave for its coefficient to be known
MAX_FOUND = 100  # knots of a kind that one search may find, the best of all covariates

Found: TypeAlias = list[tuple[float, int, float]]  # gain, covariate, knot


@dataclass(frozen=True, slots=True)
class FoundKnots:
    """Knots of one kind, and the searches that found them."""

    feature: NDArray[np.int64]  # (n_knots,)
    knot: FloatArray  # (n_knots,)
    found: NDArray[np.bool_]  # (n_folds, n_knots): without each fold

    def none(self) -> FoundKnots:
        """The same knots as if no search had found them."""
        return replace(self, found=np.zeros_like(self.found))


@dataclass(frozen=True, slots=True)
class _EdgeSums:
    """Sums over the rows above each edge of the bins, for one covariate and one dose function.

    The first entry of each is the sum over all rows.
    """

    weight: FloatArray
    square: FloatArray  # B^2
    line: FloatArray  # x B^2
    bend: FloatArray  # x^2 B^2
    outcome: FloatArray  # B e
    slope: FloatArray  # x B e

    @property
    def lines(self) -> tuple[float, float, float, float]:
        """Products of B and x B, whose inverse solves for their coefficients."""
        return self.square[0], self.line[0], self.line[0], self.bend[0]

    def steps(self, edges: FloatArray, lines: FloatArray) -> FloatArray:
        """What adding a step at each edge explains."""
        with_lines = np.stack([self.square[1:], self.line[1:]])
        return self._explained(lines, with_lines, self.square[1:], self.outcome[1:])

    def hinges(self, edges: FloatArray, lines: FloatArray) -> FloatArray:
        """What adding a hinge at each edge explains."""
        square, line, bend = self.square[1:], self.line[1:], self.bend[1:]
        with_lines = np.stack([line - edges * square, bend - edges * line])
        own = bend - 2 * edges * line + edges**2 * square
        outcome = self.slope[1:] - edges * self.outcome[1:]
        return self._explained(lines, with_lines, own, outcome)

    def _explained(
        self, lines: FloatArray, with_lines: FloatArray, square: FloatArray, outcome: FloatArray
    ) -> FloatArray:
        left = square - (with_lines * (lines @ with_lines)).sum(axis=0)
        partial = outcome - with_lines.T @ (lines @ np.array([self.outcome[0], self.slope[0]]))
        share = self.weight[1:] / max(self.weight[0], 1e-300)
        known = left > SEEN * np.maximum(square, 1e-300)
        known &= (share >= MIN_SHARE) & (share <= 1 - MIN_SHARE)
        return np.where(known, partial**2 / np.where(known, left, 1.0), 0.0)


KINDS = {"hinge": _EdgeSums.hinges, "step": _EdgeSums.steps}


def knot_edges(column: FloatArray) -> FloatArray:
    """Places at which a covariate may have a knot: up to 254 quantiles."""
    return np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS))


class KnotSearch:
    """Searches without each fold, from sums by fold.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 1001)
    >>> ones, folds, jump = np.ones(1001), np.arange(1001) % 2, (x > 0.3) - 0.7
    >>> sums = sums_by_bin(ones, x, jump[None], ones, folds, 2, knot_edges(x))
    >>> search = KnotSearch(n_folds=2)
    >>> search.add(0, knot_edges(x), [sums_above(sums, 0)])
    >>> np.unique(search.found()["step"].knot.round(2))
    array([0.3])
    """

    def __init__(self, n_folds: int) -> None:
        self._n_folds = n_folds
        self._found: dict[str, list[Found]] = {kind: [[] for _ in range(n_folds)] for kind in KINDS}

    def add(self, feature: int, edges: FloatArray, sums: Iterable[FloatArray]) -> None:
        """Search a covariate; `sums` has one array (6, n_folds, n_bins) per dose function."""
        folds = range(self._n_folds)
        kept = [[fold for fold in folds if fold != left_out] for left_out in folds]
        each = [_EdgeSums(*own[:, rest].sum(axis=1)) for own in sums for rest in kept]
        lines = np.linalg.pinv(np.array([own.lines for own in each]).reshape(-1, 2, 2))
        for place, (own, inverse) in enumerate(zip(each, lines, strict=True)):
            for kind, explained in KINDS.items():
                gains = explained(own, edges, inverse)
                best = int(gains.argmax())
                if gains[best] > 0:
                    found = self._found[kind][place % self._n_folds]
                    found.append((gains[best], feature, edges[best]))

    def found(self) -> dict[str, FoundKnots]:
        """The best knots of each kind, of all covariates."""
        return {kind: _merged(searches) for kind, searches in self._found.items()}


def sums_by_bin(
    function: FloatArray,
    column: FloatArray,
    residuals: FloatArray,
    weights: FloatArray,
    folds: IntArray,
    n_folds: int,
    edges: FloatArray,
) -> FloatArray:
    """Sums over the rows of each fold in each bin, (4 + 2 n_searches, n_folds, n_bins).

    Parameters
    ----------
    function : array of shape (n_rows,)
        Of the dose.
    column : array of shape (n_rows,)
        A covariate, without missing values.
    residuals : array of shape (n_searches, n_rows)
        What main effects leave of the outcome. All else is the same for all searches.
    weights : array of shape (n_rows,)
    folds : array of shape (n_rows,)
        The fold of each row, from 0.
    edges : array of shape (n_bins - 1,)
    """
    shape = n_folds, len(edges) + 1
    cells = folds * shape[1] + np.searchsorted(edges, column)
    square = weights * function**2
    summed = [weights, square, square * column, square * column**2]
    for residual in residuals:
        outcome = weights * function * residual
        summed += [outcome, outcome * column]
    in_bin: FloatArray = np.stack([np.bincount(cells, own, shape[0] * shape[1]) for own in summed])
    return in_bin.reshape(-1, *shape)


def sums_above(by_bin: FloatArray, search: int) -> FloatArray:
    """Sums of one search in a bin or any above it, (..., 6, n_folds, n_bins)."""
    places = [0, 1, 2, 3, 4 + 2 * search, 5 + 2 * search]
    above: FloatArray = by_bin[..., places, :, ::-1].cumsum(axis=-1)[..., ::-1]
    return above


def together(searches: Sequence[FoundKnots]) -> list[FoundKnots]:
    """The knots of all searches in one list, for each search with what it has found."""
    pairs = [list(zip(own.feature.tolist(), own.knot.tolist(), strict=True)) for own in searches]
    every = sorted({pair for own in pairs for pair in own})
    number = {pair: place for place, pair in enumerate(every)}
    features = np.array([feature for feature, _ in every], np.int64)
    knots = np.array([knot for _, knot in every], np.float64)
    out = []
    for own, mine in zip(searches, pairs, strict=True):
        marks = np.zeros((len(own.found), len(every)), bool)
        marks[:, [number[pair] for pair in mine]] = own.found
        out.append(FoundKnots(features, knots, marks))
    return out


def _merged(searches: list[Found]) -> FoundKnots:
    """The best knots of each search, each knot once."""
    best = [{(f, knot) for _, f, knot in sorted(own)[-MAX_FOUND:]} for own in searches]
    every = sorted(set().union(*best))
    return FoundKnots(
        np.array([feature for feature, _ in every], np.int64),
        np.array([knot for _, knot in every], np.float64),
        np.array([[one in own for one in every] for own in best], bool),
    )
