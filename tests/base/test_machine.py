"""What the machine gives, and what it shows while it works."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import joblib
import pytest

from doseforest.base import machine
from doseforest.base.machine import available_memory, readable_bytes, thread_count
from doseforest.base.progress import ProgressBar

GIB = 2**30


# --- threads -----------------------------------------------------------------------------------


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("n_jobs", "threads"),
    [(None, 8), (-1, 8), (-2, 7), (-8, 1), (-9, 1), (-100, 1), (1, 1), (12, 12)],
)
def test_threads_are_counted_from_the_cores_this_process_may_use(
    n_jobs: int | None, threads: int
) -> None:
    assert thread_count(n_jobs) == threads


@pytest.mark.parametrize(("cores", "threads"), [(6, 6), (None, 1)])
def test_without_an_affinity_the_cores_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, threads: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert thread_count(None) == threads


def test_no_thread_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'n_jobs' parameter must not be 0\. Got 0"):
        thread_count(0)


def threads_beside(n_jobs: int | None) -> list[int]:
    tasks = (joblib.delayed(thread_count)(n_jobs) for _ in range(2))
    return list(joblib.Parallel(n_jobs=2, backend="threading")(tasks))


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (3, 3), (-1, 8)])
def test_a_task_beside_others_takes_one_thread_unless_told_otherwise(
    n_jobs: int | None, threads: int
) -> None:
    assert threads_beside(n_jobs) == [threads, threads]


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(("told", "threads"), [("1", 1), ("3", 3), ("0", 1), ("64", 8), ("4,2", 1)])
def test_a_worker_process_takes_the_share_it_was_told(
    monkeypatch: pytest.MonkeyPatch, told: str, threads: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)  # as joblib's worker processes find it
    assert threads_beside(None) == [1, 1]  # of threads nobody told it
    monkeypatch.setattr(machine, "parent_process", object)
    assert threads_beside(None) == [threads, threads]
    assert thread_count(None) == 8  # outside of such tasks it is a matter of the libraries


def test_one_task_after_the_other_is_not_beside_others() -> None:
    alone = thread_count(None)
    assert joblib.Parallel(n_jobs=1)([joblib.delayed(thread_count)(None)]) == [alone]


# --- memory ------------------------------------------------------------------------------------


class FakeMachine:
    """A /proc and two generations of control groups in a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.meminfo = folder / "meminfo"
        self.membership = folder / "cgroup_of_process"
        self.groups = folder / "cgroup"
        (self.groups / "memory").mkdir(parents=True)
        first = self.groups / "memory"
        self.limits = (self.groups / "memory.max", first / "memory.limit_in_bytes")
        self.usages = (self.groups / "memory.current", first / "memory.usage_in_bytes")
        monkeypatch.setattr(machine, "_CGROUPS", self.groups)
        monkeypatch.setattr(machine, "_CGROUP_OF_PROCESS", self.membership)
        monkeypatch.setattr(machine, "_MEMINFO", self.meminfo)

    def has_available(self, n_bytes: int) -> None:
        lines = ["MemTotal: 999999999 kB", f"MemAvailable:   {n_bytes // 1024} kB", "Cached: 1 kB"]
        self.meminfo.write_text("\n".join(lines))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMachine]:
    machine._core_quotas.cache_clear()
    yield FakeMachine(tmp_path, monkeypatch)
    machine._core_quotas.cache_clear()


def test_without_a_container_the_machine_decides(fake: FakeMachine) -> None:
    fake.has_available(5 * GIB)
    assert available_memory() == 5 * GIB


@pytest.mark.parametrize("version", [0, 1])
def test_a_container_allows_its_limit_less_what_it_uses(fake: FakeMachine, version: int) -> None:
    fake.has_available(50 * GIB)
    fake.limits[version].write_text(f"{4 * GIB}\n")
    assert available_memory() == 4 * GIB
    fake.usages[version].write_text(f"{1 * GIB}\n")
    assert available_memory() == 3 * GIB


@pytest.mark.parametrize("version", [0, 1])
def test_the_machine_decides_when_it_has_less_than_the_container_allows(
    fake: FakeMachine, version: int
) -> None:
    fake.has_available(2 * GIB)
    fake.limits[version].write_text(str(40 * GIB))
    assert available_memory() == 2 * GIB


