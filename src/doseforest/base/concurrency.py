"""Independent fits side by side, one thread each.

Libraries that fit (boosting, linear algebra) are slower than one thread on small data when their
own threads meet others', and some give other bits; many fits at once use the cores better.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

LARS = r"sklearn\.linear_model\._least_angle"  # drops collinear terms on its way, and says so

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Result]:
    """Results of a function of each item, in order; the first error ends the work.

    Examples
    --------
    >>> side_by_side(lambda number: number**2, [1, 2, 3], n_threads=2)
    [1, 4, 9]
    """
    results = []
    with threadpool_limits(1, user_api="blas"):
        if n_threads == 1:
            for item in items:
                results.append(function(item))
                on_progress(1)
            return results
        # Filters of warnings belong to the process: what one fit silences for itself, another
        # would hear again when the first is done. So what all of them silence is silenced here.
        with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
            warnings.filterwarnings("ignore", category=UserWarning, module=LARS)
            waiting = [pool.submit(function, item) for item in items]
            try:
                for future in waiting:
                    results.append(future.result())
                    on_progress(1)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    return results
