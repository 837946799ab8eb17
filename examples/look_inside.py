"""Look inside a fitted forest: its summary, overlap, importance and pictures.

Customers who live far away got larger discounts; a third got none at all. Prints the summary and
the overlap report, and draws four pictures.

Usage: python examples/look_inside.py [picture, by default out/look-inside.png]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from doseforest import GeneralizedCausalForest

N_CUSTOMERS = 1_500


def simulate(seed: int) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Customers, the discounts they got, and their orders."""
    rng = np.random.default_rng(seed)
    names = ["distance", "income", "visits", "age"]
    customers = pd.DataFrame(rng.normal(size=(N_CUSTOMERS, len(names))), columns=names)
    customers["member"] = (rng.random(N_CUSTOMERS) < 0.4).astype(float)
    wanted = 12 + 4 * customers["distance"] + 6 * rng.normal(size=N_CUSTOMERS)
    given = np.where(rng.random(N_CUSTOMERS) < 0.3, 0.0, np.minimum(np.abs(wanted), 30))
    uplift = (1 + customers["member"]) * np.where(
        customers["visits"] > 0, 1 - np.exp(-given / 5), given / 30
    )
    orders = 6 - customers["distance"] + 2 * uplift + rng.normal(size=N_CUSTOMERS)
    return customers, pd.Series(given, name="discount (%)"), pd.Series(orders, name="orders")


def draw(forest: GeneralizedCausalForest, customers: pd.DataFrame, path: Path) -> None:
    """Draw units, the average, importance and overlap, and write the picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    forest.plot.dose_response(customers, effects=True, color_by="member", ax=axes[0, 0])
    forest.plot.average_dose_response(ax=axes[0, 1])
    forest.plot.importance("permutation", ax=axes[1, 0])
    forest.plot.overlap(ax=axes[1, 1])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=75)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/look-inside.png")
    customers, given, orders = simulate(seed=0)
    forest = GeneralizedCausalForest(density="entropy", random_state=0)
    forest.fit(customers, orders, treatment=given)
    print(forest.summary(), "\n")
    print(forest.overlap_report(), "\n")
    draw(forest, customers, path)
    print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
