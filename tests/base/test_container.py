"""The container file: exact round trips, no damage unnoticed, no half-written file."""

import hashlib
import json
import os
import re
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from doseforest.base.container import ForestFileError, read_container, write_container

posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions and links")
# The function-scoped folder is safe to share: every example overwrites the same file.
deterministic = settings(
    derandomize=True,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

METADATA: dict[str, Any] = {"estimator": "forest", "n_trees": 2, "levels": ["a", "b"]}
NODE_DTYPE = np.dtype([("feature", "<i4"), ("threshold", "<f8"), ("is_leaf", "?")])


def small_arrays() -> dict[str, NDArray[Any]]:
    nodes = np.zeros(2, NODE_DTYPE)
    nodes["threshold"] = [0.25, np.nan]
    return {"nodes": nodes, "doses": np.linspace(0, 1, 5), "empty": np.zeros((0, 3), np.int16)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.dose"


@pytest.fixture
def saved(path: Path) -> Path:
    write_container(path, METADATA, small_arrays())
    return path


def assert_identical(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


def forge(path: Path, header: object, data: bytes = b"") -> None:
    """Write a file whose preamble, checksum and padding are right, whatever its header says."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = raw + bytes(-len(raw) % 64) + data
    digest = hashlib.sha256(raw).digest()
    preamble = struct.pack("<8sIIQ32sQ", b"DOSEFRST", 1, 0, len(raw), digest, 64 + len(body))
    path.write_bytes(preamble + body)


def entry(**changes: object) -> dict[str, object]:
    """Describe a valid array of eight uint8 zeros, apart from the changes."""
    digest = hashlib.sha256(bytes(8)).hexdigest()
    valid = {"name": "a", "dtype": "|u1", "shape": [8], "offset": 0, "nbytes": 8, "sha256": digest}
    return valid | changes


# --- round trips -------------------------------------------------------------------------------

NUMBERS = ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8"]
SCALARS = st.sampled_from(["?", "i1", "u1", *(order + n for n in NUMBERS for order in "<>")])
FIELD_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
RECORDS = st.lists(
    st.tuples(FIELD_NAMES, SCALARS), min_size=1, max_size=4, unique_by=lambda f: f[0]
)


@st.composite
def raw_arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Draw arrays from random bytes, so that every NaN payload may occur."""
    dtype = np.dtype(draw(st.one_of(SCALARS, RECORDS)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    nbytes = int(np.prod(shape)) * dtype.itemsize
    raw = draw(st.binary(min_size=nbytes, max_size=nbytes))
    array = np.ndarray(shape, dtype, buffer=raw) if raw else np.zeros(shape, dtype)
    return np.asfortranarray(array) if draw(st.booleans()) and array.ndim else array


def little_endian_bytes(array: NDArray[Any]) -> bytes:
    """Reverse the bytes of big-endian numbers one by one: a twin that involves no cast."""
    fields = [array.dtype[name] for name in array.dtype.names or ()] or [array.dtype]
    raw, numbers = array.tobytes(), []
    for begin in range(0, len(raw), array.dtype.itemsize):
        for field in fields:
            number = raw[begin : begin + field.itemsize]
            numbers.append(number[::-1] if field.byteorder == ">" else number)
            begin += field.itemsize
    return b"".join(numbers)


@deterministic
@given(arrays=st.dictionaries(st.text(max_size=6), raw_arrays(), max_size=4))
def test_arrays_come_back_bit_for_bit(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    write_container(path, {}, arrays)
    for memory_map in (False, True):
        restored = read_container(path, memory_map=memory_map).arrays
        assert restored.keys() == arrays.keys()
        for name, array in arrays.items():
            assert restored[name].dtype == array.dtype.newbyteorder("<")
            assert restored[name].shape == array.shape
            assert restored[name].tobytes() == little_endian_bytes(array)
            assert restored[name].flags.aligned or array.dtype.names


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@deterministic
@given(metadata=st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_metadata_come_back_unchanged(path: Path, metadata: dict[str, Any]) -> None:
    write_container(path, metadata, {})
    restored = read_container(path).metadata
    assert restored == metadata
    # As text too, since 0 == 0.0 == False.
    assert json.dumps(restored, sort_keys=True) == json.dumps(metadata, sort_keys=True)


UNUSUAL_ARRAYS: dict[str, NDArray[Any]] = {
    "0-d": np.array(1.5),
    "0-d record": np.zeros((), NODE_DTYPE),
    "empty": np.zeros(0),
    "empty records": np.zeros((3, 0, 2), NODE_DTYPE),
    "empty but wide": np.zeros((0, 2**62), np.int8),
    "strided": np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[::2, ::-1],
    "broadcast": np.broadcast_to(np.float32(2), (3, 2)),
    "NaN payloads": np.array([0x7FF0000000000001, 0xFFF8DEADBEEF0001], "<u8").view("<f8"),
}


@pytest.mark.parametrize("array", UNUSUAL_ARRAYS.values(), ids=UNUSUAL_ARRAYS)
def test_unusual_arrays_come_back_bit_for_bit(path: Path, array: NDArray[Any]) -> None:
    write_container(path, {}, {"first": np.ones(3, np.uint8), "second": array, "third": array})
    for memory_map in (False, True):
        arrays = read_container(path, memory_map=memory_map).arrays
        assert_identical(arrays["second"], array)
        assert_identical(arrays["third"], array)


def test_equal_input_gives_equal_bytes_in_any_order(tmp_path: Path) -> None:
    arrays = small_arrays()
    write_container(tmp_path / "one", METADATA, arrays)
    write_container(
        tmp_path / "two", dict(reversed(METADATA.items())), dict(reversed(arrays.items()))
    )
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_bytes_of_version_1_never_change(path: Path) -> None:
    records = np.array([(1, 2)], [("n", "u1"), ("mean", "<f4")])
    write_container(path, {"name": "dosé"}, {"b": np.array([1, 2], ">u2"), "a": records})
    raw = path.read_bytes()
    assert raw[:16] == b"DOSEFRST\1\0\0\0\0\0\0\0"
    assert raw[64:].startswith(b'{"arrays":[{"dtype":[["n","|u1"],["mean","<f4"]],"name":"a",')
    assert raw[-128:] == b"\1\0\0\0@".ljust(64, b"\0") + b"\1\0\2\0".ljust(64, b"\0")
    golden = "e37a9a98598a8bcc8e6217307362d09f111922bc57a34578f26a743e54134bce"
    assert hashlib.sha256(raw).hexdigest() == golden


def test_every_array_begins_at_a_multiple_of_64_bytes(saved: Path) -> None:
    for array in read_container(saved, memory_map=True).arrays.values():
        assert array.__array_interface__["data"][0] % 64 == 0


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("memory_map", [True, False])
def test_arrays_are_read_only_views_of_one_buffer(
    saved: Path, memory_map: bool, verify: bool
) -> None:
    restored = read_container(saved, memory_map=memory_map, verify=verify)
    assert restored.metadata == METADATA
    assert restored.version == 1
    assert len({id(array.base) for array in restored.arrays.values()}) == 1
    for name, array in small_arrays().items():
        assert_identical(restored.arrays[name], array)
        assert isinstance(restored.arrays[name].base, np.memmap) == memory_map
        with pytest.raises(ValueError, match="WRITEABLE"):
            restored.arrays[name].flags.writeable = True


def test_a_mapped_file_may_be_replaced(saved: Path) -> None:
    mapped = read_container(saved, memory_map=True).arrays["doses"]
    write_container(saved, {}, {"doses": np.zeros(5)})
    assert_identical(mapped, small_arrays()["doses"])


# --- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_map", [True, False])
def test_every_changed_byte_is_noticed(saved: Path, memory_map: bool) -> None:
    intact = saved.read_bytes()
    with open(saved, "r+b", buffering=0) as file:
        for position, byte in enumerate(intact):
            for mask in (0x01, 0x80, 0xFF):
                file.seek(position)
                file.write(bytes([byte ^ mask]))
                with pytest.raises(ForestFileError, match="Cannot read"):
                    read_container(saved, memory_map=memory_map)
            file.seek(position)
            file.write(bytes([byte]))
    assert read_container(saved).metadata == METADATA


@pytest.mark.parametrize("verify", [True, False])
def test_every_truncation_is_noticed(saved: Path, verify: bool) -> None:
    size = saved.stat().st_size
    for length in reversed(range(size)):
        os.truncate(saved, length)
        expected = f"should have {size}" if length >= 64 else "should have at least 64"
        message = (
            f"Cannot read '{saved}': the file is truncated: "
            f"it {expected} bytes and has {length}; copy the file again"
        )
        with pytest.raises(ForestFileError, match=re.escape(message)):
            read_container(saved, verify=verify)


@pytest.mark.parametrize("extra", [b"\0", bytes(64), b"DOSEFRST"])
def test_appended_bytes_are_noticed(saved: Path, extra: bytes) -> None:
    size = saved.stat().st_size
    with open(saved, "ab") as file:
        file.write(extra)
    message = f"too long: it should have {size} bytes and has {size + len(extra)}"
    with pytest.raises(ForestFileError, match=message):
        read_container(saved)


def test_without_verification_only_the_inside_of_arrays_goes_unchecked(saved: Path) -> None:
    intact = saved.read_bytes()
    inside = intact.index(np.float64(0.75).tobytes())
    for position in range(len(intact)):
        saved.write_bytes(intact[:position] + b"\xaa" + intact[position + 1 :])
        try:
            read_container(saved, memory_map=True, verify=False)
        except ForestFileError:
            assert position != inside
        else:
            assert position >= len(intact) - 128


def test_a_file_of_another_kind_is_refused(path: Path) -> None:
    path.write_bytes(b"PK\3\4" + bytes(200))
    message = f"Cannot read '{path}': it is not a forest file; check the path."
    with pytest.raises(ForestFileError, match=re.escape(message)):
        read_container(path)


def test_a_newer_version_asks_for_an_upgrade_before_all_else(saved: Path) -> None:
    saved.write_bytes(b"DOSEFRST" + struct.pack("<I", 7) + b"a layout of the future".ljust(90))
    message = (
        f"Cannot read '{saved}': it was written by a newer doseforest (container version 7; "
        "this one reads up to 1); upgrade doseforest."
    )
    with pytest.raises(ForestFileError, match=re.escape(message)):
        read_container(saved)


def test_a_missing_file_and_a_directory_raise_what_open_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "absent.dose")
    with pytest.raises(IsADirectoryError):
        read_container(tmp_path)


def test_a_file_that_shrinks_while_it_is_read_is_noticed(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "fromfile", lambda *_: np.zeros(64, np.uint8))
    with pytest.raises(ForestFileError, match="length changed while it was read"):
        read_container(saved)


BAD_HEADERS: dict[str, tuple[object, str]] = {
    "no JSON": (b"{", "not valid JSON"),
    "no UTF-8": (b'{"metadata":{"k":"\xff"},"arrays":[]}', "not valid JSON"),
    "NaN": (b'{"metadata":{"k":NaN},"arrays":[]}', "not valid JSON.*NaN"),
    "Infinity": (b'{"metadata":{"k":-Infinity},"arrays":[]}', "not valid JSON.*Infinity"),
    "deep nesting": (b"[" * 200_000, "not valid JSON"),
    "a list": ([], "needs an object 'metadata' and a list 'arrays'"),
    "no metadata": ({"arrays": []}, "needs an object 'metadata'"),
    "metadata of wrong type": ({"metadata": [], "arrays": []}, "needs an object 'metadata'"),
    "no arrays": ({"metadata": {}}, "a list 'arrays'"),
    "arrays of wrong type": ({"metadata": {}, "arrays": {}}, "a list 'arrays'"),
}


@pytest.mark.parametrize(("header", "message"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_bad_header_is_refused(path: Path, header: object, message: str) -> None:
    forge(path, header)
    with pytest.raises(ForestFileError, match=message):
        read_container(path)


BAD_ENTRIES: dict[str, tuple[list[object], str]] = {
    "no object": (["a"], "malformed entry 'a'"),
    **{
        f"no {key}": ([{k: v for k, v in entry().items() if k != key}], f"malformed|{key} None")
        for key in entry()
    },
    "name of wrong type": ([entry(name=1)], "malformed"),
    "shape of wrong type": ([entry(shape=8)], "malformed"),
    "sha256 of wrong type": ([entry(sha256=0)], "malformed"),
    "offset of wrong type": ([entry(offset=False)], "offset False, not 0"),
    "nbytes of wrong type": ([entry(nbytes=8.0)], "nbytes 8.0, not 8"),
    "extent of wrong type": ([entry(shape=[True])], "impossible shape"),
    "fractional extent": ([entry(shape=[8.0])], "impossible shape"),
    "objects": ([entry(dtype="|O", shape=[1])], r"unsupported dtype '\|O'"),
    "records of objects": ([entry(dtype=[["x", "|O"]], shape=[1])], "unsupported dtype"),
    "records with objects": ([entry(dtype=[["x", "<f8"], ["y", "|O"]])], "unsupported dtype"),
    "strings": ([entry(dtype="<U2", shape=[1])], "unsupported dtype"),
    "raw bytes": ([entry(dtype="|V8", shape=[1])], "unsupported dtype"),
    "big-endian": ([entry(dtype=">f8", shape=[1])], "unsupported dtype"),
    "unknown dtype": ([entry(dtype="float")], "unsupported dtype"),
    "dtype of wrong type": ([entry(dtype=None)], "unsupported dtype"),
    "dtype as object": ([entry(dtype={"x": "<f8"})], "unsupported dtype"),
    "empty record": ([entry(dtype=[])], "unsupported dtype"),
    "nested record": ([entry(dtype=[["x", [["y", "<f8"]]]])], "unsupported dtype"),
    "record with subarray": ([entry(dtype=[["x", "<f4", [2]]])], "unsupported dtype"),
    "record with one name twice": ([entry(dtype=[["x", "<f4"]] * 2)], "unsupported dtype"),
    "record with a number as name": ([entry(dtype=[[1, "<f8"]])], "unsupported dtype"),
    "record without name": ([entry(dtype=[["", "<f8"]], shape=[1])], "dtype"),
    "negative extent": ([entry(shape=[-8])], "impossible shape"),
    "two negative extents": ([entry(shape=[-4, -2])], "impossible shape"),
    "huge extent": ([entry(shape=[2**64 + 8])], "impossible shape"),
    "overflowing product": ([entry(shape=[2**32, 2**32, 8])], "impossible shape"),
    "overflowing empty array": ([entry(shape=[0, 2**62, 2**62])], "impossible shape"),
    "too many axes": ([entry(shape=[1] * 65)], "impossible shape"),
    "more than the file holds": ([entry(shape=[65], nbytes=65)], "ends 1 bytes after the file"),
    "much more than that": ([entry(shape=[2**62], nbytes=2**62)], "bytes after the file"),
    "too few bytes": ([entry(nbytes=7)], "nbytes 7, not 8"),
    "negative nbytes": ([entry(nbytes=-8)], "nbytes -8, not 8"),
    "negative offset": ([entry(offset=-64)], "offset -64, not 0"),
    "unaligned offset": ([entry(offset=8)], "offset 8, not 0"),
    "offset outside": ([entry(offset=2**70)], f"offset {2**70}, not 0"),
    "overlap": ([entry(), entry(name="b")], "after the file"),
    "a name twice": (
        [entry(shape=[0], nbytes=0, sha256=hashlib.sha256().hexdigest())] * 2,
        "twice",
    ),
    "another checksum": ([entry(sha256="0" * 64)], "array 'a' sha256 '0000"),
    "bytes of no array": ([], "belong to no array"),
}


@pytest.mark.parametrize(("entries", "message"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_a_bad_array_entry_is_refused(path: Path, entries: list[object], message: str) -> None:
    forge(path, {"metadata": {}, "arrays": entries}, bytes(64))
    with pytest.raises(ForestFileError, match=message):
        read_container(path)


def test_an_entry_nested_almost_too_deeply_to_parse_is_refused(path: Path) -> None:
    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit()):
        forge(path, b'{"metadata":{},"arrays":[' + b"[" * depth + b"]" * depth + b"]}")
        with pytest.raises(ForestFileError, match="Cannot read"):
            read_container(path)


def test_a_header_longer_than_the_file_is_refused(saved: Path) -> None:
    with open(saved, "r+b") as file:
        file.seek(16)
        file.write(struct.pack("<Q", 2**63))
    with pytest.raises(ForestFileError, match="header would end after the file"):
        read_container(saved)


def test_a_file_that_ends_before_its_padding_is_refused(path: Path) -> None:
    forge(path, {"metadata": {}, "arrays": [entry()]}, bytes(63))
    with pytest.raises(ForestFileError, match="should be zeros"):
        read_container(path)


def test_overlapping_arrays_are_refused(path: Path) -> None:
    forge(path, {"metadata": {}, "arrays": [entry(), entry(name="b")]}, bytes(128))
    with pytest.raises(ForestFileError, match="array 'b' offset 0, not 64"):
        read_container(path)


def test_the_forged_file_is_valid_but_for_its_changes(path: Path) -> None:
    forge(path, {"metadata": {}, "arrays": [entry()]}, bytes(64))
    assert_identical(read_container(path).arrays["a"], np.zeros(8, np.uint8))


# --- refused input -----------------------------------------------------------------------------

REFUSED_DTYPES: dict[str, Any] = {
    "objects": object,
    "records of objects": [("x", object)],
    "strings": "U3",
    "bytes": "S3",
    "times": "M8[s]",
    "complex": complex,
    "padded records": np.dtype([("x", "i1"), ("y", "f8")], align=True),
    "reordered records": {"names": ["x", "y"], "formats": ["i4", "i4"], "offsets": [4, 0]},
    "nested records": [("x", [("y", "f8")])],
    "records with subarrays": [("x", "f8", 2)],
    "titled records": [(("title", "x"), "f8")],
    "empty records": [],
}
if np.finfo(np.longdouble).bits > 64:  # on some platforms it is the same as float64
    REFUSED_DTYPES["long double"] = np.longdouble


@pytest.mark.parametrize("dtype", REFUSED_DTYPES.values(), ids=REFUSED_DTYPES)
def test_other_dtypes_are_not_written(path: Path, dtype: Any) -> None:
    with pytest.raises(
        TypeError, match=r"The array 'bad' must hold booleans.* Got dtype .* instead"
    ):
        write_container(path, {}, {"good": np.zeros(2), "bad": np.zeros(2, dtype)})
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("names", [[1], ["a", 1]])
def test_array_names_must_be_strings(path: Path, names: list[Any]) -> None:
    with pytest.raises(TypeError, match=r"keys of 'arrays' must be strings\. Got 1 instead"):
        write_container(path, {}, dict.fromkeys(names, np.zeros(2)))


@pytest.mark.parametrize(
    ("value", "error"),
    [(np.nan, ValueError), (-np.inf, ValueError), (np.int64(1), TypeError), (b"", TypeError)],
)
def test_metadata_must_be_json(path: Path, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="'metadata' must be JSON"):
        write_container(path, {"key": [value]}, {})
    assert os.listdir(path.parent) == []


# --- atomic writing ----------------------------------------------------------------------------


def fail_with(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("step", ["hashlib.sha256", "os.chmod", "os.fsync", "os.replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    saved: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    before = saved.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(step, fail_with(error))
        with pytest.raises(type(error)):
            write_container(saved, {}, {"doses": np.zeros(3)})
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_failed_first_write_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.replace", fail_with(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_container(path, {}, {"doses": np.zeros(3)})
    assert os.listdir(path.parent) == []


def test_a_write_to_a_missing_folder_raises_what_open_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_container(tmp_path / "absent" / "model.dose", {}, {})


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_container(tmp_path / "folder", {}, {})
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("os.open", fail_with(OSError("not supported")))
        write_container(path, METADATA, {})
    assert read_container(path).metadata == METADATA


@posix_only
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_gets_the_permission_bits_of_the_umask(
    path: Path, umask: int, mode: int
) -> None:
    previous = os.umask(umask)
    try:
        write_container(path, {}, {})
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix_only
def test_a_replaced_file_keeps_its_permission_bits(saved: Path) -> None:
    saved.chmod(0o604)
    write_container(saved, {}, {})
    assert stat.S_IMODE(saved.stat().st_mode) == 0o604


@posix_only
def test_a_symbolic_link_stays_one(saved: Path) -> None:
    link = saved.with_name("link.dose")
    link.symlink_to(saved)
    write_container(link, {"n_trees": 3}, {})
    assert link.is_symlink()
    assert read_container(saved).metadata == {"n_trees": 3}
