"""Real data sets. They are public, but no part of the repository."""

import os
from pathlib import Path

import pandas as pd
import pytest

DEFAULT_FOLDER = Path(__file__).parents[2] / "shared" / "data"


def real_data(name: str) -> pd.DataFrame:
    """Read a table, by the name of its file; skip the test where there is no such file."""
    path = Path(os.environ.get("DOSEFOREST_DATA", DEFAULT_FOLDER)) / name
    if not path.exists():
        pytest.skip(f"{path} is absent: DOSEFOREST_DATA names the folder of the real data sets")
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
