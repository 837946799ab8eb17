"""Which doses a policy may give, and to whom."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import DoseArray
from doseforest.data.checks import LARGEST_VALUE
from doseforest.doses.curve_effects import one_dose
from doseforest.doses.dose_values import Doses, dose_text
from doseforest.doses.grids import given_doses
from doseforest.policy.artifact.unit_columns import CheckedUnits

LONGEST_NAME = 40  # characters of a component's

Limit = float | str | tuple[float, ...] | None  # of all units, or the column of each unit's own


def checked_doses(doses: Any, name: str = "doses") -> Doses:
    """Ascending, distinct, finite doses: numbers, or rows of components.

    >>> checked_doses([0, 5, 10]).plain
    array([ 0.,  5., 10.])
    """
    own = given_doses(doses, name)
    fits = len(own.shape) == 1 and len(own) > 0
    if not fits or not (np.abs(own.table) <= LARGEST_VALUE).all():
        raise ValueError(
            f"The {name!r} parameter must be one or more finite doses. Got {doses!r} instead."
        )
    if not np.array_equal(own.distinct, own):
        raise ValueError(
            f"The {name!r} parameter must be ascending and distinct. Got {doses!r} instead."
        )
    return own


def place_of(dose: Any, doses: Doses, name: str) -> int:
    """Place of one dose among those of a policy, or ValueError."""
    own = one_dose(dose, name, doses.n_components)
    result = np.flatnonzero(doses == own)
    if not len(result):
        raise ValueError(
            f"The {name!r} parameter must be one of the doses "
            f"{', '.join(map(dose_text, doses[:8]))}{', …' if len(doses) > 8 else ''}. "
            f"Got {dose_text(own)} instead."
        )
    return int(result[0])


def checked_components(names: Any, doses: Doses) -> tuple[str, ...] | None:
    """Names of the components of doses, "0", "1" and so on by default; None of plain doses.

    They become keys of answers and parts of columns' names, and ``express=0,premium=5`` is a dose.

    >>> pairs = checked_doses([[0, 0], [0, 5]])
    >>> checked_components(["express", "premium"], pairs), checked_components(None, pairs)
    (('express', 'premium'), ('0', '1'))
    """
    width = doses.n_components
    if names is None:
        return None if width == 1 else tuple(map(str, range(width)))
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    own = tuple(names) if listed else ()
    fits = width > 1 and all(map(_is_name, own)) and len(own) == len(set(own)) == width
    if not fits:
        rule = "None for doses of one component"
        if width > 1:
            rule = (
                f"a distinct name for each of {width} components, of at most {LONGEST_NAME} "
                "characters and without '=' and ','"
            )
        raise ValueError(f"The 'components' parameter must be {rule}. Got {names!r} instead.")
    return own


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return False
    return name.isprintable() and name == name.strip() and not set("=,") & set(name)


def checked_limit(limit: Any, name: str, doses: Doses) -> Limit:
    """A least or largest dose: a number, one for each component, or the name of a column."""
    width = doses.n_components
    if limit is None or (isinstance(limit, str) and limit and width == 1):
        return limit
    if isinstance(limit, Real) and not isinstance(limit, bool):
        if width == 1 and abs(float(limit)) <= LARGEST_VALUE:
            return float(limit)
    elif isinstance(limit, Sequence | np.ndarray) and not isinstance(limit, str):
        numbers = tuple(float(each) for each in limit)
        if len(numbers) == width > 1 and all(abs(number) <= LARGEST_VALUE for number in numbers):
            return numbers
    of = f"a number for each of {width} components" if width > 1 else "a number, a column's name"
    raise ValueError(f"The {name!r} parameter must be {of}, or None. Got {limit!r} instead.")


def within_limits(
    units: CheckedUnits, doses: DoseArray, least: Limit, largest: Limit
) -> NDArray[np.bool_]:
    """Doses between the least and the largest of each unit, (n_units, n_doses), both included."""
    inside = np.ones((units.n_units, len(doses)), bool)
    if least is None and largest is None:
        return inside
    table = Doses.of(doses).table  # (n_doses, n_components)
    for limit, beyond in ((least, np.less), (largest, np.greater)):
        if isinstance(limit, str):
            inside &= ~beyond(table[None, :, 0], units.numbers(limit)[:, None])
        elif limit is not None:
            inside &= ~beyond(table, np.atleast_1d(limit)).any(axis=1)[None]
    return inside
