"""What is not collected where an extra is missing: these modules are made of PySpark's classes."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("pyspark") is None:
    collect_ignore += [
        f"src/doseforest/spark/{name}.py"
        for name in ("estimator", "estimator_file", "model", "params", "persistence")
    ]
