"""Changes to forest files that keep their checksums right, so that a loader has to look closer.

A file is taken apart into its description and its arrays, changed in one place, and sealed again:
lengths, offsets and checksums fit, whatever the contents say now.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doseforest.base.container import ALIGNMENT, MAGIC, PREAMBLE, SCALARS, VERSION

MutateBytes = Callable[[bytes, int], bytes]  # data and the most bytes to return

# What a description may hold in a wrong place.
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 255, 65_535, 65_536, 2**31 - 1, 2**31, 2**53, 2**63, 2**64,
    10**400, 0.0, -0.0, 0.5, 1e-300, 1e27, 1e100, 1e308, "", "a", "mean", "ratio", "ridge", "none",
    "tree", "forest", "effect_forest", "distilled_forest", "legendre", "spline", "indicators",
    "orthogonal", "stabilized", "kernel", "identity", "logistic", "spline_core", "tree_ensemble",
    "boosted_core", "stack", "policy", "dose_policy", "explore", "total", "discount",
    [], [0], [1.0, 0.5], ["a", "a"], [[[]]], {}, {"kind": "mean"},
]  # fmt: skip
ODD_NUMBERS = [0, 1, -1, 2, 3, 127, 128, 255, 2**15, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
ODD_FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-300, 3e38, 1e100, 1e308, np.inf, -np.inf, np.nan]


@dataclass(frozen=True, slots=True)
class Piece:
    """One array of a file; its bytes need not fit what is said about it."""

    name: Any
    dtype: Any  # as the header describes it
    shape: Any
    data: bytes


@dataclass(frozen=True, slots=True)
class Parts:
    """A forest file taken apart."""

    metadata: Any
    pieces: tuple[Piece, ...]


def take_apart(file: bytes) -> Parts | None:
    """Parts of a file, or None if it is too damaged to have any."""
    try:
        length = PREAMBLE.unpack(file[: PREAMBLE.size])[3]
        header = json.loads(file[PREAMBLE.size : PREAMBLE.size + length])
        start = _aligned(PREAMBLE.size + length)
        pieces = tuple(
            Piece(e["name"], e["dtype"], e["shape"], file[start + e["offset"] :][: e["nbytes"]])
            for e in header["arrays"]
        )
        return Parts(header["metadata"], pieces)
    except (struct.error, ValueError, LookupError, TypeError, RecursionError, ArithmeticError):
        return None


def sealed(parts: Parts) -> bytes:
    """The file of the parts, with lengths, offsets and checksums that fit."""
    entries, blocks, offset = [], [], 0
    for piece in parts.pieces:
        entries.append(
            {
                "name": piece.name,
                "dtype": piece.dtype,
                "shape": piece.shape,
                "offset": offset,
                "nbytes": len(piece.data),
                "sha256": hashlib.sha256(piece.data).hexdigest(),
            }
        )
        blocks.append(piece.data + bytes(-len(piece.data) % ALIGNMENT))
        offset += len(blocks[-1])
    header = {"metadata": parts.metadata, "arrays": entries}
    return sealed_header(json.dumps(header, sort_keys=True, separators=(",", ":")).encode(), blocks)


def sealed_header(header: bytes, blocks: list[bytes]) -> bytes:
    """A file of any header and padded arrays, with the checksum of that header."""
    padding = bytes(-len(header) % ALIGNMENT)
    total = PREAMBLE.size + len(header) + len(padding) + sum(map(len, blocks))
    digest = hashlib.sha256(header).digest()
    preamble = PREAMBLE.pack(MAGIC, VERSION, 0, len(header), digest, total)
    return b"".join([preamble, header, padding, *blocks])


def mutated(file: bytes, most: int, seed: int, mutate_bytes: MutateBytes) -> bytes:
    """A file with one to three changes, sealed again; now and then raw bytes, not sealed."""
    rng = random.Random(seed)
    parts = take_apart(file)
    if parts is None or rng.random() < 0.05:
        return mutate_bytes(file, most)
    try:
        if rng.random() < 0.1:
            return _with_other_header(parts, most, mutate_bytes)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            parts = rng.choice(MUTATIONS)(parts, rng, mutate_bytes)
        changed = sealed(parts)
    except RecursionError:  # lists in lists in lists, which can be read but not written
        return file
    return changed if len(changed) <= most else file


def crossed(first: bytes, second: bytes, most: int, seed: int) -> bytes:
    """The description of one file with arrays of both."""
    rng = random.Random(seed)
    one, two = take_apart(first), take_apart(second)
    if one is None or two is None:
        return first
    others = {repr(piece.name): piece for piece in two.pieces}
    pieces = tuple(
        others.get(repr(piece.name), piece) if rng.random() < 0.3 else piece for piece in one.pieces
    )
    metadata = two.metadata if rng.random() < 0.3 else one.metadata
    changed = sealed(Parts(metadata, pieces))
    return changed if len(changed) <= most else first


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


def _with_other_header(parts: Parts, most: int, mutate_bytes: MutateBytes) -> bytes:
    """Bytes of the header changed as they come, with its checksum put right."""
    file = sealed(parts)
    length = PREAMBLE.unpack(file[: PREAMBLE.size])[3]
    header = file[PREAMBLE.size : PREAMBLE.size + length]
    rest = file[_aligned(PREAMBLE.size + length) :]
    room = most - PREAMBLE.size - len(rest) - ALIGNMENT
    return sealed_header(mutate_bytes(header, max(room, len(header))), [rest])


def _change_value(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Put an odd value, or one from elsewhere, somewhere into the description."""
    metadata = json.loads(json.dumps(parts.metadata))
    if not isinstance(metadata, dict | list) or not metadata:
        return replace(parts, metadata=rng.choice(ODD_VALUES))
    everywhere = list(places(metadata))
    owner, key = rng.choice(everywhere)
    action = rng.random()
    if action < 0.1:
        del owner[key]
    elif action < 0.3:
        other, other_key = rng.choice(everywhere)
        owner[key] = json.loads(json.dumps(other[other_key]))
    elif action < 0.5 and isinstance(owner[key], int | float) and abs(owner[key]) < 2**64:
        owner[key] = owner[key] * rng.choice([-1, 0.5, 2, 10]) + rng.choice([-1, 0, 1])
    elif action < 0.6 and isinstance(owner[key], list) and owner[key]:
        owner[key] = owner[key] * 2 if rng.random() < 0.5 else owner[key][:-1]
    else:
        owner[key] = rng.choice(ODD_VALUES)
    return replace(parts, metadata=metadata)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a description."""
    waiting = [value]
    while waiting:
        own = waiting.pop()
        keys = list(own) if isinstance(own, dict) else range(len(own))
        for key in keys:
            yield own, key
            if isinstance(own[key], dict | list):
                waiting.append(own[key])


def _change_element(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Put an odd number into an array, into one field of it where it has fields."""

    def change(piece: Piece) -> Piece:
        dtype = _dtype(piece)
        if dtype is None or dtype.itemsize == 0 or len(piece.data) < dtype.itemsize:
            return piece
        array = np.frombuffer(
            piece.data[: len(piece.data) // dtype.itemsize * dtype.itemsize], dtype
        )
        array = array.copy()
        values = array[rng.choice(dtype.names)] if dtype.names else array
        place = rng.randrange(len(values))
        if values.dtype.kind == "f":
            odd = [*ODD_FLOATS, float(values[place]) * rng.choice([-1, 0.5, 2])]
            with np.errstate(all="ignore"):
                values[place] = np.float64(rng.choice(odd))
        else:
            odd = [
                *ODD_NUMBERS,
                int(values[place]) + rng.choice([-1, 1]),
                rng.randrange(len(array)),
            ]
            bits = 8 * values.dtype.itemsize
            wrapped = rng.choice(odd) % 2**bits
            values[place] = np.array(wrapped, np.uint64).astype(values.dtype)
        return replace(piece, data=array.tobytes())

    return _change_piece(parts, rng, change)


def _change_bytes(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Change bytes of an array as they come, at the same length."""

    def change(piece: Piece) -> Piece:
        if not piece.data:
            return piece
        data = mutate_bytes(piece.data, len(piece.data))[: len(piece.data)]
        return replace(piece, data=data + piece.data[len(data) :])

    return _change_piece(parts, rng, change)


def _change_length(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Give an array more or fewer rows, and say so."""

    def change(piece: Piece) -> Piece:
        if not (isinstance(piece.shape, list) and piece.shape and isinstance(piece.shape[0], int)):
            return piece
        n_rows = piece.shape[0]
        if n_rows <= 0 or len(piece.data) % n_rows:
            return piece
        row = len(piece.data) // n_rows
        wanted = rng.choice([0, 1, n_rows - 1, n_rows + 1, 2 * n_rows])
        data = (piece.data * 3)[: wanted * row]
        return replace(
            piece, shape=[len(data) // row if row else wanted, *piece.shape[1:]], data=data
        )

    return _change_piece(parts, rng, change)


def _change_entry(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Say something else about an array: name, type or shape."""

    def change(piece: Piece) -> Piece:
        what = rng.randrange(4)
        if what == 0:
            return replace(piece, dtype=rng.choice([*sorted(SCALARS), "<f16", "|O", [], None]))
        if what == 1 and isinstance(piece.shape, list):
            return replace(
                piece, shape=piece.shape[::-1] if rng.random() < 0.5 else [*piece.shape, 1]
            )
        if what == 2:
            return replace(
                piece, shape=rng.choice([[], [0], [2**62], [-1], [1] * 70, "a", [0, 2**63]])
            )
        return replace(piece, name=rng.choice([other.name for other in parts.pieces] + [None, "x"]))

    return _change_piece(parts, rng, change)


def _move_pieces(parts: Parts, rng: random.Random, mutate_bytes: MutateBytes) -> Parts:
    """Drop an array, repeat one, or give one the contents of another."""
    pieces = list(parts.pieces)
    if not pieces:
        return parts
    own, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    action = rng.randrange(3)
    if action == 0:
        del pieces[own]
    elif action == 1:
        pieces.append(pieces[own])
    else:
        pieces[own] = replace(pieces[other], name=pieces[own].name)
    return replace(parts, pieces=tuple(pieces))


MUTATIONS = [
    *[_change_value] * 4,
    *[_change_element] * 4,
    _change_bytes,
    *[_change_length] * 2,
    _change_entry,
    _move_pieces,
]


def _change_piece(parts: Parts, rng: random.Random, change: Callable[[Piece], Piece]) -> Parts:
    if not parts.pieces:
        return parts
    own = rng.randrange(len(parts.pieces))
    pieces = [change(piece) if n == own else piece for n, piece in enumerate(parts.pieces)]
    return replace(parts, pieces=tuple(pieces))


def _dtype(piece: Piece) -> np.dtype[Any] | None:
    try:
        if isinstance(piece.dtype, str):
            return np.dtype(piece.dtype) if piece.dtype in SCALARS else None
        return np.dtype([(name, scalar) for name, scalar in piece.dtype if scalar in SCALARS])
    except (TypeError, ValueError):
        return None
