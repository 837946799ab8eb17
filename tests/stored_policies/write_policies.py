"""Store a small policy of the current format, to be run once at each release that changes it.

Usage: python tests/stored_policies/write_policies.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from doseforest.policy import (
    DiscountCost,
    DosePolicy,
    Explore,
    Fee,
    LowerBound,
    PartPrices,
    Response,
    unit_table,
)
from doseforest.prediction.forest_file import FORMAT_VERSION

FOLDER = Path(__file__).parent


def main() -> None:
    rng = np.random.default_rng(0)
    X, doses = rng.normal(size=(60, 2)), np.array([0.0, 0.1, 0.2])
    policy = DosePolicy(
        unit_table(X, X[:, :1] + doses, doses),
        value=Response("margin") - Fee(0.1),
        cost=DiscountCost("fare"),
        budget_price=0.5,
        group_prices=PartPrices("region", {"north": 0.1, 2: 0.2}),
        cell_prices=PartPrices("cell", {1: 0.3}, unseen=0.1),
        max_dose="largest",
        support=unit_table(X, np.ones((60, 3)), doses),
        errors=unit_table(X, np.full((60, 3), 0.1), doses),
        risk=LowerBound(1.0),
    )
    explored = Explore(policy, 0.1, [0.2, 0.3, 0.5], key="rider", salt="spring")
    explored.save(FOLDER / f"explore_format_{FORMAT_VERSION}.dose")


if __name__ == "__main__":
    main()
