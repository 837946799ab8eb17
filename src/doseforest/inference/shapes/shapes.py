"""Shapes of curves over the dose, as the few inequalities that say all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray

Shape = str | Sequence[str]

# Signs of the slope and of the change of the slope; 0 leaves it open.
DIRECTIONS = {"increasing": 1, "decreasing": -1}
CURVATURES = {"convex": 1, "concave": -1}


def checked_shape(shape: Any) -> tuple[str, ...]:
    """Return the names of a shape, or raise ValueError: a direction, a curvature, or one of each.

    Examples
    --------
    >>> checked_shape("concave"), checked_shape(["convex", "decreasing"])
    (('concave',), ('decreasing', 'convex'))
    """
    single = isinstance(shape, str) or not np.iterable(shape)
    names = [shape] if single else list(shape)
    known = [*DIRECTIONS, *CURVATURES]
    kinds = [[name for name in names if name in tuple(kind)] for kind in (DIRECTIONS, CURVATURES)]
    if not names or len(kinds[0] + kinds[1]) < len(names) or max(map(len, kinds)) > 1:
        raise ValueError(
            f"The 'shape' parameter must be one of {', '.join(known)}, or a direction and a "
            f"curvature such as ('decreasing', 'convex'). Got {shape!r} instead."
        )
    return tuple(kinds[0] + kinds[1])


def shape_constraints(shape: Shape, doses: FloatArray) -> FloatArray:
    """Matrix A, (n_constraints, n_doses): values z on the doses have the shape where A z >= 0.

    No row follows from the others: of a curve that is convex and increasing, the first slope is
    all that has to be asked beside the bends.

    Parameters
    ----------
    shape : str or pair of str
        See `checked_shape`.
    doses : array of shape (n_doses,)
        Ascending, no two equal.

    Examples
    --------
    >>> shape_constraints("convex", np.array([0.0, 1.0, 2.0]))
    array([[ 1., -2.,  1.]])
    >>> shape_constraints(("increasing", "convex"), np.array([0.0, 1.0, 2.0]))
    array([[-1.,  1.,  0.],
           [ 1., -2.,  1.]])
    """
    names = checked_shape(shape)
    fewest = 3 if names[-1] in CURVATURES else 2
    if len(doses) < fewest:
        raise ValueError(
            f"The 'doses' parameter must hold at least {fewest} doses for the shape "
            f"{shape_text(names)}. Got {len(doses)} instead."
        )
    gaps = np.diff(doses)
    slopes = np.diff(np.eye(len(doses)), axis=0) / gaps[:, None]
    direction = next((DIRECTIONS[name] for name in names if name in DIRECTIONS), 0)
    curvature = next((CURVATURES[name] for name in names if name in CURVATURES), 0)
    if not curvature:
        return direction * slopes
    bends = curvature * np.diff(slopes, axis=0)
    if not direction:
        return bends
    # A convex curve is least steep at its start, a concave one at its end. The constraint stands
    # next to those of the same doses, which keeps systems of equations banded.
    if direction == curvature:
        return np.vstack([direction * slopes[0], bends])
    return np.vstack([bends, direction * slopes[-1]])


def shape_text(names: tuple[str, ...]) -> str:
    """Names in words.

    >>> shape_text(("decreasing", "convex"))
    'decreasing and convex'
    """
    return " and ".join(names)


def check_one_component(n_components: int, method: str) -> None:
    """Raise ValueError where doses have several components: shapes are those of one quantity."""
    if n_components > 1:
        raise ValueError(
            f"The 'treatment' parameter must have one component for {method}. "
            f"Got doses of {n_components} components instead."
        )
