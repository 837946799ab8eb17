"""What this machine gives: threads and memory, as far as its container allows."""

from __future__ import annotations

import os
import signal
import sys
import threading
from functools import lru_cache
from multiprocessing import parent_process
from pathlib import Path
from time import monotonic

_CGROUPS = Path("/sys/fs/cgroup")
_CGROUP_OF_PROCESS = Path("/proc/self/cgroup")
_MEMINFO = Path("/proc/meminfo")
QUOTA_SECONDS = 5  # for which quotas of a control group are believed
_FALLBACK_BYTES = 2 * 2**30  # where nothing tells, assume little


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads: None means every core that this process may use.

    Among tasks that joblib runs side by side, as searches with `n_jobs` do, None means this task's
    share of the cores; a number that the user gave is taken as it is.

    Negative numbers count from there, as in scikit-learn: -1 is all cores, -2 all but one.

    >>> thread_count(3)
    3
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    cores = min([cores, *_core_quotas(int(monotonic()) // QUOTA_SECONDS)])
    if n_jobs is None:
        return min(cores, _share_of_task() or cores)
    if n_jobs == 0:
        raise ValueError("The 'n_jobs' parameter must not be 0. Got 0 instead.")
    return max(1, cores + 1 + n_jobs)


def end_with_parent() -> None:
    """End this process when the one that started it does, even if that was killed."""
    threading.Thread(target=_await_parent, name="doseforest-parent", daemon=True).start()


def _await_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _share_of_task() -> int | None:
    """Threads that a task of joblib should take; None outside of such tasks."""
    parallel = sys.modules.get("joblib.parallel")  # who has not loaded it has not started us
    backend = getattr(parallel, "get_active_backend", lambda: (None,))()[0]
    if not getattr(backend, "nesting_level", 0):
        return None
    # Worker processes are told their share by variables for libraries; threads are one each.
    setting = os.environ.get("OMP_NUM_THREADS", "") if parent_process() is not None else ""
    return max(1, int(setting)) if setting.isdecimal() else 1


@lru_cache(maxsize=1)
def _core_quotas(moment: int) -> list[int]:
    """Cores' worth of time that the control groups of this process allow, rounded up.

    They are asked once in a moment: their files take longer to read than a unit takes to score.
    """
    quotas = []
    for folder in _cgroup_folders():
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            quotas.append(max(1, -(-int(quota) // int(period))))
    return quotas


def available_memory() -> int:
    """Return the bytes that this process may still take: the machine's or its container's."""
    candidates = []
    if _MEMINFO.exists():
        lines = _MEMINFO.read_text().splitlines()
        candidates += [int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line]
    for folder in _cgroup_folders():
        limit = _number(folder / "memory.max") or _number(folder / "memory.limit_in_bytes")
        used = _number(folder / "memory.current") or _number(folder / "memory.usage_in_bytes") or 0
        if limit is not None:
            candidates.append(max(0, limit - used + _reclaimable(folder)))
    return min(candidates, default=_FALLBACK_BYTES)


def _cgroup_folders() -> list[Path]:
    """Control groups of this process, versions 2 and 1, with all groups above them."""
    folders = [_CGROUPS, _CGROUPS / "memory"]
    lines = _CGROUP_OF_PROCESS.read_text().splitlines() if _CGROUP_OF_PROCESS.exists() else []
    for line in lines:  # hierarchy:controllers:path
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            group = _CGROUPS / controllers / path.lstrip("/")
            folders += [group, *group.parents]
    inside = [folder for folder in folders if folder.is_relative_to(_CGROUPS)]
    return list(dict.fromkeys(inside))


def _reclaimable(folder: Path) -> int:
    """Bytes of file cache that a group counts as used but gives up when it needs them."""
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split(maxsplit=1) for line in lines)
    return int(fields.get("total_inactive_file", fields.get("inactive_file", 0)))


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
