"""Install each built distribution into a fresh environment, then import, grow, save and load.

Usage: python tools/check_dist.py dist
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

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


def check(distribution: Path) -> None:
    """Install one file and try it from outside the repository."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", distribution.resolve()], check=True
        )
        subprocess.run([python, "-c", SMOKE_TEST, distribution.name], check=True, cwd=folder)


def main(folder: str) -> None:
    distributions = sorted(Path(folder).glob("doseforest-*"))
    kinds = {path.suffix for path in distributions}
    if kinds != {".whl", ".gz"}:
        raise SystemExit(f"expected a wheel and an sdist in {folder}, found {distributions}")
    for distribution in distributions:
        check(distribution)


if __name__ == "__main__":
    main(sys.argv[1])
