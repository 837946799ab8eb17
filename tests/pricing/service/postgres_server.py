"""A PostgreSQL server of our own on loopback, where PostgreSQL is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

USER = "doses"


def find_program(name: str) -> str | None:
    """A program of PostgreSQL; Debian keeps them apart."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """Started and stopped by tests; it refuses to run as root, so root runs it as nobody."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="doseforest-postgres-"))
        self.port = free_port()
        self._as: list[str] = []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = ["runuser", "-u", "nobody", "--"]
        self._run("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-N", "-E", "UTF8")
        self.start()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", self._data, "-l", log, "-o", options, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-W", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        found = find_program(program)
        assert found is not None
        subprocess.run(
            [*self._as, found, *arguments],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,  # a pipe would be kept open by the server
            stderr=subprocess.DEVNULL,
        )
