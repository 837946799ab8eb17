"""What Spark needs: checked before anything else, with the cure in every message."""

from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any

from doseforest.spark.jobs import described

INSTALL_PYSPARK = 'pip install "doseforest[spark]"'
INSTALL_JAVA = "apt-get install openjdk-17-jre-headless"


class SparkUnavailableError(ImportError):
    """PySpark or Java is missing, or the executors cannot import doseforest."""


def require_spark() -> None:
    """Raise SparkUnavailableError where PySpark or Java is missing."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkUnavailableError(
            f"The Spark forest needs PySpark. Install it with: {INSTALL_PYSPARK}"
        )
    if not _has_java():
        raise SparkUnavailableError(
            "The Spark forest needs Java 17 or newer, and neither JAVA_HOME nor the PATH has one. "
            f"On Debian, install it with: {INSTALL_JAVA}"
        )


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (
        home is not None and os.access(os.path.join(home, "bin", "java"), os.X_OK)
    )


def check_workers(context: Any) -> None:
    """Raise SparkUnavailableError where the Python of the executors has no doseforest like ours."""
    here = worker_version(0)
    try:
        with described(context, "look for doseforest on the executors"):
            result = context.parallelize([0], 1).map(worker_version).collect()[0]
    except Exception as error:
        if "ModuleNotFoundError" not in str(error):
            raise
        result = None
    if result != here:
        state = (
            "lacks doseforest or what it needs" if result is None else f"has doseforest {result}"
        )
        raise SparkUnavailableError(
            f"The Python of the executors, {context.pythonExec!r}, {state}; the driver has "
            f"doseforest {here}. Before the session starts, set the environment variable "
            "PYSPARK_PYTHON to a Python that has it, or ship one with spark.archives."
        )


def worker_version(number: int) -> str:
    """Version of the doseforest that an executor imports, its compiled core included."""
    import doseforest
    from doseforest import _core

    assert _core.LANES  # the core is there
    return doseforest.__version__
