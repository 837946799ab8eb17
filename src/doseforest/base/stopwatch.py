"""Where the time of a fit goes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Stopwatch:
    """Seconds by phase, in the order in which phases first ran.

    Examples
    --------
    >>> stopwatch = Stopwatch()
    >>> with stopwatch("growth"):
    ...     pass
    >>> list(stopwatch.seconds)
    ['growth']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add the time of a block to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add({phase: time.perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add times measured elsewhere."""
        for phase, amount in seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + amount

    def report(self) -> str:
        """One line for every phase.

        >>> stopwatch = Stopwatch()
        >>> stopwatch.add({"growth": 1.25, "leaves": 0.5})
        >>> print(stopwatch.report())
        growth   1.25 s
        leaves   0.50 s
        """
        width = max(map(len, self.seconds), default=0)
        lines = (f"{phase:{width}} {spent:6.2f} s" for phase, spent in self.seconds.items())
        return "\n".join(lines)
