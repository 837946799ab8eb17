"""Killed under load: every acknowledged row is there."""

from __future__ import annotations

import signal

from running_server import Load, running, stored_ids, wait_until
from service_world import World


def test_a_killed_service_has_every_row_that_it_acknowledged(world: World) -> None:
    world.publish("control")
    acknowledged: list[str] = []
    for _ in range(3):
        with running(world) as server, Load(server, world, units=50) as load:
            wait_until(lambda load=load: len(load.acknowledged) >= 1000)
            server.signal(signal.SIGKILL)
        acknowledged += load.acknowledged
    assert len(acknowledged) >= 3000
    assert set(acknowledged) <= stored_ids(world)
