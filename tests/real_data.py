"""Real data sets. They are public, but no part of the repository."""

import pandas as pd
import pytest

from bench.real_data import MissingDataError, read_data


def real_data(name: str) -> pd.DataFrame:
    """Read a table, by the name of its file; skip the test where there is no such file."""
    try:
        return read_data(name)
    except MissingDataError as error:
        pytest.skip(str(error))
