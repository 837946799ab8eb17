"""A tree as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from doseforest.base.dtypes import LEAF, FloatArray
from doseforest.engine.look_inside.node_names import split_text
from doseforest.engine.look_inside.tree_view import TreeView, view_tree

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest

LONGEST_CURVE = 6  # points of a curve that are written out; of a longer one, the two at each end


def tree_text(forest: Forest, tree: int, *, max_depth: int | None, precision: int) -> str:
    """Write a tree line by line; see `ForestViews.tree_text`."""
    view = view_tree(forest, tree, max_depth)
    return "\n".join(
        f"{indent}{_line(forest, view, place, precision)}"
        for place, indent in enumerate(_indents(view))
    )


def leaf_text(forest: Forest, view: TreeView, place: int) -> str:
    """Number of a leaf, or how many leaves a split stands for whose children are not shown."""
    record = forest.nodes[view.nodes[place]]
    if record["flags"] & LEAF:
        return f"leaf {record['left']}"
    return f"… {view.n_leaves[place]} leaves"


def curve_text(curve: FloatArray, precision: int) -> str:
    """Points of a curve, only its ends when it is long.

    Examples
    --------
    >>> curve_text(np.array([0.125, 0.5]), 2), curve_text(np.arange(9.0), 2)
    ('0.12 0.5', '0 1 … 7 8')
    """
    points = [f"{value:.{precision}g}" for value in curve]
    if len(points) > LONGEST_CURVE:
        points = [*points[:2], "…", *points[-2:]]
    return " ".join(points)


def _line(forest: Forest, view: TreeView, place: int, precision: int) -> str:
    weight = f"weight {view.weights[place]:.6g}"  # mostly a number of rows
    if view.branches[place]:
        gain = f"gain {view.gains[place]:.{precision}g}"
        return f"{split_text(forest, view.nodes[place], precision)} ({gain}, {weight})"
    curve = curve_text(view.curves[place], precision)
    return f"{leaf_text(forest, view, place)}: {weight}, curve {curve}"


def _indents(view: TreeView) -> list[str]:
    """What stands before each line: bars down from the ancestors, and the side taken."""
    seen = np.zeros(view.n_shown, bool)  # whether a split's left side has been written
    indents = []
    for depth, parent in zip(view.depths.tolist(), view.parents.tolist(), strict=True):
        if parent < 0:
            indents.append("")
            continue
        indents.append("|   " * (depth - 1) + ("no  -> " if seen[parent] else "yes -> "))
        seen[parent] = True
    return indents
