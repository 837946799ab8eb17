"""Small requests that come at the same time are decided on together.

A forest answers for ten units in little more time than for one. While the writer is busy a request
would only wait for it, so that requests wait together for a moment before they are decided on; when
it is idle they wait for each other no longer than they take to be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from doseforest.pricing.service.deciding import Deciders, Decision, decide, decide_or_raise
from doseforest.pricing.service.registry.incoming_units import ServedUnit

BUSY_SECONDS = 0.002  # less than a disk takes to flush


@dataclass(frozen=True, slots=True)
class Asked:
    """Units of one request, who is told their decisions, and of failures."""

    units: Sequence[ServedUnit]
    told: asyncio.Future[list[Decision]]
    on_failure: Callable[[Exception], None]


class Gathering:
    """Requests that wait to be decided on, on one event loop.

    Parameters
    ----------
    deciders : callable
        Says what decides at the moment.
    is_busy : callable
        Says whether the writer is.
    """

    def __init__(self, deciders: Callable[[], Deciders], is_busy: Callable[[], bool]) -> None:
        self._deciders, self._is_busy = deciders, is_busy
        self._asked: list[Asked] = []

    async def decide(
        self, units: Sequence[ServedUnit], on_failure: Callable[[Exception], None]
    ) -> list[Decision]:
        """A decision for each unit."""
        loop = asyncio.get_running_loop()
        own = Asked(units, loop.create_future(), on_failure)
        if not self._asked:
            if self._is_busy():
                loop.call_later(BUSY_SECONDS, self._answer)
            else:
                loop.call_soon(self._answer)
        self._asked.append(own)
        return await own.told

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        deciders = self._deciders()
        try:
            together = decide_or_raise(deciders, [unit for own in asked for unit in own.units])
        except Exception:  # one of them: each is on its own then
            for own in asked:
                self._tell(own, deciders)
            return
        place = 0
        for own in asked:
            if not own.told.done():
                own.told.set_result(together[place : place + len(own.units)])
            place += len(own.units)

    @staticmethod
    def _tell(own: Asked, deciders: Deciders) -> None:
        if own.told.done():  # its client has gone
            return
        try:
            own.told.set_result(decide(deciders, own.units, own.on_failure))
        except Exception as error:
            own.told.set_exception(error)
