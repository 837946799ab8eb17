"""Files that are never half-written: what is at a path is the old content or the new one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside the target, which takes its place once it is on disk.

    If the block fails the target stays as it was and nothing is left beside it. A symbolic link
    stays one, the file behind it changes; a file that is replaced keeps its permissions.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(target) as draft:
    ...     _ = draft.write_text("one")
    ...     target.exists()
    False
    >>> target.read_text(), len(list(target.parent.iterdir()))
    ('one', 1)
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".doseforest-{secrets.token_hex(8)}.tmp")
    try:
        yield draft
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            draft.unlink()
        raise
    # The new file is in place: a file system that cannot flush a folder does not undo that.
    with contextlib.suppress(OSError):
        _flush_folder(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text, all of it or nothing; folders that are missing are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
