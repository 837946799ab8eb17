"""A tree as a picture: boxes with splits and weights, and a small curve in every leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.engine.look_inside.node_names import split_text
from doseforest.engine.look_inside.tree_text import leaf_text
from doseforest.engine.look_inside.tree_view import TreeView, view_tree
from doseforest.report.pictures import pyplot

if TYPE_CHECKING:
    from doseforest.engine.forest import Forest

MOST_BOXES = 511  # a full tree of depth 8; more would not be read
FONT_SIZE = 8
INCHES_PER_LETTER = 0.085  # at that size, with a margin
BOX_WIDTH, BOX_HEIGHT = 0.94, 0.62  # of the room that each box has
LEVEL_INCHES = 1.05


def plot_tree(
    forest: Forest, tree: int, *, max_depth: int | None, precision: int, ax: Any | None
) -> Any:
    """Draw a tree; see `ForestViews.plot_tree`."""
    plt = pyplot("Pictures of trees")
    view = view_tree(forest, tree, max_depth)
    if view.n_shown > MOST_BOXES:
        raise ValueError(
            f"The 'max_depth' parameter must leave at most {MOST_BOXES} boxes to draw. "
            f"Got {max_depth!r} instead, which leaves {view.n_shown}."
        )
    captions = [_caption(forest, view, place, precision) for place in range(view.n_shown)]
    centres = box_centres(view)
    if ax is None:
        letters = max(len(line) for caption in captions for line in caption.splitlines())
        n_slots, n_levels = int((~view.branches).sum()), int(view.depths.max()) + 1
        width = n_slots * max(1.0, INCHES_PER_LETTER * letters)
        _, ax = plt.subplots(
            figsize=(max(4.0, width), LEVEL_INCHES * n_levels + 0.4), layout="constrained"
        )
    _draw_links(ax, view, centres)
    _draw_boxes(ax, view, centres, captions)
    low, high = _draw_curves(ax, forest, view, centres)
    ax.set_title(
        f"Tree {tree}: curves from {low:.{precision}g} to {high:.{precision}g}", fontsize=FONT_SIZE
    )
    ax.set_xlim(-0.5, (~view.branches).sum() - 0.5)
    ax.set_ylim(-view.depths.max() - 0.5, 0.5)
    ax.axis("off")
    return ax


def box_centres(view: TreeView) -> FloatArray:
    """Centre of each node's box, (n_shown, 2): leaves side by side, splits above their middle."""
    across = np.zeros(view.n_shown)
    across[~view.branches] = np.arange((~view.branches).sum())  # reading order is left to right
    for depth in range(int(view.depths.max()), 0, -1):
        level = np.flatnonzero(view.depths == depth)  # siblings: left ones first in every pair
        np.add.at(across, view.parents[level], across[level] / 2)
    return np.column_stack([across, -view.depths.astype(np.float64)])


def _caption(forest: Forest, view: TreeView, place: int, precision: int) -> str:
    weight = f"weight {view.weights[place]:.6g}"
    if not view.branches[place]:
        return f"{leaf_text(forest, view, place)}\n{weight}"
    condition, _, missing = split_text(forest, int(view.nodes[place]), precision).rpartition(", ")
    return "\n".join(line for line in (condition, missing, weight) if line)


def _draw_links(ax: Any, view: TreeView, centres: FloatArray) -> None:
    children = np.flatnonzero(view.parents >= 0)
    ends = np.stack([centres[view.parents[children]], centres[children]])  # (2, n_links, 2)
    ax.plot(ends[..., 0], ends[..., 1], color="0.6", linewidth=0.8, zorder=0)


def _draw_boxes(ax: Any, view: TreeView, centres: FloatArray, captions: list[str]) -> None:
    from matplotlib.patches import Rectangle

    for place, (x, y) in enumerate(centres):
        corner = (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2)
        face = "white" if view.branches[place] else "0.94"
        ax.add_patch(
            Rectangle(corner, BOX_WIDTH, BOX_HEIGHT, facecolor=face, edgecolor="0.3", zorder=1)
        )
        if view.branches[place]:
            ax.text(x, y, captions[place], ha="center", va="center", fontsize=FONT_SIZE, zorder=2)
        else:  # above the curve
            top = y + BOX_HEIGHT * 0.45
            ax.text(x, top, captions[place], ha="center", va="top", fontsize=FONT_SIZE, zorder=2)


def _draw_curves(
    ax: Any, forest: Forest, view: TreeView, centres: FloatArray
) -> tuple[float, float]:
    """Draw the curves of leaves into their boxes on one scale, and return its ends."""
    curves = view.curves[~view.branches]
    n_points = curves.shape[1]
    grid = np.array(forest.doses if forest.doses is not None else ())
    if len(grid) != n_points:  # coefficients, or curves on no named grid
        grid = np.arange(float(n_points))
    low, high = float(curves.min()), float(curves.max())
    across = (grid - grid[0]) / max(grid[-1] - grid[0], np.finfo(float).tiny) - 0.5
    up = (curves - low) / max(high - low, np.finfo(float).tiny)
    for (x, y), heights in zip(centres[~view.branches], up, strict=True):
        ax.plot(
            x + 0.85 * BOX_WIDTH * across,
            y + BOX_HEIGHT * (0.38 * heights - 0.44),
            color="C0",
            linewidth=1.2,
            marker="." if n_points == 1 else None,
            zorder=2,
        )
    return low, high
