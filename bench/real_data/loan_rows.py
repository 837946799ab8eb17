"""Loans: interest rates drawn at random for the former clients of a South African lender.

The draw was random only among clients of one risk class in one mailing (Karlan and Zinman 2008):
safe clients had lower rates and apply more often anyway. The dose is the rate as a share of what
the client normally pays, so that 1 means no discount for everyone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.real_data.data_folder import Frame, drawn, read_data
from bench.real_data.dose_rows import DoseRows
from doseforest.nuisance.treatment.known_densities import Strata

FILE = "karlan_zinman_2008_loans.parquet"
NORMAL_RATE = {"LOW": 7.75, "MEDIUM": 9.75, "HIGH": 11.75}  # per cent a month, by risk
WAVES = (1, 2, 3)  # of mailings
CLIENT = [
    "female",
    "age",
    "edhi",  # better educated
    "rural",
    "married",
    "dependants",
    "grossincome",
    "dormancy",  # months since the last loan
    "trcount",  # loans so far
    "lastamount",
    "lastterm",
    "itcscore",  # of the credit bureau
    "appscore",  # the lender's own
]
SHARES = np.linspace(0.45, 1.0, 12)  # doses that clients of every risk class were offered
PUBLISHED = {"applied": -0.27, "loansize": -0.32}  # elasticities in the article


def read_offers(n_rows: int | None = None) -> Frame:
    """Clients offered at most their normal rate, as in the article's main tables."""
    offers = read_data(FILE).query("normrate_less == 1")
    offers = offers.assign(share=offers["offer4"] / offers["risk"].map(NORMAL_RATE))
    return drawn(offers, n_rows)


def covariates(offers: Frame) -> Frame:
    """Risk class, mailing, and what the lender knows of the client."""
    levels = {"risk": sorted(NORMAL_RATE), "wave": WAVES}
    strata = {
        f"{name}_{level}": (offers[name] == level).astype(float)
        for name, known in levels.items()
        for level in known
    }
    return offers.assign(**strata)[[*strata, *CLIENT]]


def strata(offers: Frame) -> Strata:
    """Risk class and mailing, within which rates were random."""
    return Strata((offers["risk"] + offers["wave"].astype(str)).to_numpy(object))


def rows(offers: Frame, outcome: str = "applied") -> DoseRows:
    """An outcome, "applied" or "loansize", over the share of the normal rate."""
    y, share = offers[outcome].to_numpy(float), offers["share"].to_numpy(float)
    return DoseRows(covariates(offers), y, share, strata(offers))


def pooled_elasticity(offers: Frame, outcome: str) -> float:
    """What one line through all clients says, as if rates had been random among all."""
    slope: Any = np.polyfit(offers["offer4"], offers[outcome], 1)[0]
    return float(slope * offers["offer4"].mean() / offers[outcome].mean())
