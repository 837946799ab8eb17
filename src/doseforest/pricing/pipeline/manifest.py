"""The manifest of a workspace: what every step read and wrote, by digests; written last."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import doseforest
from doseforest.base.plain_json import write_json
from doseforest.base.versions import CLONE, PACKAGE, digest_of_files, in_clone, installed
from doseforest.pricing.pipeline.problems import PipelineError

FILE = "manifest.json"
FORMAT = 1
PACKAGES = ("doseforest", "numpy", "scipy", "scikit-learn", "lightgbm", "xgboost-cpu", "pyarrow")
CODE = ("doseforest", "sources")
BESIDE_RESULTS = ("cli", "studies", "datasets", "pipeline/report")  # no artifact depends on them
CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A finished step: artifacts count only as long as they have these digests."""

    settings: str  # digest of the step's own configuration
    inputs: dict[str, str]  # digest of every artifact and file that it read
    outputs: dict[str, str]  # digest of every artifact that it wrote
    seed: int
    seconds: float
    finished: str  # date
    metrics: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Manifest:
    """Records by step, in a file that is replaced as a whole."""

    folder: Path
    steps: dict[str, StepRecord] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a workspace, empty where there is none."""
        path = folder / FILE
        if not path.exists():
            return cls(folder)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            steps = {name: StepRecord(**each) for name, each in stored["steps"].items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise PipelineError(
                f"{path} is not a manifest of this version ({error}). Remove it, and the stages "
                "run again."
            ) from error
        return cls(folder, steps)

    def put(self, name: str, record: StepRecord) -> None:
        """Note that a step is done."""
        self.steps[name] = record
        self._write()

    def drop(self, names: Iterable[str]) -> None:
        """Forget steps: before their artifacts are replaced."""
        known = [name for name in names if name in self.steps]
        for name in known:
            del self.steps[name]
        if known:
            self._write()

    def _write(self) -> None:
        plain = {
            "format": FORMAT,
            "doseforest": doseforest.__version__,
            "python": platform.python_version(),
            "steps": {name: asdict(step) for name, step in self.steps.items()},
        }
        write_json(self.folder / FILE, plain, indent=1)


def file_digest(path: Path) -> str:
    """SHA-256 of a file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a"
    >>> _ = path.write_bytes(b"abc")
    >>> file_digest(path)[:12]
    'ba7816bf8f01'
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Digest of plain values, whatever their order.

    >>> settings_digest({"a": 1, "b": 2}) == settings_digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of what results depend on; in a clone, where one version has many, the sources."""
    result = {package: installed(package) for package in PACKAGES}
    result = {name: each for name, each in result.items() if each != "not installed"}
    if in_clone():
        skipped = {PACKAGE / name for name in BESIDE_RESULTS}
        files = [path for path in PACKAGE.rglob("*.py") if skipped.isdisjoint(path.parents)]
        result["sources"] = digest_of_files([*files, *(CLONE / "cpp").iterdir()])
    return result


def same_code(record: StepRecord) -> bool:
    """Whether a step was done by this version of doseforest."""
    return all(record.versions.get(name) == versions().get(name) for name in CODE)
