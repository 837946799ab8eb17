"""Doses on the dashboard: how often each was given, and along which axes curves are drawn."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sqlalchemy import Connection, func, select

from doseforest.doses.dose_values import Doses, dose_text
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from doseforest.pricing.service.served_doses import Components, Dose, components_of, dose_name
from doseforest.pricing.service.storage.service_tables import decisions

MOST_DOSES = 20  # bars of a chart; the others are counted together


def dose_shares(connection: Connection, recent: Any) -> dict[str, Any]:
    """How often each dose was given, and the names of the components of those with several."""
    own = decisions.c
    rows = connection.execute(
        select(own.dose, own.doses, func.count()).where(recent).group_by(own.dose, own.doses)
    )
    result: list[tuple[Dose, int]] = [
        (dose if doses is None else json.loads(doses), count) for dose, doses, count in rows
    ]
    kinds: set[Components] = {components_of(dose) for dose, _ in result} - {None}
    names = kinds.pop() if len(kinds) == 1 else None
    shown = [
        {"name": _text(dose, names), "count": count} for dose, count in sorted(result, key=_place)
    ]
    return {"doses": _largest(shown), "components": list(names or ())}


def _place(counted: tuple[Dose, int]) -> tuple[Any, ...]:
    """Numbers first; then by the names of components, and one component after the other."""
    dose = counted[0]
    return (tuple(dose), *dose.values()) if isinstance(dose, dict) else ((), dose)


def _text(dose: Dose, names: Components) -> str:
    """A dose, short where all of those with several components have the same ones."""
    if isinstance(dose, dict) and names is not None:
        return dose_text(tuple(dose.values()))
    return dose_name(dose)


def _largest(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(shown) <= MOST_DOSES:
        return shown
    largest = sorted(range(len(shown)), key=lambda place: -shown[place]["count"])[:MOST_DOSES]
    kept = [shown[place] for place in sorted(largest)]
    rest = sum(each["count"] for each in shown) - sum(each["count"] for each in kept)
    return [*kept, {"name": "others", "count": rest}]


def dose_axes(served: ServedPolicy) -> list[dict[str, Any]]:
    """Along which doses curves are drawn: all, or each component with the others at the baseline.

    Of each axis the name of its component and the places of its doses among those of the policy; an
    axis with one dose alone is none.
    """
    if served.components is None:
        return [{"component": None, "places": list(range(len(served.doses)))}]
    baseline = served.baseline
    if not isinstance(baseline, dict):
        return []
    table = Doses.of(served.doses).table
    same = table == np.array(list(baseline.values()))
    axes = []
    for place, name in enumerate(served.components):
        along = np.flatnonzero(np.delete(same, place, axis=1).all(axis=1)).tolist()
        if len(along) > 1:
            axes.append({"component": name, "places": along})
    return axes
