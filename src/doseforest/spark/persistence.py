"""Models on any Hadoop path: metadata of Spark ML, the forest file in chunks, the manifest last.

What has no manifest was not written to the end and is refused, and so is what does not match it.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

from doseforest.base.container import ForestFileError

CHUNK_BYTES = 4 * 2**20
SCHEMA = "number int, sha256 string, data binary"
VERSION = 1


class ForestWriter(MLWriter):  # type: ignore[misc]
    """Writes a model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Write everything; the manifest comes last."""
        session = self.sparkSession
        content = forest_bytes(self._model.toLocal())
        DefaultParamsWriter.saveMetadata(self._model, path, session)
        chunks = [
            content[first : first + CHUNK_BYTES] for first in range(0, len(content), CHUNK_BYTES)
        ]
        rows = [(number, _digest(chunk), bytearray(chunk)) for number, chunk in enumerate(chunks)]
        frame = session.createDataFrame(rows, SCHEMA)
        frame.write.parquet(f"{path}/chunks")
        manifest = {
            "version": VERSION,
            "n_chunks": len(chunks),
            "n_bytes": len(content),
            "sha256": _digest(content),
            "summary": self._model.summary,
        }
        text = session.sparkContext.parallelize([json.dumps(manifest)], 1)
        text.saveAsTextFile(f"{path}/manifest")


class ForestReader(MLReader):  # type: ignore[misc]
    """Reads what `ForestWriter` wrote."""

    def __init__(self, model_class: Any) -> None:
        super().__init__()
        self._class = model_class

    def load(self, path: str) -> Any:
        """Read a model; ForestFileError where it is damaged or was not written to the end."""
        session = self.sparkSession
        manifest = _read_manifest(session, path)
        metadata = DefaultParamsReader.loadMetadata(path, session)
        rows = session.read.schema(SCHEMA).parquet(f"{path}/chunks").collect()
        chunks = {row["number"]: row for row in rows}
        if sorted(chunks) != list(range(manifest["n_chunks"])):
            raise ForestFileError(
                f"the model at {path} has {len(chunks)} chunks and should have "
                f"{manifest['n_chunks']}; save it again"
            )
        for number, row in chunks.items():
            if _digest(bytes(row["data"])) != row["sha256"]:
                raise ForestFileError(f"chunk {number} of the model at {path} is damaged")
        content = b"".join(bytes(chunks[number]["data"]) for number in sorted(chunks))
        if _digest(content) != manifest["sha256"]:
            raise ForestFileError(f"the chunks of the model at {path} do not match its manifest")
        model = self._class(forest_from_bytes(content), manifest["summary"] or None)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def forest_bytes(forest: Any) -> bytes:
    """The forest file of a forest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forest.dose")
        forest.save(path)
        return path.read_bytes()


def forest_from_bytes(content: bytes) -> Any:
    """The forest of a forest file."""
    from doseforest import load_forest

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "forest.dose")
        path.write_bytes(content)
        return load_forest(path)


def _read_manifest(session: Any, path: str) -> dict[str, Any]:
    hadoop = session._jvm.org.apache.hadoop.fs.Path(f"{path}/manifest/_SUCCESS")
    files = hadoop.getFileSystem(session._jsc.hadoopConfiguration())
    if not files.exists(hadoop):
        raise ForestFileError(
            f"there is no finished model at {path}: its manifest, which is written last, is "
            "missing; save the model again"
        )
    lines = session.sparkContext.textFile(f"{path}/manifest").collect()
    try:
        manifest: dict[str, Any] = json.loads("".join(lines))
        if manifest["version"] != VERSION:
            raise ForestFileError(
                f"the model at {path} is of version {manifest['version']}; upgrade doseforest"
            )
        return {name: manifest[name] for name in ("n_chunks", "sha256", "summary")}
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ForestFileError(f"the manifest of the model at {path} is damaged") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
