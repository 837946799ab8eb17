"""Match ratios: letters that promise one, two or three dollars on top of every dollar given.

50,083 earlier donors of a charity (Karlan and List 2007): a third had no such offer, the others one
of three ratios. The outcome is whether they gave.
"""

from __future__ import annotations

import numpy as np

from bench.real_data.data_folder import Frame, drawn, read_data
from bench.real_data.dose_rows import DoseRows

FILE = "karlan_list_2007.parquet"
OUTCOME = "out_gavedum"
DOSE = "match_ratio"
COVARIATES = [
    "hpa",  # highest previous gift
    "freq",  # gifts so far
    "years",  # since the first
    "female",
    "couple",
    "red0",  # the state voted for Bush in 2004
    "redcty",  # the county did
]
PUBLISHED = np.array([0.0179, 0.0207, 0.0226, 0.0227])  # share who gave, by ratio


def read_letters(n_rows: int | None = None) -> Frame:
    """All letters, or some drawn at random."""
    return drawn(read_data(FILE), n_rows)


def rows(letters: Frame) -> DoseRows:
    """Whether they gave by ratio, with the shares of the ratios as known chances."""
    ratio = letters[DOSE].to_numpy(int)
    chances = np.bincount(ratio, minlength=len(PUBLISHED)) / len(ratio)
    return DoseRows(
        letters[COVARIATES],
        letters[OUTCOME].to_numpy(float),
        ratio.astype(float),
        np.tile(chances, (len(ratio), 1)),
    )
