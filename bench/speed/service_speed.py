"""Speed of the decision service on loopback, with a real model and every row stored.

Usage: ``python -m bench.speed.service_speed [--seconds 5] [--clients 8]``. Prints Markdown and
writes it to ``service.md`` in the folder ``--out``.

One server process serves, in turns, a policy that gives everybody the same dose (the same checks,
the same key, the same stored row, but no forest) and policies of forests. Its CPU time is read from
the system around each turn, so that the ratio does not depend on how busy the machine is.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.speed.speed_files import read_options, write_files
from bench.studies.markdown import markdown_table
from bench.studies.provenance import provenance
from bench.studies.report import heading
from doseforest import GeneralizedCausalForest
from doseforest.policy import ConstantPolicy, DoseCost, DosePolicy

N_FEATURES, N_DOSES, N_TREES, N_ROWS = 10, 16, 200, 2000
ROUNDS = 3  # turns of each policy; the middle one counts
NO_FOREST = "no forest"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one policy did in one turn."""

    seconds: float
    cpu: float  # of the server
    latencies: list[float]  # of requests

    @property
    def cpu_per_request(self) -> float:
        """Seconds."""
        return self.cpu / len(self.latencies)


def policies() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    dose = rng.uniform(0, 1, N_ROWS) * (1 + (X[:, 0] > 0)) / 2
    y = X[:, 1] + (1 + X[:, 0]) * dose - dose**2 + rng.normal(0, 0.5, N_ROWS)
    forest = GeneralizedCausalForest(n_trees=N_TREES, random_state=0).fit(X, y, treatment=dose)
    grid = np.linspace(forest.doses_[0], forest.doses_[-1], N_DOSES)
    rules = {"cost": DoseCost(1.0), "budget_price": 0.5, "support": None}
    small = forest.distill(n_trees=N_TREES, verbose=False)
    return {
        NO_FOREST: ConstantPolicy(0.0),
        "distilled forest": DosePolicy(small, grid, **rules),
        "distilled, with support": DosePolicy(small, grid, **{**rules, "support": forest}),
        "full forest": DosePolicy(forest, grid, **rules),
    }


def command(*arguments: str) -> str:
    program = [
        sys.executable,
        "-c",
        "from doseforest.pricing.cli.main import app; app()",
        *arguments,
    ]
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def server(folder: Path) -> Iterator[tuple[int, int]]:
    """A running service: its process and its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-c", "from doseforest.pricing.cli.main import app; app()"]
    options = ["serve", "--data", str(folder), "--port", str(port), "--rate", "0"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([*program, *options, "--drain", "0"], stderr=log)
    try:
        while True:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/healthz")
                connection.getresponse().read()
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def body(n_units: int, rng: np.random.Generator) -> tuple[str, bytes]:
    units = [
        {"unit": f"u{k}", "features": {f"x{j}": round(x, 4) for j, x in enumerate(row)}}
        for k, row in enumerate(rng.normal(size=(n_units, N_FEATURES)).tolist())
    ]
    if n_units == 1:
        return "/v1/decision", json.dumps(units[0]).encode()
    return "/v1/decisions", json.dumps({"units": units}).encode()


def turn(process: int, port: int, key: str, n_units: int, clients: int, seconds: float) -> Turn:
    latencies: list[float] = []
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    end = time.perf_counter() + seconds

    def ask(seed: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        rng = np.random.default_rng(seed)
        sent = [body(n_units, rng) for _ in range(8)]
        count = 0
        while time.perf_counter() < end:
            path, content = sent[count % len(sent)]
            start = time.perf_counter()
            connection.request("POST", path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
            latencies.append(time.perf_counter() - start)
            assert answer.status == 200, text
            count += 1

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(clients)]
    before, began = cpu_seconds(process), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    return Turn(took, cpu_seconds(process) - before, latencies)


def activate(port: int, key: str, version: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {key}"}
    connection.request("POST", f"/v1/policies/{version}/activate", headers=headers)
    assert connection.getresponse().status == 200


def measure(seconds: float, clients: int) -> dict[tuple[str, int, int], Turn]:
    """The middle turn, by CPU, of every policy, size of request and number of clients."""
    found: dict[tuple[str, int, int], list[Turn]] = {}
    with tempfile.TemporaryDirectory(prefix="doseforest-bench-") as name:
        folder = Path(name)
        data = ["--data", name]
        key = command("keys", "create", "--role", "admin", "--name", "bench", *data)
        made = policies()
        for version, policy in enumerate(made.values(), 1):
            policy.save(folder / f"{version}.dose")
            command("registry", "publish", str(folder / f"{version}.dose"), "--activate", *data)
        with server(folder) as (process, port):
            for _ in range(ROUNDS):
                for version, policy_name in enumerate(made, 1):
                    activate(port, key, version)
                    turn(process, port, key, 1, 2, 0.5)  # warm
                    for n_units, n_clients in ((1, 1), (1, clients), (256, 1), (256, 2)):
                        own = turn(process, port, key, n_units, n_clients, seconds)
                        found.setdefault((policy_name, n_units, n_clients), []).append(own)
    return {
        case: sorted(turns, key=lambda own: own.cpu_per_request)[ROUNDS // 2]
        for case, turns in found.items()
    }


def report(found: dict[tuple[str, int, int], Turn], clients: int, seconds: float) -> str:
    rows = []
    for (name, n_units, n_clients), own in found.items():
        p50, p99 = np.quantile(own.latencies, [0.5, 0.99]) * 1000
        base = found[NO_FOREST, n_units, n_clients].cpu_per_request
        rate = len(own.latencies) / own.seconds
        rows.append(
            [
                name,
                str(n_units),
                str(n_clients),
                f"{p50:.1f}",
                f"{p99:.1f}",
                f"{rate:,.0f}",
                f"{rate * n_units:,.0f}",
                f"{own.cpu_per_request * 1e3:.2f}",
                f"{own.cpu_per_request / base:.2f}",
            ]
        )
    titles = ["policy", "units", "clients", "p50 ms", "p99 ms", "requests/s", "decisions/s"]
    table = markdown_table([*titles, "CPU ms", "against no forest"], rows)
    worst = max(
        found[name, 1, n].cpu_per_request / found[NO_FOREST, 1, n].cpu_per_request
        for name in ("distilled forest", "distilled, with support")
        for n in (1, clients)
    )
    verdict = "at most 2, as wanted" if worst <= 2 else "more than the 2 that were wanted"
    about = {**provenance(), "seconds": seconds, "seeds": []}
    lines = [
        "# Speed of the decision service",
        heading(about),
        "One process on loopback, every decision stored in SQLite (WAL, synchronous FULL). Models "
        f"of {N_TREES} trees and {N_DOSES} doses, {N_FEATURES} features. CPU is the server's, per "
        f"request; {ROUNDS} turns of each, the middle one shown. Clients share the machine with "
        f"the server, whose load was {os.getloadavg()[2]:.1f} on average over the last minutes: on "
        "a busy machine read the ratios, not the times.",
        table,
        "Server CPU of a one-unit decision by a distilled forest against one without a forest: "
        f"{worst:.2f} at worst, {verdict}.",
    ]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn")
    parser.add_argument("--clients", type=int, default=8, help="at a time, for throughput")
    options = read_options(parser)
    began = time.perf_counter()
    found = measure(options.seconds, options.clients)
    text = report(found, options.clients, time.perf_counter() - began)
    write_files(options, {"service.md": text})
    print(text)


if __name__ == "__main__":
    main()
