"""Files of policies in one folder, each named by its SHA-256: no name ever comes from a request."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from doseforest.base.atomic_files import replacing
from doseforest.base.container import ForestFileError
from doseforest.files.policy_file import Policy
from doseforest.policy import load_policy

DIGEST = re.compile(r"[0-9a-f]{64}")


class PolicyFileError(Exception):
    """The file of a policy is absent, damaged, or no policy."""


class PolicyFiles:
    """A folder of policies.

    Examples
    --------
    >>> import tempfile
    >>> PolicyFiles(tempfile.mkdtemp()).load("0" * 64)
    Traceback (most recent call last):
    ...
    doseforest...PolicyFileError: The file of policy 000000000000… is absent.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add(self, content: bytes) -> str:
        """Store a file and return its digest; one that is no policy is refused, and not kept."""
        digest = hashlib.sha256(content).hexdigest()
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self._path(digest)) as draft:
            draft.write_bytes(content)
            _loaded(draft, "The file")
        return digest

    def read(self, digest: str) -> bytes:
        """The bytes of a file, which are those that were stored."""
        try:
            content = self._path(digest).read_bytes()
        except OSError:
            raise PolicyFileError(f"The file of policy {digest[:12]}… is absent.") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise PolicyFileError(f"The file of policy {digest[:12]}… fails its checksum.")
        return content

    def load(self, digest: str) -> Policy:
        """The policy of a file whose checksum is right."""
        self.read(digest)
        return _loaded(self._path(digest), f"The file of policy {digest[:12]}…")

    def _path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise PolicyFileError("A policy is named by 64 hexadecimal digits.")
        return self.folder / f"{digest}.dose"


def _loaded(path: Path, what: str) -> Policy:
    try:
        return load_policy(path)
    except (ForestFileError, ValueError, TypeError, KeyError, OSError) as error:
        reason = "is damaged" if isinstance(error, OSError) else "is no policy of this release"
        raise PolicyFileError(f"{what} {reason}.") from error
