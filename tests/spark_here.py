"""A Spark session for the tests that need one; they skip, saying why, where it cannot be."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import warnings

import pytest

MISSING = None
if importlib.util.find_spec("pyspark") is None:
    MISSING = "PySpark is not installed: pip install 'doseforest[spark]'"
elif shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    MISSING = "Java is not installed: on Debian, apt-get install openjdk-17-jre-headless"

needs_spark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


def start_session(master, folder, **settings):
    """Start a small session whose files stay in a folder."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(master).appName("doseforest tests")
    for name, value in {**fixed, **settings}.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark():
    """One session on two threads for all tests: starting it takes most of their time."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = start_session("local[2]", folder)
        yield session
        session.stop()
