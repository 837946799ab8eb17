"""Small requests that come at the same time are decided on together.

A forest answers for ten units in little more time than for one. While the writer is busy a request
would only wait for it, so that requests wait together for a moment before they are decided on; when
it is idle they wait for each other no longer than they take to be read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from doseforest.pricing.service.deciding import (
    Deciders,
    ServedDecisions,
    decide,
    decide_or_raise,
)
from doseforest.pricing.service.registry.incoming_units import ServedUnit

BUSY_SECONDS = 0.002  # less than a disk takes to flush


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """Units of one request, its decisions once they are made, and who hears of failures."""

    units: Sequence[ServedUnit]
    decided: asyncio.Future[ServedDecisions]
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
        self._waiting: list[WaitingRequest] = []

    async def decide(
        self, units: Sequence[ServedUnit], on_failure: Callable[[Exception], None]
    ) -> ServedDecisions:
        """A decision for each unit."""
        loop = asyncio.get_running_loop()
        request = WaitingRequest(units, loop.create_future(), on_failure)
        if not self._waiting:
            if self._is_busy():
                loop.call_later(BUSY_SECONDS, self._answer)
            else:
                loop.call_soon(self._answer)
        self._waiting.append(request)
        return await request.decided

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        deciders = self._deciders()
        try:
            together = decide_or_raise(
                deciders, [unit for request in waiting for unit in request.units]
            )
        except Exception:  # one of them: each is on its own then
            for request in waiting:
                self._answer_alone(request, deciders)
            return
        place = 0
        for request in waiting:
            units = slice(place, place + len(request.units))
            if not request.decided.done():  # its client has not gone
                request.decided.set_result(together if len(waiting) == 1 else together.at(units))
            place = units.stop

    @staticmethod
    def _answer_alone(request: WaitingRequest, deciders: Deciders) -> None:
        if request.decided.done():
            return
        try:
            request.decided.set_result(decide(deciders, request.units, request.on_failure))
        except Exception as error:
            request.decided.set_exception(error)
