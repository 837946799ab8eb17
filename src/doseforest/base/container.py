"""A file of named arrays and JSON metadata: the format under a saved forest.

1. Preamble, 64 bytes, little-endian: the magic ``DOSEFRST``, container version (uint32), zero
   (uint32), length of the header (uint64), SHA-256 of the header, length of the file (uint64).
2. Header, JSON: ``metadata`` and ``arrays``, a list of name, dtype, shape, offset, nbytes, sha256.
3. Arrays: C-ordered little-endian bytes, in the order of their entries. Offsets count from the
   beginning of this part, so that the header does not depend on its own length.

Header and arrays are each filled up with zeros to a multiple of 64 bytes. Every byte is either
covered by a checksum or has only one allowed value, so any change shows.
"""

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from doseforest.base.atomic_files import replacing

__all__ = ["Container", "ForestFileError", "read_container", "write_container"]

JSON: TypeAlias = "Mapping[str, JSON] | Sequence[JSON] | str | int | float | bool | None"
FilePath: TypeAlias = str | os.PathLike[str]
Arrays: TypeAlias = dict[str, NDArray[Any]]
FileBytes: TypeAlias = NDArray[np.uint8]  # (n_bytes,), the whole file

MAGIC = b"DOSEFRST"
VERSION = 1
ALIGNMENT = 64  # a cache line, and enough for any vector instruction on a mapped array
PREAMBLE = struct.Struct("<8sIIQ32sQ")  # exactly ALIGNMENT bytes
# A closed list, not "anything numpy parses": no objects (pickle), no platform-sized long double.
SCALARS = {"|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"}
MAX_DIMENSIONS = 64  # numpy's own limit
MAX_NBYTES = 2**63 - 1  # numpy's own limit, also for the nonzero axes of an empty array


class ForestFileError(ValueError):
    """The file is not a forest file, is damaged, or was written by a newer doseforest."""


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """What a container file holds."""

    metadata: dict[str, Any]
    arrays: Arrays  # read-only
    version: int  # container version the file was written with


