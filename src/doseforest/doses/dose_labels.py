"""Names of doses and outcomes as their tables have them, for pictures and texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from doseforest.doses.bases.arms import has_arms
from doseforest.doses.dose_values import AnyDoses, Doses


def series_label(values: Any, default: str) -> str:
    """Name of a column that was given with one, as pandas and polars do."""
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else default


def dose_labels(treatment: Any, dose: AnyDoses) -> tuple[str, ...]:
    """Names of the components: of the columns given, else "dose[0]", "dose[1]", or arm and dose.

    Examples
    --------
    >>> import numpy as np
    >>> from doseforest.doses.dose_values import Doses
    >>> dose_labels(None, Doses.of_table(np.random.default_rng(0).random((50, 2))).values)
    ('dose[0]', 'dose[1]')
    """
    width = Doses.of(dose).n_components
    if width == 1:
        return (series_label(treatment, "dose"),)
    columns = getattr(treatment, "columns", ())
    names = tuple(columns) if isinstance(columns, Iterable) else ()
    if len(names) == width and all(isinstance(name, str) and name for name in names):
        return names
    return default_labels(width, has_arms(dose))


def default_labels(n_components: int, arms: bool) -> tuple[str, ...]:
    """Names of components that have none."""
    if arms:
        return "arm", "dose"
    if n_components == 1:
        return ("dose",)
    return tuple(f"dose[{place}]" for place in range(n_components))
