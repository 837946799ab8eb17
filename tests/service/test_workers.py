"""Worker processes: one that dies is replaced, one that cannot start ends it all."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doseforest.service.door import close_to_new

SCRIPT = Path(__file__).with_name("worker_script.py")


def started(kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), kind]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def next_worker(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == "worker"
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
