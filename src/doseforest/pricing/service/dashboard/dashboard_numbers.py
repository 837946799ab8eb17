"""What the dashboard shows, as numbers from the database."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Connection, case, func, select

from doseforest.pricing.service.dashboard.dashboard_doses import dose_axes, dose_shares
from doseforest.pricing.service.dashboard.drift import drift, parsed, profile_rows, verdict
from doseforest.pricing.service.registry.incoming_units import ServedUnit, forest_of
from doseforest.pricing.service.registry.policy_catalog import find_policy
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from doseforest.pricing.service.storage.service_tables import decisions, now

HOUR = 3_600_000  # milliseconds
BARS = 48  # of charts over time
RECENT = 1000  # decisions that drift looks at
CURVES = 500  # units behind the average curves
LEAST_FOR_DRIFT = 50
NO_CURVES: dict[str, Any] = {
    "version": None,
    "doses": [],
    "axes": [],  # along which doses are drawn
    "features": [],
    "feature": None,
    "segments": [],
}


def overview(connection: Connection, hours: int) -> dict[str, Any]:
    """Counts of the last hours, over time and by dose, reason and support."""
    until = now()
    width = max(hours * HOUR // BARS, 1)
    since = until - BARS * width
    recent = decisions.c.at >= since
    rows = connection.execute(
        select(
            (decisions.c.at - (decisions.c.at - since) % width).label("start"),
            func.count(),
            func.coalesce(func.sum(decisions.c.cost), 0.0),
            func.sum(case((decisions.c.fallback, 1), else_=0)),
        )
        .where(recent)
        .group_by("start")
        .order_by("start")
    )
    result = {int(start): (int(n), float(cost), int(back)) for start, n, cost, back in rows}
    starts = [since + k * width for k in range(BARS)]
    none = (0, 0.0, 0)
    return {
        "hours": hours,
        "starts": starts,
        "decisions": [result.get(start, none)[0] for start in starts],
        "spend": [result.get(start, none)[1] for start in starts],
        "fallbacks": [result.get(start, none)[2] for start in starts],
        **dose_shares(connection, recent),
        "reasons": _counts(connection, decisions.c.reason, recent),
        "support": _support(connection, recent),
    }


def _counts(connection: Connection, column: Any, recent: Any) -> list[dict[str, Any]]:
    rows = connection.execute(
        select(column, func.count()).where(recent).group_by(column).order_by(column)
    )
    return [{"name": str(name), "count": int(n)} for name, n in rows]


def _support(connection: Connection, recent: Any) -> dict[str, int]:
    result = connection.execute(
        select(decisions.c.supported, func.count()).where(recent).group_by(decisions.c.supported)
    )
    rows: dict[bool | None, int] = {row[0]: row[1] for row in result}
    return {
        "supported": int(rows.get(True, 0)),
        "unsupported": int(rows.get(False, 0)),
        "unknown": int(rows.get(None, 0)),
    }


def some_features(
    connection: Connection, version: int, *, newest: bool, count: int = RECENT
) -> list[dict[str, Any]]:
    """Features of the newest or the first decisions of a policy."""
    order = decisions.c.id.desc() if newest else decisions.c.id
    rows = connection.execute(
        select(decisions.c.features)
        .where(decisions.c.version == version)
        .order_by(order)
        .limit(count)
    )
    return parsed(rows.scalars())


def feature_drift(connection: Connection, version: int) -> dict[str, Any]:
    """How far each feature has moved from training, or else from the first decisions."""
    policy = find_policy(connection, version)
    profile, reference, count = policy.profile, "training rows", RECENT
    if profile is None:
        n_decisions = connection.execute(
            select(func.count()).select_from(decisions).where(decisions.c.version == version)
        ).scalar_one()
        count = min(RECENT, n_decisions // 2)  # so that the two have nothing in common
        first = some_features(connection, version, newest=False, count=count)
        profile, reference = profile_rows(first), "the first decisions of this version"
    rows = some_features(connection, version, newest=True, count=count)
    answer: dict[str, Any] = {"reference": reference, "rows": len(rows), "features": []}
    if len(rows) >= LEAST_FOR_DRIFT:
        asked = {name: each for name, each in profile.items() if name in policy.features}
        answer["features"] = [
            {"name": name, "index": index, "verdict": verdict(index)}
            for name, index in drift(asked, rows).items()
        ]
    return answer


def segment_curves(
    connection: Connection, served: ServedPolicy, feature: str | None
) -> dict[str, Any]:
    """Average curves of recent units, by thirds or labels of a feature."""
    answer: dict[str, Any] = NO_CURVES | {
        "version": served.version,
        "doses": served.named_doses,
        "axes": dose_axes(served),
        "features": list(served.needed.features),
        "segments": [],
    }
    if forest_of(served.policy) is None:
        return answer
    rows = some_features(connection, served.version, newest=True, count=CURVES)
    units = [ServedUnit("", "", row) for row in rows]
    if not units:
        return answer
    response, lacking = served.curves(units)
    kept = ~np.array(lacking)
    name = feature if feature in served.needed.features else served.needed.features[0]
    answer["feature"] = name
    values = [row.get(name) for row in rows]
    for label, marks in _segments(values):
        chosen = marks & kept
        if chosen.any():
            curve = response[chosen].mean(axis=0).tolist()
            answer["segments"].append({"name": label, "units": int(chosen.sum()), "curve": curve})
    return answer


def _segments(values: list[Any]) -> list[tuple[str, Any]]:
    if any(isinstance(each, str) for each in values):
        labels, counts = np.unique([str(each) for each in values], return_counts=True)
        largest = labels[np.argsort(-counts, kind="stable")[:4]]
        return [(str(label), np.array([each == label for each in values])) for label in largest]
    numbers = np.array([np.nan if each is None else each for each in values], np.float64)
    ends = np.nanquantile(numbers, [1 / 3, 2 / 3]) if (~np.isnan(numbers)).any() else [0.0, 0.0]
    third = np.where(np.isnan(numbers), -1, (numbers > ends[0]).astype(int) + (numbers > ends[1]))
    texts = (f"up to {ends[0]:.3g}", f"to {ends[1]:.3g}", f"above {ends[1]:.3g}")
    return [(texts[k], third == k) for k in range(3)]
