"""Tiny pipelines: tables that are written in no time, and configurations of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from doseforest.pricing.pipeline import PipelineConfig

LEVELS = np.array([0.0, 0.1, 0.2])


def orders(n=600, seed=0):
    """An experiment with three discounts: hunters answer them, others do not."""
    rng = np.random.default_rng(seed)
    hunter, income = rng.integers(0, 2, n), rng.uniform(size=n)
    discount = rng.choice(LEVELS, n)
    chance = 0.3 + 0.2 * income + 2.0 * discount * hunter
    return pd.DataFrame(
        {
            "hunter": hunter,
            "income": income,
            "fare": rng.uniform(5, 20, n).round(2),
            "cell": rng.integers(0, 4, n),
            "discount": discount,
            "chance": 1 / 3,
            "ordered": (rng.uniform(size=n) < chance).astype(int),
        }
    )


def tables(**sections):
    """A valid configuration of plain values, with some of its sections changed."""
    plain = {
        "collect": {"source": "parquet", "path": "rows.parquet"},
        "columns": {
            "outcome": "ordered",
            "treatment": ["discount"],
            "features": ["hunter", "income", "fare"],
            "propensity": "chance",
        },
        "train": {
            "models": ["boosting", "linear"],
            "boosting": {"n_trees": 10},
            "linear": {"n_trees": 8},
        },
        "optimise": {"price": "fare", "budget_like": 0.1, "compare": ["linear", "boosting"]},
        "test": {"kind": "results", "path": "results.csv", "outcome": "orders", "unit": "cell"},
    }
    for section, own in sections.items():
        plain[section] = plain.get(section, {}) | own
    return plain


def write_rows(folder, n=600):
    """The files that `tables` reads."""
    orders(n).to_parquet(folder / "rows.parquet", index=False)
    rng = np.random.default_rng(1)
    cells = np.arange(80)
    arm = np.where(cells % 2, "treatment", "control")
    sold = rng.poisson(10, 80) + 3.0 * (arm == "treatment")
    results = pd.DataFrame({"cell": cells, "arm": arm, "orders": sold})
    results.to_csv(folder / "results.csv", index=False)


def config_of(folder, **sections):
    return PipelineConfig.from_tables(tables(**sections), folder)
