"""Public data sets with published numbers: one file each, and one place for what columns mean.

The data are no part of the package: `read_data` finds them in the folder that the environment
variable DOSEFOREST_DATA names, and says where a file that is absent can be had.

- `job_corps`: hours of training and weeks of work, observed (Colangelo and Lee).
- `loans`: interest rates that were random within strata (Karlan and Zinman 2008).
- `orange_juice`: prices and sales in supermarkets, observed (Dominick's).
- `mailings`: five mailings to households of voters, random (Gerber, Green and Larimer 2008).
- `held_out_curves`: simulated outcomes over real infants, with published splits, curves and errors.
- `match_ratios`: matching grants offered to donors, random (Karlan and List 2007).
"""

from __future__ import annotations

from bench.real_data.data_folder import (
    SOURCES,
    MissingDataError,
    data_folder,
    missing_files,
    read_data,
    require_files,
)
from bench.real_data.dose_rows import DoseRows

__all__ = [
    "SOURCES",
    "DoseRows",
    "MissingDataError",
    "data_folder",
    "missing_files",
    "read_data",
    "require_files",
]
