"""Progress bars: shown on a terminal, for work over a few seconds, or when asked for."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

_DELAY_SECONDS = 2.0


class ProgressBar:
    """A bar over a known amount of work; a context manager.

    Parameters
    ----------
    total : int
    label : str
    unit : str
    show : bool, optional
        None shows the bar on a terminal once the work has taken two seconds.

    Examples
    --------
    >>> with ProgressBar(2, "growing", "tree", show=False) as bar:
    ...     bar.advance(2)
    """

    def __init__(self, total: int, label: str, unit: str, show: bool | None = None) -> None:
        self._bar: Any = None
        # A program without a console has no error stream at all.
        if sys.stderr is not None and (show or (show is None and sys.stderr.isatty())):
            from tqdm import tqdm

            delay = 0.0 if show else _DELAY_SECONDS
            self._bar = tqdm(total=total, desc=label, unit=unit, delay=delay, leave=bool(show))

    def advance(self, amount: int) -> None:
        """Tell that some more work is done."""
        if self._bar is not None:
            self._bar.update(amount)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
