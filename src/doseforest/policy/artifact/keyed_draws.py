"""Random numbers that belong to a unit: a hash of its key and a salt, the same on every machine."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray
from doseforest.base.seeds import draw, mix, uniform
from doseforest.data.checks import missing_marks

LONGEST_KEY = 1000  # characters


def keyed_uniform(keys: Any, salt: str, name: str = "key") -> FloatArray:
    """Numbers in [0, 1), one for each key; other salts give others, independent of these.

    A key is text or a whole number, and 7 is the same key as "7".

    Parameters
    ----------
    keys : array of shape (n_units,)
    salt : str
        Of the experiment: without one of its own, two experiments would draw alike.
    name : str
        Of the column, for errors.

    Examples
    --------
    >>> keyed_uniform(np.array([7, 8]), "spring").round(3)
    array([0.177, 0.444])
    >>> keyed_uniform(np.array(["8", "7"]), "spring").round(3)
    array([0.444, 0.177])
    """
    text = _as_text(np.asarray(keys), name)
    letters = np.ascontiguousarray(text).view(np.uint32).reshape(len(text), -1)
    digest = hashlib.sha256(salt.encode()).digest()
    hashes = np.full(len(text), int.from_bytes(digest[:8], "little"), np.uint64)
    for column in letters.T:  # shorter keys end in zeros, which change nothing
        hashes = np.where(column > 0, draw(hashes, column.astype(np.uint64)), hashes)
    return uniform(mix(hashes))


def _as_text(keys: Array, name: str) -> Array:
    if missing_marks(keys).any():
        raise ValueError(
            f"The column {name!r} must have a key for every unit: without one there is no draw. "
            f"Got {int(missing_marks(keys).sum())} missing instead."
        )
    if keys.dtype.kind == "f" and (keys == np.floor(keys)).all() and np.abs(keys).max() < 2**53:
        keys = keys.astype(np.int64)  # of a column that once had gaps
    if keys.dtype.kind == "O" and not all(isinstance(key, str | int) for key in keys):
        keys = np.empty(0)
    if keys.dtype.kind not in "OUiu":
        raise TypeError(
            f"The column {name!r} must hold keys that are text or whole numbers. "
            f"Got {keys.dtype} instead."
        )
    text = keys.astype(np.str_)
    if text.dtype.itemsize > 4 * LONGEST_KEY:
        raise ValueError(
            f"The column {name!r} must hold keys of at most {LONGEST_KEY} characters. "
            f"Got one of {text.dtype.itemsize // 4} instead."
        )
    return text