def write_container(
    path: FilePath, metadata: Mapping[str, JSON], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and metadata to a file, completely or not at all.

    Equal input gives equal bytes, whatever the order of the mappings.

    Parameters
    ----------
    path : path-like
        File to create or to replace. A replaced file keeps its permission bits.
    metadata : mapping
        Plain JSON with string keys, without NaN and infinities. Tuples come back as lists.
    arrays : mapping of str to ndarray
        Booleans, integers, floats of up to 64 bits, or packed records of those; anything else
        is a TypeError. Big-endian arrays are stored little-endian.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_container(f"{folder}/model.dose", {"n_trees": 2}, {"doses": np.arange(3.0)})
    ...     os.listdir(folder)
    ['model.dose']
    """
    blocks = dict(sorted((name, _storable(name, array)) for name, array in arrays.items()))
    header = _encode_header(metadata, blocks)
    digest = hashlib.sha256(header).digest()
    total = sum(map(_aligned, [PREAMBLE.size, len(header), *(b.nbytes for b in blocks.values())]))
    preamble = PREAMBLE.pack(MAGIC, VERSION, 0, len(header), digest, total)
    _write_blocks(path, [preamble, header, *map(_raw, blocks.values())])


def read_container(path: FilePath, *, memory_map: bool = False, verify: bool = True) -> Container:
    """Read metadata and read-only arrays; damage of any kind is a ForestFileError.

    Parameters
    ----------
    path : path-like
        File written by `write_container`.
    memory_map : bool, default=False
        Map the arrays instead of reading them, so that processes share one copy. Replacing the
        file with `write_container` is safe while it is mapped; editing it in place is not.
    verify : bool, default=True
        Check the arrays' checksums. Without it a mapped file opens at once, but damage inside
        an array goes unnoticed; everything else is checked in any case.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_container(f"{folder}/model.dose", {"n_trees": 2}, {"doses": np.arange(3.0)})
    ...     container = read_container(f"{folder}/model.dose")
    >>> container.metadata, container.arrays
    ({'n_trees': 2}, {'doses': array([0., 1., 2.])})
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            version, header_end, digest = _read_preamble(file.read(PREAMBLE.size), size)
            file.seek(0)
            # One buffer of the file's real size: nothing is allocated on the header's word.
            data = np.memmap(file, np.uint8, "r") if memory_map else np.fromfile(file, np.uint8)
        _require(data.size == size, "its length changed while it was read")
        data.flags.writeable = False
        metadata, entries = _decode_header(data[PREAMBLE.size : header_end].tobytes(), digest)
        return Container(metadata, _read_arrays(data, header_end, entries, verify), version)
    except (ForestFileError, RecursionError) as error:  # a forged entry may be too deep to print
        raise ForestFileError(f"Cannot read {os.fspath(path)!r}: {error}.") from error.__cause__


def _aligned(position: int) -> int:
    return position + -position % ALIGNMENT


def _raw(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data  # array.data itself refuses some field names


def _storable(name: object, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array C-ordered and little-endian, with its dtype known to be readable."""
    if not isinstance(name, str):
        raise TypeError(f"The keys of 'arrays' must be strings. Got {name!r} instead.")
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    # The reader's own parser decides; it never builds padding, so padded records differ here.
    if _parse_dtype(_describe_dtype(dtype)) != dtype:
        raise TypeError(
            f"The array {name!r} must hold booleans, integers, floats of up to 64 bits or packed "
            f"records of those. Got dtype {array.dtype} instead."
        )
    return np.asarray(array, dtype=dtype, order="C")


def _describe_dtype(dtype: np.dtype[Any]) -> str | list[list[str]]:
    return dtype.str if dtype.names is None else [[n, dtype[n].str] for n in dtype.names]


def _parse_dtype(description: Any) -> np.dtype[Any] | None:
    """Return the described dtype, or None if a container may not hold it."""
    try:
        if isinstance(description, str):
            return np.dtype(description) if description in SCALARS else None
        fields = [(name, scalar) for name, scalar in description if scalar in SCALARS]
        return np.dtype(fields) if 0 < len(fields) == len(description) else None
    except (TypeError, ValueError):  # nested, of another type, a name twice, ...
        return None


def _describe_array(name: str, array: NDArray[Any], offset: int, digest: str) -> dict[str, JSON]:
    return {
        "name": name,
        "dtype": _describe_dtype(array.dtype),
        "shape": list(array.shape),
        "offset": offset,
        "nbytes": array.nbytes,
        "sha256": digest,
    }


def _encode_header(metadata: Mapping[str, JSON], blocks: Mapping[str, NDArray[Any]]) -> bytes:
    entries: list[dict[str, JSON]] = []
    offset = 0
    for name, array in blocks.items():
        digest = hashlib.sha256(_raw(array)).hexdigest()
        entries.append(_describe_array(name, array, offset, digest))
        offset += _aligned(array.nbytes)
    header = {"metadata": dict(metadata), "arrays": entries}
    try:
        return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise type(error)(f"'metadata' must be JSON without NaN or infinity: {error}") from error


def _write_blocks(path: FilePath, blocks: Iterable[bytes | memoryview]) -> None:
    """Write the blocks, each padded to the alignment."""
    with replacing(path) as draft, open(draft, "xb") as file:
        for block in blocks:
            file.write(block)
            file.write(bytes(-file.tell() % ALIGNMENT))


def _refuse(defect: str) -> NoReturn:
    raise ForestFileError(f"{defect}; copy the file again or save the forest again")


def _require(condition: bool, defect: str) -> None:
    if not condition:
        _refuse(defect)


def _read_preamble(preamble: bytes, size: int) -> tuple[int, int, bytes]:
    """Check the first 64 bytes; return version, end of the header and digest of the header."""
    if not MAGIC.startswith(preamble[: len(MAGIC)]):
        raise ForestFileError("it is not a forest file; check the path")
    lengths = "the file is {}: it should have {} bytes and has " + str(size)
    _require(len(preamble) == PREAMBLE.size, lengths.format("truncated", "at least 64"))
    _, version, reserved, header_length, digest, total = PREAMBLE.unpack(preamble)
    if version > VERSION:  # before all else: a newer version may mean something else by the rest
        newer = f"a newer doseforest (container version {version}; this one reads up to {VERSION})"
        raise ForestFileError(f"it was written by {newer}; upgrade doseforest")
    _require(version > 0 and reserved == 0, f"it has version {version}, reserved field {reserved}")
    _require(size >= total, lengths.format("truncated", total))
    _require(size <= total, lengths.format("too long", total))
    _require(header_length <= size - PREAMBLE.size, "its header would end after the file")
    return version, PREAMBLE.size + header_length, digest


def _decode_header(raw: bytes, digest: bytes) -> tuple[dict[str, Any], list[Any]]:
    _require(hashlib.sha256(raw).digest() == digest, "the checksum of the header is wrong")
    try:
        header = json.loads(raw.decode(), parse_constant=int)  # int raises on NaN and Infinity
    except (ValueError, RecursionError) as error:
        _refuse(f"the header is not valid JSON ({error})")
    match header:
        case {"metadata": dict(metadata), "arrays": list(entries)}:
            return metadata, entries
    _refuse("the header needs an object 'metadata' and a list 'arrays'")


def _read_arrays(data: FileBytes, header_end: int, entries: list[Any], verify: bool) -> Arrays:
    arrays: Arrays = {}
    start = position = _skip_padding(data, header_end)
    for entry in entries:
        name, array = _view_array(data, entry, position)
        _require(name not in arrays, f"the array {name!r} occurs twice")
        digest = hashlib.sha256(_raw(array)).hexdigest() if verify else entry["sha256"]
        # Arrays follow one another without gaps, so this finds overlaps and misalignment too.
        for key, fact in _describe_array(name, array, position - start, digest).items():
            stated = repr(entry.get(key))  # as text, since 0 == False == 0.0
            defect = f"the header gives the array {name!r} {key} {stated:.80}, not {fact!r}"
            _require(stated == repr(fact), defect)
        arrays[name] = array
        position = _skip_padding(data, position + array.nbytes)
    _require(position == data.size, f"the bytes from {position} on belong to no array")
    return arrays


def _skip_padding(data: FileBytes, begin: int) -> int:
    end = _aligned(begin)
    _require(end <= data.size and not data[begin:end].any(), f"bytes {begin}-{end} should be zeros")
    return end


def _view_array(data: FileBytes, entry: Any, position: int) -> tuple[str, NDArray[Any]]:
    """Return the name and, as a view of the file from a position on, the array of an entry."""
    match entry:
        case {"name": str(name), "dtype": description, "shape": list(shape), "sha256": str()}:
            dtype = _parse_dtype(description)
        case _:
            _refuse(f"an array has the malformed entry {entry!r:.80}")
    if dtype is None:
        _refuse(f"the array {name!r} has the unsupported dtype {description!r:.80}")
    possible = (
        len(shape) <= MAX_DIMENSIONS
        and all(type(extent) is int and 0 <= extent <= MAX_NBYTES for extent in shape)
        and dtype.itemsize * math.prod(extent or 1 for extent in shape) <= MAX_NBYTES
    )
    _require(possible, f"the array {name!r} has the impossible shape {shape!r:.80}")
    missing = position + dtype.itemsize * math.prod(shape) - data.size
    _require(missing <= 0, f"the array {name!r} ends {missing} bytes after the file")
    return name, np.ndarray(shape, dtype, buffer=data, offset=position)


def require_of(owner: str, condition: bool, problem: str) -> None:
    """Refuse a file whose contents have a problem."""
    if not condition:
        raise ForestFileError(f"the {owner} {problem}; the file is damaged, save the {owner} again")
