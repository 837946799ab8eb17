"""Tables with the columns of the real data sets, and nothing of their contents."""

from pathlib import Path

import numpy as np
import pandas as pd

from bench.real_data import (
    job_corps_rows,
    loan_rows,
    mailing_rows,
    match_ratio_rows,
    orange_juice_rows,
)


def write_tables(folder: Path) -> None:
    """Write a small table for every data set."""
    draw = np.random.default_rng(0)
    _trainees(draw, 240).to_parquet(folder / job_corps_rows.FILE)
    _estimates().to_csv(folder / job_corps_rows.ESTIMATES_FILE)
    _offers(draw, 450).to_parquet(folder / loan_rows.FILE)
    _sales(draw, 450).to_parquet(folder / orange_juice_rows.FILE)
    _voters(draw, 400).to_parquet(folder / mailing_rows.FILE)
    _letters(draw, 400).to_parquet(folder / match_ratio_rows.FILE)


def _trainees(draw, n):
    hours = draw.uniform(40, 2100, n)
    columns = {"female": draw.integers(0, 2, n), "age": draw.integers(16, 25, n)}
    weeks = 45 + hours / 400 + columns["female"] + draw.normal(0, 5, n)
    return pd.DataFrame({"y": weeks, "d": hours, **columns})


def _estimates():
    doses = np.arange(160, 2001, 80)
    known = {"t": doses, "beta": 45 + doses / 400, "se": np.ones(len(doses))}
    ours = pd.DataFrame({"file": job_corps_rows.PUBLISHED, **known})
    return pd.concat([ours, ours.assign(file="another", beta=0.0)])


def _offers(draw, n):
    risk = draw.choice(list(loan_rows.NORMAL_RATE), n)
    share = draw.uniform(0.3, 1.0, n)
    applied = draw.random(n) < 0.6 - 0.3 * share
    table = pd.DataFrame(draw.normal(size=(n, len(loan_rows.CLIENT))), columns=loan_rows.CLIENT)
    return table.assign(
        risk=risk,
        wave=draw.choice(loan_rows.WAVES, n),
        offer4=share * pd.Series(risk).map(loan_rows.NORMAL_RATE),
        normrate_less=(np.arange(n) % 9 > 0).astype(int),
        applied=applied.astype(int),
        loansize=1000 * applied,
    )


def _sales(draw, n):
    names = orange_juice_rows.NEIGHBOURHOOD
    stores = pd.DataFrame(draw.random((20, len(names))), columns=names)
    store = draw.integers(0, 20, n)
    feat = draw.integers(0, 2, n).astype(float)
    price = draw.uniform(1.5, 3.0, n) - 0.3 * feat
    return (
        stores.iloc[store]
        .reset_index(drop=True)
        .assign(
            store=store,
            brand=draw.choice(orange_juice_rows.BRANDS, n),
            week=draw.integers(0, 40, n),
            feat=feat,
            price=price,
            logmove=9 - 2.5 * np.log(price) + feat + draw.normal(0, 0.3, n),
        )
    )


def _voters(draw, n_households):
    household = np.repeat(np.arange(n_households), 2)
    arm = draw.choice(5, n_households, p=mailing_rows.CHANCES)[household]
    before = {name: draw.integers(0, 2, len(household)) for name in mailing_rows.VOTED_BEFORE}
    return pd.DataFrame(
        {
            "arm": arm + 1,
            "voted": (draw.random(len(household)) < 0.3 + 0.05 * arm).astype(int),
            "yob": draw.integers(1920, 1986, len(household)),
            "male": draw.integers(0, 2, len(household)),
            "hh_size": 2,
            "hh_id": household.astype(float),
            **before,
        }
    )


def _letters(draw, n):
    ratio = draw.integers(0, 4, n)
    names = match_ratio_rows.COVARIATES
    table = pd.DataFrame(draw.integers(0, 2, (n, len(names))).astype(float), columns=names)
    gave = draw.random(n) < 0.3 + 0.05 * (ratio > 0)
    return table.assign(match_ratio=ratio, out_gavedum=gave.astype(int))
