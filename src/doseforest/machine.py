"""What this machine gives: threads and memory, as far as its container allows."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),  # version 2
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),  # version 1
)
_CGROUP_USAGE = (
    Path("/sys/fs/cgroup/memory.current"),
    Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_FALLBACK_BYTES = 2 * 2**30  # where nothing tells, assume little


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: None means every core that this process may use.

    Negative numbers count from there, as in scikit-learn: -1 is all cores, -2 all but one.

    >>> thread_count(3)
    3
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("The 'n_jobs' parameter must not be 0. Got 0 instead.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def available_memory() -> int:
    """Return the bytes that this process may still take: the machine's or its container's."""
    candidates = []
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        lines = meminfo.read_text().splitlines()
        candidates += [int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line]
    for limit_file, usage_file in zip(_CGROUP_LIMITS, _CGROUP_USAGE, strict=True):
        limit, usage = _number(limit_file), _number(usage_file)
        if limit is not None:
            candidates.append(max(0, limit - (usage or 0)))
    return min(candidates, default=_FALLBACK_BYTES)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # absent, unreadable, or "max"
        return None


def readable_bytes(n_bytes: float) -> str:
    """Write a number of bytes for people.

    >>> readable_bytes(3_500_000)
    '3.3 MiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"
