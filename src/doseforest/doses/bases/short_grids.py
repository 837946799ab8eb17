"""Functions of the dose on short grids, remembered: a policy asks for the same few doses always."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray

SHORT = 64  # doses
REMEMBERED = 64  # grids of all bases of a kind

Evaluate = Callable[[Any, Any], FloatArray]


def remembered(evaluate: Evaluate) -> Evaluate:
    """A method of a basis that never changes and can be hashed; every answer is a new array.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Squares:
    ...     @remembered
    ...     def evaluate(self, doses):
    ...         print("evaluated")
    ...         return np.asarray(doses) ** 2
    >>> Squares().evaluate(np.array([3.0])), Squares().evaluate(np.array([3.0]))
    evaluated
    (array([9.]), array([9.]))
    """

    @lru_cache(maxsize=REMEMBERED)
    def known(basis: Any, doses: bytes) -> FloatArray:
        return evaluate(basis, np.frombuffer(doses))

    @wraps(evaluate)
    def asked(basis: Any, doses: Any) -> FloatArray:
        is_plain = isinstance(doses, np.ndarray) and doses.dtype == np.float64
        if is_plain and doses.ndim == 1 and len(doses) <= SHORT:
            return known(basis, doses.tobytes()).copy()
        return evaluate(basis, doses)

    return asked
