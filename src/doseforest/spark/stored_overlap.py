"""An overlap report as plain values, which the summary of a model is saved with, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from doseforest.report.overlap.covariate_balance import Balance
from doseforest.report.overlap.overlap_measures import WeightSpread
from doseforest.report.overlap.overlap_report import OverlapReport

PARTS = {"before_cap": WeightSpread, "after_cap": WeightSpread, "balance": Balance}
TUPLES = ("components", "masses", "covariates", "targets")


def plain_report(report: OverlapReport) -> dict[str, Any]:
    """The report as what JSON can hold."""
    return {
        field.name: _plain_part(getattr(report, field.name))
        if field.name in PARTS
        else _plain(getattr(report, field.name))
        for field in fields(OverlapReport)
    }


def read_report(stored: dict[str, Any]) -> OverlapReport:
    """The report of what `plain_report` returned."""
    values = {
        name: PARTS[name](**{key: _array(key, value) for key, value in each.items()})
        if name in PARTS
        else _array(name, each)
        for name, each in stored.items()
    }
    return OverlapReport(**values)


def _plain_part(part: Any) -> dict[str, Any]:
    return {field.name: _plain(getattr(part, field.name)) for field in fields(part)}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return value.item() if isinstance(value, np.generic) else value


def _array(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(value) if name in TUPLES else np.array(value, np.float64)
