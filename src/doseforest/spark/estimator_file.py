"""Estimators on any Hadoop path: metadata of Spark ML, and the regressors that they were given."""

from __future__ import annotations

from typing import Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader, MLWriter

MEMBERS = "outcomeMembers"


class EstimatorWriter(MLWriter):  # type: ignore[misc]
    """Writes an estimator."""

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        self._estimator = estimator

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Write the members, then the parameters."""
        estimator = self._estimator
        members = estimator.value(MEMBERS) or []
        for number, member in enumerate(members):
            member.save(f"{path}/members/{number}")
        plain = {
            param.name: value
            for param, value in estimator._paramMap.items()
            if param.name != MEMBERS
        }
        extra = {"members": len(members)}
        DefaultParamsWriter.saveMetadata(estimator, path, self.sparkSession, extra, plain)


class EstimatorReader(MLReader):  # type: ignore[misc]
    """Reads what `EstimatorWriter` wrote."""

    def __init__(self, estimator_class: Any) -> None:
        super().__init__()
        self._class = estimator_class

    def load(self, path: str) -> Any:
        """Read an estimator with its members."""
        session = self.sparkSession
        metadata = DefaultParamsReader.loadMetadata(path, session)
        estimator = self._class()
        estimator._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(estimator, metadata)
        members = [
            DefaultParamsReader.loadParamsInstance(f"{path}/members/{number}", session)
            for number in range(metadata.get("members", 0))
        ]
        if members:
            estimator._set(**{MEMBERS: members})
        return estimator
