"""Mailings: five ways to remind voters of a primary, drawn at random for households.

344,084 voters in 180,002 households of Michigan (Gerber, Green and Larimer 2008). Five households
of nine had no mail, one of nine each of four mailings with ever more social pressure.
"""

from __future__ import annotations

import numpy as np

from bench.real_data.data_folder import Frame, read_data
from bench.real_data.dose_rows import DoseRows
from doseforest.base.dtypes import IntArray

FILE = "gerber_green_2008.parquet"
MAILINGS = ("no mail", "civic duty", "you are studied", "your own record", "your neighbours' too")
PUBLISHED = np.array([0.297, 0.315, 0.322, 0.345, 0.378])  # turnout by mailing
CHANCES = np.array([5, 1, 1, 1, 1]) / 9
VOTED_BEFORE = ["g2000", "g2002", "p2000", "p2002", "p2004"]  # everybody has voted in g2004
COVARIATES = ["yob", "male", "hh_size", *VOTED_BEFORE]


def read_voters(n_households: int | None = None, seed: int = 0) -> Frame:
    """Voters, with `arm` from 0; all, or those of some households drawn at random."""
    voters = read_data(FILE)
    voters = voters.assign(
        arm=voters["arm"].astype(int) - int(voters["arm"].min()), hh_id=voters["hh_id"].astype(int)
    )
    if n_households is None:
        return voters
    return voters[voters["hh_id"].isin(some_households(voters, n_households, seed))]


def some_households(voters: Frame, n_households: int, seed: int = 0) -> IntArray:
    """Households drawn at random, or all where there are fewer."""
    households: IntArray = np.unique(voters["hh_id"])
    return np.random.default_rng(seed).permutation(households)[:n_households]


def rows(voters: Frame) -> DoseRows:
    """Turnout by mailing, with known chances and households as groups."""
    return DoseRows(
        voters[COVARIATES],
        voters["voted"].to_numpy(float),
        voters["arm"].to_numpy(float),
        np.tile(CHANCES, (len(voters), 1)),
        voters["hh_id"].to_numpy(),
    )


def past_votes(voters: Frame) -> IntArray:
    """In how many of the five earlier elections each has voted, shape (n_rows,)."""
    counts: IntArray = voters[VOTED_BEFORE].sum(axis=1).to_numpy(int)
    return counts
