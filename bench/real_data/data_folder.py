"""Where data sets are found, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

VARIABLE = "DOSEFOREST_DATA"
DEFAULT_FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data"  # beside a clone
GIKS = (
    "the repository of Nagalapatti, Iyer, De and Sarawagi, Continuous Treatment Effect Estimation "
    "Using Gradient Interpolation and Kernel Smoothing, AAAI 2024: "
)
CADR = (
    "the repository of Bockel-Rickermann, Vanderschueren, Verdonck and Verbeke, Sources of Gain: "
    "Decomposing Performance in Conditional Average Dose Response Estimation, arXiv 2406.08206: "
)
SOURCES = {
    "jobcorps_colangelo_lee.parquet": "the replication files of Colangelo and Lee, Double Debiased "
    "Machine Learning Nonparametric Inference with Continuous Treatments.",
    "jobcorps_colangelo_lee_published_estimates.csv": "the estimates among the replication files "
    "of Colangelo and Lee, Double Debiased Machine Learning Nonparametric Inference with "
    "Continuous Treatments.",
    "karlan_zinman_2008_loans.parquet": "the replication files (CC BY 4.0) of Karlan and Zinman, "
    "Credit Elasticities in Less-Developed Economies, American Economic Review 98(3), 2008.",
    "dominicks_oj.parquet": "weekly sales of orange juice at Dominick's Finer Foods, from the "
    "Kilts Center of Chicago Booth; also orangeJuice of the R package bayesm.",
    "gerber_green_2008.parquet": "the replication files of Gerber, Green and Larimer, Social "
    "Pressure and Voter Turnout, American Political Science Review 102(1), 2008.",
    "karlan_list_2007.parquet": "the replication files (CC0) of Karlan and List, Does Price Matter "
    "in Charitable Giving?, American Economic Review 97(5), 2007.",
    "ihdp_continuous_giks_50splits.npz": GIKS + "its IHDP data, splits and curves in one archive.",
    "published_giks_results_by_split.csv": GIKS + "its errors and those of its peers, by split.",
    "cadr_three_sets_10_draws.npz": CADR + "ten draws of three data sets in one archive.",
    "published_cadr_decomposition_tables.csv": CADR + "its tables.",
}

Frame = Any  # a pandas.DataFrame: pandas is imported when data are read, not before


class MissingDataError(FileNotFoundError):
    """A file of a data set is absent; the message says where it can be had."""


def data_folder() -> Path:
    """The folder that DOSEFOREST_DATA names, or shared/data beside the clone."""
    return Path(os.environ.get(VARIABLE, DEFAULT_FOLDER))


def missing_files(names: Iterable[str]) -> list[str]:
    """Those of the files that the folder does not have.

    >>> missing_files(["no-such-file.parquet"])
    ['no-such-file.parquet']
    """
    return [name for name in names if not (data_folder() / name).exists()]


def missing_message(name: str) -> str:
    """What to do about a file that is absent."""
    return (
        f"This needs {name}, which is not in {data_folder()}. Set {VARIABLE} to the folder that "
        f"has it. The data are public: {SOURCES[name]}"
    )


def read_data(name: str) -> Frame:
    """Read a table, or the arrays of an archive, by the name of its file, one of `SOURCES`.

    Raises
    ------
    MissingDataError
        Where the folder does not have it: the message names the file, the folder, the environment
        variable and where the public data come from.
    ImportError
        Where a table is asked for, and pandas or pyarrow is not installed.
    ValueError
        Where the name is none of `SOURCES`, or an archive is no archive.

    Examples
    --------
    >>> read_data("juice.parquet")
    Traceback (most recent call last):
    ...
    ValueError: The 'name' parameter must be one of jobcorps_colangelo_lee.parquet, ...
    """
    if name not in SOURCES:
        raise ValueError(
            f"The 'name' parameter must be one of {', '.join(SOURCES)}. Got {name!r} instead."
        )
    if missing_files([name]):
        raise MissingDataError(missing_message(name))
    path = data_folder() / name
    if path.suffix == ".npz":
        return read_arrays(path)
    pandas = load_pandas()
    return pandas.read_csv(path) if path.suffix == ".csv" else pandas.read_parquet(path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive of NumPy, or ValueError where a file is none."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, AttributeError, BadZipFile) as error:
        raise ValueError(
            f"{path} must be an archive of arrays without objects, as numpy.savez writes it. "
            f"{error}"
        ) from error


def drawn(table: Frame, n_rows: int | None, seed: int = 0) -> Frame:
    """So many rows drawn at random; all of them by default, or where there are fewer."""
    return (
        table if n_rows is None or n_rows >= len(table) else table.sample(n_rows, random_state=seed)
    )


def require_files(names: Iterable[str]) -> None:
    """Raise MissingDataError, with a line for each file that is absent."""
    if absent := missing_files(names):
        raise MissingDataError("\n".join(map(missing_message, absent)))


def load_pandas() -> Any:
    """Import pandas, and what it reads Parquet with; ImportError names the extra."""
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Data sets need pandas and pyarrow. Install them with: pip install 'doseforest[data]'"
        ) from error
    return pandas
