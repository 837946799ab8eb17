"""What must hold of any bytes that are loaded as a policy file."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from doseforest import ForestFileError, load_policy
from forest_file_check import InsaneForestError


def check_policy_file(file: bytes, path: Path) -> bool:
    """Load the bytes, which are written to the path, and return whether they are a policy.

    Raises
    ------
    InsaneForestError
        A policy gives a unit none of its doses, or with a probability that is none.
    Exception
        Whatever else but a ForestFileError comes out of loading.
    """
    path.write_bytes(file)
    try:
        policy = load_policy(path)
    except ForestFileError:
        return False
    forest = getattr(getattr(policy, "policy", policy), "forest", None)
    known = getattr(forest, "forest", forest)
    n_features = 1 if known is None else known.n_features
    rows = np.random.default_rng(0).normal(size=(6, n_features))
    rows[2] = np.nan
    context = {name: np.array([1, 2, 3, 4, 5, 6]) for name in policy.columns}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        decisions = policy.decide(rows, context)
    index, chances = decisions.dose_index, decisions.propensity
    sane = len(decisions) == 6 and 0 <= index.min() <= index.max() < len(policy.doses)
    if not sane or not ((chances >= 0) & (chances <= 1 + 1e-9)).all():
        raise InsaneForestError(f"decides {index} with {chances}")
    return True
