"""The nearest curve of a shape, for many curves at once.

A shape is a cone {z: A z >= 0} with independent rows. The nearest point of the cone is
z = y + S A' m with the least-squares multipliers m >= 0 of the constraints, S the inverse of the
metric. The multipliers are found by block principal pivoting (Kim and Park, 2011): guess which
constraints bind, solve for these, flip every wrong guess, and only the last one where flipping all
of them does not help. The guess that is right gives the projection exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray

ROWS_AT_ONCE = 4096  # whose systems of equations are in memory together
PATIENCE = 3  # flips of all wrong guesses that may fail to bring their number down
TOLERANCE = 1e-10  # of the largest multiplier or slack of a row: below it, zero
LEAST_SPREAD = 1e-8  # of a dose, as a share of the largest: metrics are finite
MOST_ROUNDS = 1000  # ten or so are usual


def project(
    values: FloatArray, constraints: FloatArray, spread: FloatArray | None = None
) -> FloatArray:
    """Nearest points with A z >= 0, row by row, shape (n_rows, n_doses).

    Parameters
    ----------
    values : array of shape (n_rows, n_doses)
    constraints : array of shape (n_constraints, n_doses)
        A, of independent rows; see `shapes.shape_constraints`.
    spread : array of shape (n_doses,) or (n_doses, n_doses), optional
        Inverse of the metric: variances, or a covariance; by default all doses count alike.

    Examples
    --------
    >>> from doseforest.inference.shapes.shapes import shape_constraints
    >>> doses = np.array([0.0, 1.0, 2.0])
    >>> project(np.array([[0.0, 2.0, 1.0]]), shape_constraints("increasing", doses))
    array([[0. , 1.5, 1.5]])
    """
    return values + multipliers_and_moves(values, constraints, spread)[1]


def squared_distances(
    values: FloatArray, constraints: FloatArray, spread: FloatArray | None = None
) -> FloatArray:
    """Squared distance of each row to the shape in the metric, shape (n_rows,).

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 2.0], [2.0, 0.0]]), np.array([[-1.0, 1.0]]))
    array([0., 2.])
    """
    multipliers, moves = multipliers_and_moves(values, constraints, spread)
    distances: FloatArray = np.maximum((multipliers * (moves @ constraints.T)).sum(axis=1), 0.0)
    return distances


def multipliers_and_moves(
    values: FloatArray, constraints: FloatArray, spread: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Multipliers of the constraints (n_rows, n_constraints), and how far rows have to move."""
    if spread is None:
        spread = np.ones(values.shape[1])
    elif spread.ndim == 1:
        # A dose without noise is as good as fixed; where none has any, all count alike.
        largest = spread.max()
        spread = np.maximum(spread, LEAST_SPREAD * largest) if largest > 0 else np.ones(len(spread))
    steps = constraints * spread if spread.ndim == 1 else constraints @ spread
    gram = steps @ constraints.T
    # Slopes of close doses are large numbers: constraints of one size keep the systems even.
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    if (scale == 0).any():
        raise ValueError(
            "The 'spread' parameter must leave every constraint some variance. "
            f"Got {int((scale == 0).sum())} of {len(scale)} without any instead."
        )
    even = gram / np.outer(scale, scale)
    short = -(values @ constraints.T) / scale
    multipliers = np.zeros(short.shape)
    for first in range(0, len(values), ROWS_AT_ONCE):
        rows = first + np.flatnonzero((short[first : first + ROWS_AT_ONCE] > 0).any(axis=1))
        multipliers[rows] = _pivoted(even, short[rows])
    multipliers /= scale
    return multipliers, multipliers @ steps


def _pivoted(gram: FloatArray, target: FloatArray) -> FloatArray:
    """Minimise x'Gx / 2 - x't over x >= 0 for every row t of the target."""
    answer = np.zeros(target.shape)
    binding = target > 0
    todo = np.arange(len(target))
    fewest, patience = np.full(len(target), target.shape[1] + 1), np.full(len(target), PATIENCE)
    for _ in range(MOST_ROUNDS):
        if not len(todo):
            break
        guess = _solved(gram, target[todo], binding[todo])
        wrong = _wrong_guesses(guess, guess @ gram - target[todo], binding[todo])
        n_wrong = wrong.sum(axis=1)
        answer[todo] = np.maximum(guess, 0.0)
        better = n_wrong < fewest[todo]
        patience[todo] = np.where(better, PATIENCE, patience[todo] - 1)
        fewest[todo] = np.where(better, n_wrong, fewest[todo])
        last = wrong.shape[1] - 1 - np.argmax(wrong[:, ::-1], axis=1)
        only_last = wrong & (np.arange(wrong.shape[1]) == last[:, None])
        binding[todo] ^= np.where((patience[todo] >= 0)[:, None], wrong, only_last)
        todo = todo[n_wrong > 0]
    return answer


def _solved(gram: FloatArray, target: FloatArray, binding: NDArray[np.bool_]) -> FloatArray:
    """Solutions for the constraints that bind; 0 for the others.

    By L D L' of every row's own system, all rows side by side. Constraints far apart share no
    dose: in the plain metric the systems have two diagonals beside their own, and so has L.
    """
    n_constraints = len(gram)
    width = int(np.abs(np.subtract(*np.nonzero(gram))).max())
    used = np.ascontiguousarray(binding.T, np.float64)  # (n_constraints, n_rows)
    solved = np.where(binding, target, 0.0).T.copy()
    below: dict[tuple[int, int], FloatArray] = {}  # L
    diagonal = np.empty(used.shape)  # D
    for j in range(n_constraints):
        first = max(0, j - width)
        pivot = np.ones(used.shape[1])  # of an even gram, and of what is left out
        for k in range(first, j):
            entry = gram[j, k] * used[j] * used[k]
            for p in range(max(first, k - width), k):
                entry -= below[j, p] * diagonal[p] * below[k, p]
            below[j, k] = entry / diagonal[k]
            pivot -= below[j, k] * entry
            solved[j] -= below[j, k] * solved[k]
        diagonal[j] = pivot
    solved /= diagonal
    for j in range(n_constraints - 1, -1, -1):
        for k in range(j + 1, min(n_constraints, j + width + 1)):
            solved[j] -= below[k, j] * solved[k]
    return np.ascontiguousarray(solved.T)


def _wrong_guesses(
    guess: FloatArray, slack: FloatArray, binding: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Constraints that bind with a negative multiplier, and those left out that are violated."""
    zero = TOLERANCE * np.abs(guess).max(axis=1, keepdims=True)
    wrong: NDArray[np.bool_] = np.where(binding, guess < -zero, slack < -zero)
    return wrong
