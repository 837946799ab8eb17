"""Counts for Prometheus, added up over all worker processes.

With several workers each writes to files of its own in the folder that ``PROMETHEUS_MULTIPROC_DIR``
names, and whoever is asked reads all of them. That variable must be set before the library is
imported: `doseforest serve` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

COUNTED = ("policy_version", "arm", "reason", "fallback", "cost")  # of an answer


class Metrics:
    """Everything that is counted."""

    def __init__(self) -> None:
        own = CollectorRegistry()
        self._registry = own
        self.requests = Counter(
            "doseforest_requests", "Requests", ["method", "route", "status"], registry=own
        )
        self.seconds = Histogram(
            "doseforest_request_seconds",
            "Time from the first byte of a request to the last of its answer",
            ["route"],
            buckets=SECONDS,
            registry=own,
        )
        self.decisions = Counter(
            "doseforest_decisions", "Decisions stored", ["version", "arm", "reason"], registry=own
        )
        self.fallbacks = Counter(
            "doseforest_fallbacks", "Decisions that no policy could make", ["reason"], registry=own
        )
        self.cost = Counter(
            "doseforest_expected_cost", "Expected cost of the decisions", ["arm"], registry=own
        )
        self.outcomes = Counter("doseforest_outcomes", "Outcomes stored", registry=own)
        self.replays = Counter(
            "doseforest_replays", "Answers given again to a repeated request", registry=own
        )
        self.policy_failures = Counter(
            "doseforest_policy_failures", "Units on which a policy raised an error", registry=own
        )
        self.storage_failures = Counter(
            "doseforest_storage_failures", "Requests refused for want of storage", registry=own
        )
        self.refresh_failures = Counter(
            "doseforest_refresh_failures", "Times that the database could not be read", registry=own
        )
        self.version = Gauge(
            "doseforest_active_version",
            "Version of the active policy; 0 for none",
            multiprocess_mode="livemin",
            registry=own,
        )
        self.problems = Gauge(
            "doseforest_problems",
            "Policies and experiments that should serve and do not",
            multiprocess_mode="livemax",
            registry=own,
        )
        self.waiting = Gauge(
            "doseforest_writes_waiting",
            "Writes that wait for the disk",
            multiprocess_mode="livesum",
            registry=own,
        )

    def count(self, columns: Mapping[str, list[Any]]) -> None:
        """Count decisions that were stored, by the columns of their answers."""
        groups: dict[tuple[str, str, str], int] = {}
        costs: dict[str, float] = {}
        counted = [columns[name] for name in COUNTED]
        for version, named, reason, fallback, cost in zip(*counted, strict=True):
            arm = named or ""
            group = (str(version or 0), arm, reason)
            groups[group] = groups.get(group, 0) + 1
            costs[arm] = costs.get(arm, 0.0) + max(cost or 0.0, 0.0)
            if fallback:
                self.fallbacks.labels(reason).inc()
        for group, count in groups.items():
            self.decisions.labels(*group).inc(count)
        for arm, cost in costs.items():
            self.cost.labels(arm).inc(cost)

    def page(self) -> bytes:
        """What Prometheus reads."""
        folder = os.environ.get(FOLDER)
        if folder is None:
            return generate_latest(self._registry)
        _forget_dead_processes(folder)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone, path=folder)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)


def _forget_dead_processes(folder: str) -> None:
    """Gauges of workers that ended say nothing any more; their counters still count."""
    for file in Path(folder).glob("gauge_live*_*.db"):
        process = file.stem.rpartition("_")[2]
        if not Path(f"/proc/{process}").exists():
            mark_process_dead(int(process), folder)  # type: ignore[no-untyped-call]
