"""Checks of what the marketplace is asked about. Every error names parameter, rule and value."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray, IntArray
from doseforest.pricing.market.discount_policies import ROUNDING
from doseforest.pricing.market.regimes import MAX_DISCOUNT
from doseforest.pricing.market.traffic import FEATURES


def checked_views(X: Any, doses: Any, n_options: int) -> tuple[FloatArray, FloatArray]:
    """Features, and doses of shape (n_views, n_doses, n_options)."""
    units: FloatArray = np.asarray(X, np.float64)
    if units.ndim != 2 or units.shape[1] != len(FEATURES):
        raise ValueError(
            f"The 'X' parameter must have shape (n_views, {len(FEATURES)}). "
            f"Got shape {units.shape} instead."
        )
    table: FloatArray = np.asarray(doses, np.float64)
    table = table[..., None] if n_options == 1 and table.ndim == 2 else table
    if table.ndim != 3 or (len(table), table.shape[2]) != (len(units), n_options):
        shape = f"({len(units)}, n_doses{', 2' if n_options == 2 else ''})"
        raise ValueError(
            f"The 'doses' parameter must have shape {shape}. Got shape {np.shape(doses)} instead."
        )
    inside = (table >= 0) & (table <= MAX_DISCOUNT + ROUNDING)
    if not inside.all():
        raise ValueError(
            f"The 'doses' parameter must hold discounts from 0 to {MAX_DISCOUNT:g}. "
            f"Got {table[~inside][0]} instead."
        )
    return units, table


def checked_days(days: Any, season_days: int) -> IntArray:
    """The first so many days, or days by their numbers."""
    if isinstance(days, Integral) and int(days) > 0:
        return _places(np.arange(int(days)), season_days, "days")
    return _places(np.asarray(days), season_days, "days")


def checked_cells(cells: Any, n_cells: int) -> IntArray:
    """Cells by their numbers, by default all of them."""
    return _places(np.arange(n_cells) if cells is None else np.asarray(cells), n_cells, "cells")


def _places(own: Array, most: int, name: str) -> IntArray:
    whole = own.ndim == 1 and own.dtype.kind in "iu" and len(own) > 0
    if not whole or own.min() < 0 or own.max() >= most or len(np.unique(own)) < len(own):
        raise ValueError(
            f"The {name!r} parameter must be different ints from 0 to {most - 1}. "
            f"Got {own!r} instead."
        )
    places: IntArray = own.astype(np.int64)
    return places
