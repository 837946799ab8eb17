"""How fast a key may ask: a bucket of tokens each, refilled at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST_SECONDS = 2.0  # a bucket holds what flows in during this time


class RateLimit:
    """Requests per second of each key, in this process.

    Parameters
    ----------
    rate : float
        Requests per second; 0 for no limit.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 0.0, 0.5]).__next__
    >>> limit = RateLimit(1.0, clock)
    >>> [limit.wait("shop") for _ in range(4)]
    [0.0, 0.0, 1.0, 0.5]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._full = max(1.0, rate * BURST_SECONDS)
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens left, at which time

    def wait(self, key_id: str) -> float:
        """Seconds to wait before asking again; 0 where the request may go on."""
        if self._rate == 0:
            return 0.0
        at = self._clock()
        left, since = self._buckets.get(key_id, (self._full, at))
        left = min(self._full, left + (at - since) * self._rate)
        allowed = left >= 1.0
        self._buckets[key_id] = (left - allowed, at)
        return 0.0 if allowed else (1.0 - left) / self._rate
