"""Policies swapped and services stopped under load; several workers as one."""

from __future__ import annotations

import signal
import time

import httpx2 as httpx
from running_server import Load, running, stored_ids, wait_until
from service_world import World


def test_swapping_policies_and_stopping_fail_no_request(world: World) -> None:
    versions = [world.publish("control"), world.publish("random")]
    with running(world) as server:
        admin = httpx.Client(base_url=server.url, headers=world.headers("admin"))
        with admin, Load(server, world) as load:
            for swap in range(6):
                seen = len(load.acknowledged)
                answer = admin.post(f"/v1/policies/{versions[swap % 2]}/activate")
                assert answer.status_code == 200, answer.text
                wait_until(lambda seen=seen: len(load.acknowledged) > seen + 50)
            assert load.refused == 0  # until it is told to stop every connection is taken
            server.terminate()
            assert server.wait() == 0
    assert load.failures == []
    assert set(load.versions) == set(versions)
    assert set(load.acknowledged) == stored_ids(world)


def test_several_workers_count_and_follow_together(world: World) -> None:
    first, second = world.publish("random"), world.publish("control")
    with running(world, "--workers", "2") as server, httpx.Client(base_url=server.url) as client:
        admin = world.headers("admin")
        wait_until(lambda: _version(server.url) == second)
        with Load(server, world, units=1, clients=4) as load:
            wait_until(lambda: len(load.acknowledged) >= 60)
        page = client.get("/metrics", headers=admin).text
        counted = sum(
            float(line.split()[-1])
            for line in page.splitlines()
            if line.startswith("doseforest_decisions_total{")
        )
        assert counted == len(load.acknowledged) == len(stored_ids(world))
        client.post("/v1/policies/rollback", headers=admin).raise_for_status()
        # Every worker swaps: twenty new connections in a row find none that has not.
        wait_until(lambda: all(_version(server.url) == first for _ in range(20)))
        server.terminate()
        server.wait()
    assert load.failures == []


def test_a_signal_to_the_whole_group_fails_no_request(world: World) -> None:
    world.publish("random")
    drain = 3.0
    options = ("--workers", "2", "--drain", str(drain))
    with running(world, *options) as server, Load(server, world) as load:
        wait_until(lambda: len(load.acknowledged) > 100)
        server.signal(signal.SIGTERM)  # as systemd does: workers hear it from both
        signalled = time.monotonic()
        assert server.wait() == 0
        assert time.monotonic() - signalled >= drain  # it was not cut short
    assert load.failures == []
    assert set(load.acknowledged) == stored_ids(world)


def _version(url: str) -> int | None:
    version: int | None = httpx.get(f"{url}/readyz").json()["policy_version"]
    return version
