"""Arms of an experiment by a salted hash: sticky, stored nowhere, the same in every system."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from doseforest.base.dtypes import Array, FloatArray
from doseforest.data.checks import as_labels, missing_marks

HASH_BYTES = 8
ROUNDING = 1e-9  # of shares that should add up to 1


def hash_positions(labels: Any, salt: str) -> FloatArray:
    """A number in [0, 1) for each label, uniform over labels.

    The first eight bytes of SHA-256 of ``salt:label`` in UTF-8 as a big-endian integer, over 2^64.
    The integer 7 and the text "7" are one label.

    Parameters
    ----------
    labels : array of shape (n,)
        Text or integers.
    salt : str
        Name of the experiment, so that its arms have nothing to do with those of another one.

    Returns
    -------
    array of shape (n,)
        The numbers.

    Examples
    --------
    >>> hash_positions(["north", "south", "north"], salt="spring").round(3)
    array([0.506, 0.409, 0.506])
    """
    texts, place = np.unique(_texts(labels), return_inverse=True)
    prefix = hashlib.sha256(f"{_checked_salt(salt)}:".encode())
    positions: FloatArray = np.empty(len(texts))
    for row, text in enumerate(texts.tolist()):
        digest = prefix.copy()
        digest.update(text.encode())
        positions[row] = int.from_bytes(digest.digest()[:HASH_BYTES], "big") / 2.0**64
    return np.minimum(positions, np.nextafter(1.0, 0.0))[place]


def assign_arms(labels: Any, salt: str, shares: Mapping[str, float] | None = None) -> Array:
    """Name of the arm of each label.

    The same label is always in the same arm, whatever else is assigned with it.

    Parameters
    ----------
    labels : array of shape (n,)
        Text or integers: the units that are assigned as a whole, such as cells.
    salt : str
        Name of the experiment: another salt puts other labels into each arm.
    shares : mapping from arm to float, optional
        Share of the labels of each arm, adding up to 1; by default half to "control" and half to
        "treatment".

    Returns
    -------
    array of str of shape (n,)
        The arms.

    Examples
    --------
    >>> assign_arms([1, 2, 3, 2], salt="spring").tolist()
    ['control', 'treatment', 'control', 'treatment']
    """
    planned = checked_shares(shares)
    ends = np.cumsum(list(planned.values()))[:-1]
    place = np.searchsorted(ends, hash_positions(labels, salt), side="right")
    return np.array(list(planned))[place]


def checked_shares(shares: Mapping[str, float] | None) -> dict[str, float]:
    """Planned shares of at least two arms."""
    planned = {"control": 0.5, "treatment": 0.5} if shares is None else shares
    valid = isinstance(planned, Mapping) and len(planned) >= 2
    valid = valid and all(
        isinstance(share, Real) and not isinstance(share, bool) and 0 < share < 1
        for share in planned.values()
    )
    if not valid or abs(sum(planned.values()) - 1.0) > ROUNDING:
        raise ValueError(
            "The 'shares' parameter must map at least two arms to shares in (0, 1) that add up "
            f"to 1. Got {shares!r} instead."
        )
    return {str(arm): float(share) for arm, share in planned.items()}


def _texts(labels: Any) -> Array:
    given = as_labels(labels, "labels")
    if given.ndim != 1:
        raise ValueError(
            f"The 'labels' parameter must have shape (n,). Got shape {given.shape} instead."
        )
    if missing_marks(given).any():
        row = int(np.flatnonzero(missing_marks(given))[0])
        raise ValueError(
            f"The 'labels' parameter must not have missing labels. Got one in row {row} instead."
        )
    if given.dtype.kind in "iuU":
        return given.astype(str)
    odd = [label for label in given.tolist() if isinstance(label, bool) or not _is_label(label)]
    if odd or given.dtype.kind == "b":
        got = f"{odd[0]!r} ({type(odd[0]).__name__})" if odd else given.dtype
        raise ValueError(f"The 'labels' parameter must hold text or integers. Got {got} instead.")
    return np.array([str(label) for label in given.tolist()], dtype=str)


def _is_label(label: Any) -> bool:
    return isinstance(label, str | int | np.integer)


def _checked_salt(salt: Any) -> str:
    if not isinstance(salt, str) or not salt:
        raise ValueError(f"The 'salt' parameter must be text, not empty. Got {salt!r} instead.")
    return salt
