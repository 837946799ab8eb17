"""See that distributions list no bench; install each afresh, then import, grow, save and load.

Usage: python tools/check_dist.py dist
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

SMOKE_TEST = """
import sys, tempfile
from pathlib import Path
import numpy as np
import doseforest

assert "site-packages" in doseforest.__file__, doseforest.__file__
x = np.arange(200.0)[:, None]
forest = doseforest.CurveForest(5, random_state=0).fit(x, x)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.dose"
    forest.save(path)
    assert np.array_equal(doseforest.load_forest(path).predict(x), forest.predict(x))
assert (Path(doseforest.__file__).parent / "py.typed").exists()
print("doseforest", doseforest.__version__, "from", sys.argv[1], "works")
"""


def files_of(distribution: Path) -> list[str]:
    """Names of the files in a wheel or an sdist."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as wheel:
            return wheel.namelist()
    with tarfile.open(distribution) as sdist:
        return sdist.getnames()


def evidence_in(names: list[str]) -> list[str]:
    """Files of the bench: it belongs to the repository, not to what is installed."""
    return [name for name in names if "bench" in PurePosixPath(name).parts]


def check(distribution: Path) -> None:
    """Look into one file, install it and try it from outside the repository."""
    if found := evidence_in(files_of(distribution)):
        raise SystemExit(f"{distribution} must list no file of bench. It has {found[:3]}.")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", distribution.resolve()], check=True
        )
        subprocess.run([python, "-c", SMOKE_TEST, distribution.name], check=True, cwd=folder)
        command = [str(Path(folder) / "bin" / "doseforest"), "bench", "table1"]
        told = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if told.returncode != 1 or "Clone doseforest" not in told.stderr:
            raise SystemExit(f"`doseforest bench` must say where studies are. It says {told}.")


def main(folder: str) -> None:
    distributions = sorted(Path(folder).glob("doseforest-*"))
    kinds = {path.suffix for path in distributions}
    if kinds != {".whl", ".gz"}:
        raise SystemExit(f"expected a wheel and an sdist in {folder}, found {distributions}")
    for distribution in distributions:
        check(distribution)


if __name__ == "__main__":
    main(sys.argv[1])
