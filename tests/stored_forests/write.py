"""Store a small forest of the current format, to be run once at each release that changes it.

Usage: python tests/stored_forests/write.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from doseforest import CurveForest
from doseforest.prediction.forest_file import FORMAT_VERSION


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    doses = np.linspace(0, 1, 4)
    y = np.nan_to_num(x[:, :1]) * doses + rng.normal(size=(400, 4)) / 4
    forest = CurveForest(5, random_state=0).fit(x, y, doses=doses)
    path = Path(__file__).parent / f"format_{FORMAT_VERSION}.dose"
    if path.exists():
        raise SystemExit(f"{path} exists: a stored forest is never written twice")
    forest.save(path)
    np.save(path.with_suffix(".queries.npy"), x[:20])
    np.save(path.with_suffix(".curves.npy"), forest.predict(x[:20]))


if __name__ == "__main__":
    main()
