"""Jobs that say what they do, broadcasts and persisted rows that do not outlive their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

DESCRIPTION = "spark.job.description"
MOST_AT_ONCE = 4  # functions whose jobs run side by side: forests that grow have rows of their own


@contextmanager
def described(context: Any, text: str) -> Iterator[None]:
    """Give the jobs of a block a description in the Spark UI."""
    before = context.getLocalProperty(DESCRIPTION)
    context.setLocalProperty(DESCRIPTION, f"doseforest: {text}")
    try:
        yield
    finally:
        context.setLocalProperty(DESCRIPTION, before)


@contextmanager
def broadcast(context: Any, value: Any) -> Iterator[Any]:
    """Send a value to all executors for the length of a block."""
    sent = context.broadcast(value)
    try:
        yield sent
    finally:
        sent.destroy()


def at_once(function: Callable[[int], Result], numbers: Iterable[int]) -> list[Result]:
    """Results of a function that runs jobs, for each number; a few of them side by side.

    While one waits for the driver another has the executors. Every thread has job descriptions of
    its own.
    """
    from pyspark import inheritable_thread_target
    from pyspark.sql import SparkSession

    asked, session = list(numbers), SparkSession.builder.getOrCreate()
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        # A target for each: what a thread inherits is taken down when the target is made.
        targets = [inheritable_thread_target(session)(function) for _ in asked]
        return list(pool.map(lambda target, number: target(number), targets, asked))


class Kept:
    """Data sets and broadcasts that are kept on executors until a fit ends, also when it fails.

    A context manager; what was given to `keep` is released at its end.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._sent: list[Any] = []

    def keep(self, data: Any) -> Any:
        """Persist an RDD, in memory or on disk."""
        from pyspark import StorageLevel

        data.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(data)
        return data

    def send(self, context: Any, value: Any) -> Any:
        """Broadcast what kept data sets would be made from anew."""
        self._sent.append(context.broadcast(value))
        return self._sent[-1]

    def release(self, data: Any) -> None:
        """Let go of one of them before the end."""
        self._kept.remove(data)
        data.unpersist()

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *error: object) -> None:
        while self._kept:
            self._kept.pop().unpersist()
        while self._sent:
            self._sent.pop().destroy()
