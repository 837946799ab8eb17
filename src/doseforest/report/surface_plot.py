"""The outcome over two doses as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.grids import as_doses
from doseforest.report.pictures import INK, plain_axes

FILLS = 24
CONTOURS = 8
HATCHED_BELOW = 0.1  # share of units, as for warnings of poor overlap


def plot_surface(
    first: Any,
    second: Any,
    values: Any,
    *,
    labels: tuple[str, str, str] = ("first dose", "second dose", "outcome"),
    observed: Any = None,
    supported: Any = None,
    ax: Any | None = None,
) -> Any:
    """Draw values over a grid of two doses: shades, and contours with their values.

    Parameters
    ----------
    first, second : arrays of shape (n_first,) and (n_second,)
        Ascending doses, at least two of each.
    values : array of shape (n_first, n_second)
        NaN leaves a hole, as where no unit could have had both doses.
    labels : tuple of three strings
        Of the two axes and of the values.
    observed : array of shape (n_rows, 2), optional
        Doses that were observed, as small dots: beyond them the surface is a guess.
    supported : array of shape (n_first, n_second), optional
        Share of units that could have had both doses: below 10 % the surface is hatched.
    ax : matplotlib axes, optional

    Returns
    -------
    The axes.

    Examples
    --------
    >>> doses = np.linspace(0.0, 1.0, 5)
    >>> ax = plot_surface(doses, doses, np.add.outer(doses, doses**2))
    >>> ax.get_xlabel()
    'first dose'
    """
    across, up = as_doses(first, "first"), as_doses(second, "second")
    for doses, name in ((across, "first"), (up, "second")):
        if len(doses) < 2 or (np.diff(doses) <= 0).any():
            raise ValueError(
                f"The {name!r} parameter must hold at least two ascending doses. "
                f"Got {doses.tolist()} instead."
            )
    table = np.ma.masked_invalid(np.asarray(values, np.float64))
    if table.shape != (len(across), len(up)):
        raise ValueError(
            f"The 'values' parameter must have shape ({len(across)}, {len(up)}), a row for each "
            f"dose of 'first'. Got {table.shape} instead."
        )
    ax = plain_axes(ax, (6.4, 4.8))
    if supported is not None and np.shape(supported) != table.shape:
        raise ValueError(
            f"The 'supported' parameter must have shape {table.shape}, as 'values'. "
            f"Got {np.shape(supported)} instead."
        )
    shades = ax.contourf(across, up, table.T, levels=FILLS, cmap="viridis")
    lines = ax.contour(
        across, up, table.T, levels=CONTOURS, colors="white", linewidths=0.9, linestyles="solid"
    )
    ax.clabel(lines, fontsize="small", fmt=lambda value: f"{value:g}")
    if supported is not None:
        _hatch(ax, across, up, np.asarray(supported, np.float64))
    if observed is not None:
        pairs = np.asarray(observed, np.float64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                f"The 'observed' parameter must have shape (n_rows, 2). Got {pairs.shape} instead."
            )
        ax.plot(*pairs.T, ".", color="white", markersize=2, alpha=0.6)
    bar = ax.figure.colorbar(shades, ax=ax, pad=0.02)
    bar.set_label(labels[2])
    bar.outline.set_visible(False)
    ax.set(xlabel=labels[0], ylabel=labels[1])
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    return ax


def _hatch(ax: Any, across: FloatArray, up: FloatArray, supported: FloatArray) -> None:
    """Lines over the part that hardly any unit could have had, and a note that says so."""
    if supported.min() >= HATCHED_BELOW:
        return
    part = ax.contourf(
        across, up, supported.T, levels=[-1.0, HATCHED_BELOW], colors="none", hatches=["///"]
    )
    part.set(edgecolor="white", linewidth=0.0)
    note = f"hatched: fewer than {HATCHED_BELOW:.0%} of the units could have had both"
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize="small", va="bottom", color=INK)
