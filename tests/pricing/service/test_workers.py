"""Worker processes: one that dies is replaced, one that cannot start ends it all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn

from doseforest.pricing.service.draining import draining
from doseforest.pricing.service.listening_socket import close_to_new
from doseforest.pricing.service.server import DrainingServer

SCRIPT = Path(__file__).with_name("worker_script.py")


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def next_worker(process: subprocess.Popen[str], expected: str = "worker") -> int:
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == expected
    return int(number)


def test_a_worker_that_dies_is_replaced_and_all_end_at_the_signal() -> None:
    process = started("idle")
    first, second = next_worker(process), next_worker(process)
    os.kill(first, signal.SIGKILL)
    third = next_worker(process)
    assert len({first, second, third}) == 3
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    for worker in (second, third):
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    assert "worker" not in output


def test_a_worker_that_cannot_start_ends_the_service() -> None:
    process = started("fail")
    process.communicate(timeout=60)
    assert process.returncode == 3


def test_a_replacement_that_cannot_start_leaves_the_others_alone(tmp_path: Path) -> None:
    away = tmp_path / "database-is-away"
    process = started("flaky", str(away))
    first, second = next_worker(process), next_worker(process)
    away.touch()
    os.kill(first, signal.SIGKILL)
    for _ in range(2):
        next_worker(process, "failed")
    os.kill(second, 0)  # it lives
    away.unlink()
    assert next_worker(process) not in (first, second)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_workers_end_when_the_process_that_started_them_is_killed() -> None:
    process = started("idle")
    next_worker(process), next_worker(process)
    process.kill()
    process.communicate(timeout=60)  # their ends of the pipe are closed once they ended
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("is_worker", [True, False])
def test_a_second_signal_cuts_the_drain_short_but_not_that_of_a_worker(
    is_worker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "begun", False)  # and back to it afterwards
    with socket.socket() as door:
        config = uvicorn.Config("no:app", log_config=None)
        server = DrainingServer(config, door, drain=15.0, owns_door=not is_worker)
        server.handle_exit(signal.SIGTERM, None)
        assert not server.should_exit
        server.handle_exit(signal.SIGTERM, None)
        assert server.should_exit != is_worker


@pytest.mark.skipif(sys.platform != "linux", reason="a packet filter of Linux")
def test_a_closed_door_keeps_out_new_ones_and_serves_those_inside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        inside = socket.create_connection(door.getsockname())
        inside.sendall(b"before")
        close_to_new(door)
        with pytest.raises(TimeoutError):
            socket.create_connection(door.getsockname(), timeout=0.2)
        accepted, _ = door.accept()
        inside.sendall(b" and after")
        inside.shutdown(socket.SHUT_WR)
        with inside, accepted, accepted.makefile("rb") as received:
            assert received.read() == b"before and after"
