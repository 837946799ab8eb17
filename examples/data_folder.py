"""Where the examples find data sets that are public, but no part of the repository."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd

DEFAULT_FOLDER = Path(__file__).parents[2] / "shared" / "data"
SOURCES = {
    "dominicks_oj.parquet": "weekly sales of orange juice at Dominick's Finer Foods, from the "
    "Kilts Center of Chicago Booth; also orangeJuice of the R package bayesm.",
    "karlan_zinman_2008_loans.parquet": "the replication files (CC BY 4.0) of Karlan and Zinman, "
    "Credit Elasticities in Less-Developed Economies, American Economic Review 98(3), 2008.",
    "jobcorps_colangelo_lee.parquet": "the replication files of Colangelo and Lee, Double Debiased "
    "Machine Learning Nonparametric Inference with Continuous Treatments.",
    "jobcorps_colangelo_lee_published_estimates.csv": "the estimates among the same files.",
}


def read_data(name: str) -> pd.DataFrame:
    """Read a table from the folder DOSEFOREST_DATA; where it is absent, say where to get it."""
    path = Path(os.environ.get("DOSEFOREST_DATA", DEFAULT_FOLDER)) / name
    if not path.exists():
        sys.exit(
            f"This needs {name}, which is not in {path.parent}. Set DOSEFOREST_DATA to the folder "
            f"that has it. The data are public: {SOURCES[name]}"
        )
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
