"""Curves on a grid of doses, read between its doses."""

from __future__ import annotations

from itertools import product

import numpy as np

from doseforest.base.dtypes import DoseArray, FloatArray, IntArray
from doseforest.doses.dose_values import Doses


def interpolated(grid: DoseArray, curves: FloatArray, doses: DoseArray) -> FloatArray:
    """Curves (n_units, ...) on a grid at doses, constant beyond the grid.

    The doses are a row for each unit, or one row for all.

    Examples
    --------
    >>> interpolated(np.array([0.0, 2.0]), np.array([[0.0, 4.0]]), np.array([[0.5, 9.0]]))
    array([[1., 4.]])
    """
    shape = len(curves), doses.shape[1]
    if Doses.of(grid).joint:
        return joint_interpolated(grid, curves, np.broadcast_to(doses, shape))
    if len(grid) == 1:
        return np.broadcast_to(curves, shape).copy()
    right = np.clip(np.searchsorted(grid, doses), 1, len(grid) - 1)
    share = np.clip((doses - grid[right - 1]) / (grid[right] - grid[right - 1]), 0.0, 1.0)
    if len(doses) == 1:
        low, high = curves[:, right[0] - 1], curves[:, right[0]]
    else:
        low = np.take_along_axis(curves, right - 1, axis=1)
        high = np.take_along_axis(curves, right, axis=1)
    between: FloatArray = low + share * (high - low)
    return between


def joint_interpolated(grid: DoseArray, curves: FloatArray, doses: DoseArray) -> FloatArray:
    """Curves on a grid at a table of doses; linear in each component, constant beyond the grid.

    A grid that is not made of every combination of its components' values holds levels, as arms
    with doses of their own: then the component with the fewest values must be one of these.

    Parameters
    ----------
    grid : array of shape (n_grid,)
        Ascending.
    curves : array of shape (n_units or 1, n_grid)
    doses : array of shape (n_units, n_doses)

    Examples
    --------
    >>> from doseforest.doses.dose_values import Doses
    >>> grid = Doses.product([np.array([0.0, 1.0]), np.array([0.0, 2.0])]).values
    >>> middle = Doses.of_table(np.array([[[0.5, 1.0]]])).values
    >>> joint_interpolated(grid, np.array([[0.0, 2.0, 1.0, 3.0]]), middle)
    array([[1.5]])
    """
    return _at(Doses.of(grid).table, curves, Doses.of(doses).table)


def _at(grid: FloatArray, curves: FloatArray, table: FloatArray) -> FloatArray:
    """Curves on a grid (n_grid, n_components) at doses (n_units, n_doses, n_components)."""
    axes = [np.unique(column) for column in grid.T]
    if len(grid) == np.prod([len(axis) for axis in axes]):
        return _multilinear(axes, curves, table)
    # What is not a product has levels: those of the component with the fewest values.
    few = int(np.argmin([len(axis) for axis in axes]))
    rest = [k for k in range(len(axes)) if k != few]
    known = np.isin(table[..., few], axes[few])
    if not known.all():
        raise ValueError(
            f"The 'doses' parameter must hold levels seen in fit, {axes[few].tolist()}, in "
            f"component {few}. Got {table[~known][0, few]:g} instead."
        )
    out = np.empty(table.shape[:-1])  # every dose has one of the levels
    for level in axes[few]:
        mine = grid[:, few] == level
        answers = _at(grid[np.ix_(mine, rest)], curves[:, mine], table[..., rest])
        np.copyto(out, answers, where=table[..., few] == level)
    return out


def _multilinear(axes: list[FloatArray], curves: FloatArray, table: FloatArray) -> FloatArray:
    """Curves on every combination of the axes at doses (n_units, n_doses, n_components)."""
    places = [_places(axis, table[..., k]) for k, axis in enumerate(axes)]
    strides = np.cumprod([1, *[len(axis) for axis in axes[:0:-1]]])[::-1]
    wide = np.broadcast_to(curves, (len(table), curves.shape[1]))
    out = np.zeros(table.shape[:-1])
    for corner in product((0, 1), repeat=len(axes)):
        share = np.ones(out.shape)
        cell = np.zeros(out.shape, np.int64)
        for (left, beyond), side, stride, axis in zip(places, corner, strides, axes, strict=True):
            share *= beyond if side else 1 - beyond
            cell += stride * np.minimum(left + side, len(axis) - 1)
        out += share * np.take_along_axis(wide, cell, axis=1)
    return out


def _places(axis: FloatArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Place of the value at or below, and the share of the way to the next."""
    if len(axis) == 1:
        return np.zeros(values.shape, np.int64), np.zeros(values.shape)
    left = np.clip(np.searchsorted(axis, values, side="right") - 1, 0, len(axis) - 2)
    share = (values - axis[left]) / (axis[left + 1] - axis[left])
    return left, np.clip(share, 0.0, 1.0)
