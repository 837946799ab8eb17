"""Whether this process is about to stop: it still answers, but asks clients to go elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Draining:
    """Set once, by the signal to stop."""

    begun: bool = False


draining = Draining()  # of this process