@pytest.mark.parametrize(("version", "unlimited"), [(0, "max\n"), (1, "9223372036854771712\n")])
def test_a_container_without_a_limit_does_not_count(
    fake: FakeMachine, version: int, unlimited: str
) -> None:
    fake.has_available(5 * GIB)
    fake.limits[version].write_text(unlimited)
    fake.usages[version].write_text(str(3 * GIB))
    assert available_memory() == 5 * GIB


def test_a_full_container_has_nothing_left_rather_than_less(fake: FakeMachine) -> None:
    fake.has_available(5 * GIB)
    fake.limits[0].write_text(str(GIB))
    fake.usages[0].write_text(str(2 * GIB))
    assert available_memory() == 0


def test_file_cache_that_a_container_would_give_up_is_free(fake: FakeMachine) -> None:
    fake.limits[0].write_text(str(4 * GIB))
    fake.usages[0].write_text(str(3 * GIB))
    (fake.groups / "memory.stat").write_text(f"anon 5\ninactive_file {2 * GIB}\n")
    assert available_memory() == 3 * GIB


def test_the_tightest_group_above_the_process_decides(fake: FakeMachine) -> None:
    fake.has_available(50 * GIB)
    fake.membership.write_text("0::/slice/job/step\n")
    step = fake.groups / "slice" / "job" / "step"
    step.mkdir(parents=True)
    (step / "memory.max").write_text("max\n")
    (step.parent / "memory.max").write_text(str(6 * GIB))
    (step.parent / "memory.current").write_text(str(GIB))
    assert available_memory() == 5 * GIB


def test_where_nothing_tells_little_is_assumed(fake: FakeMachine) -> None:
    assert not fake.meminfo.exists()
    assert available_memory() == 2 * GIB


def test_a_share_of_cores_bounds_the_threads(
    fake: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fake.groups / "cpu.max").write_text("max 100000\n")
    unbounded = thread_count(None)
    (fake.groups / "cpu.max").write_text("50000 100000\n")
    later = monotonic() + 10
    monkeypatch.setattr(machine, "monotonic", lambda: later)  # quotas are believed for a moment
    assert thread_count(None) == 1
    monkeypatch.setattr(machine, "monotonic", lambda: later + 10)
    (fake.groups / "cpu.max").write_text("99900000 100000\n")
    assert thread_count(None) == unbounded


def test_this_machine_has_some_memory() -> None:
    assert available_memory() > 2**20


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (2**20, "1.0 MiB"),
        (3_500_000, "3.3 MiB"),
        (2**30, "1.0 GiB"),
        (2.5 * 2**40, "2.5 TiB"),
        (2**60, "1048576.0 TiB"),
    ],
)
def test_bytes_are_written_in_the_largest_unit_that_fits(n_bytes: float, text: str) -> None:
    assert readable_bytes(n_bytes) == text


# --- progress ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_bar(show: bool | None) -> None:
    with ProgressBar(4, "growing", "tree", show=show) as bar:
        bar.advance(1)
        bar.advance(3)


@pytest.mark.parametrize("show", [None, False])
def test_a_bar_is_silent_off_a_terminal(
    show: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    run_bar(show)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bar_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    run_bar(True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "growing: 100%" in captured.err
    assert "4/4" in captured.err
    assert "tree" in captured.err


@pytest.mark.parametrize(("show", "is_silent"), [(None, True), (False, True), (True, False)])
def test_brief_work_shows_a_bar_on_a_terminal_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, show: bool | None, is_silent: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run_bar(show)
    assert (terminal.getvalue() == "") == is_silent


def test_long_work_on_a_terminal_shows_a_bar_and_wipes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("doseforest.base.progress._DELAY_SECONDS", 0.0)
    run_bar(None)
    assert "growing" in terminal.getvalue()
    assert terminal.getvalue().rsplit("\r", 2)[-2].strip() == ""


def test_a_program_without_an_error_stream_works_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw and in some services
    monkeypatch.setattr("doseforest.base.progress._DELAY_SECONDS", 0.0)
    run_bar(None)
    assert capsys.readouterr().out == ""


def test_a_failure_closes_the_bar_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(4, "growing", "tree", show=True)
    with pytest.raises(ZeroDivisionError), bar:
        raise ZeroDivisionError
    written = capsys.readouterr().err
    bar.advance(1)
    assert written.endswith("\n")
    assert capsys.readouterr().err == ""
