"""Two discounts at once, and where they help each other.

Customers got a discount on the price and another on the delivery, both larger for those who live
far away. To loyal customers the second is worth more beside the first; to others each takes from
the other. Prints effects beside the truth, and draws what each pair of discounts does.

Usage: python examples/two_discounts.py [--rows 2000] [--trees 400] [--picture out/file.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from doseforest import GeneralizedCausalForest
from doseforest.datasets import JOINT_DESIGNS, Simulation

BASELINE = [0.2, 0.2]
DOSES = [[0.8, 0.2], [0.2, 0.8], [0.8, 0.8]]
NAMES = ["distance", "income", "basket", "loyalty", "visits", *(f"habit {k}" for k in range(5))]


def frames(data: Simulation) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Customers, the discounts they got, and their orders."""
    customers = pd.DataFrame(data.X, columns=NAMES)
    discounts = pd.DataFrame(data.treatment, columns=["price discount", "delivery discount"])
    return customers, discounts, pd.Series(data.y, name="orders")


def print_effects(forest: GeneralizedCausalForest, data: Simulation) -> None:
    """Average effects of three pairs of discounts beside the truth."""
    exact = data.effect(DOSES, baseline=BASELINE).mean(axis=0)
    print(f"Average effects against {BASELINE}")
    print("discounts     estimate  (se)   truth")
    for dose, truth in zip(DOSES, exact, strict=True):
        found = forest.average_effect(dose)
        print(f"{dose}    {found.value:8.2f}  ({found.standard_error:.2f})  {truth:6.2f}")


def helping(effects: np.ndarray) -> np.ndarray:
    """What both discounts do beyond the sum of either alone, of each customer."""
    first, second, both = np.asarray(effects).T
    return both - first - second


def print_interaction(
    forest: GeneralizedCausalForest, customers: pd.DataFrame, data: Simulation
) -> None:
    """Where the discounts help each other: in thirds of the customers by loyalty."""
    curves = np.asarray(forest.dose_response(customers, [BASELINE, *DOSES]))
    found = helping(curves[:, 1:] - curves[:, :1])
    exact = helping(data.effect(DOSES, baseline=BASELINE))
    third = pd.qcut(customers["loyalty"], 3, labels=["low", "middle", "high"])
    print("\nBoth discounts beyond the sum of either")
    print("loyalty       estimate          truth")
    for name in third.cat.categories:
        mine = (third == name).to_numpy()
        print(f"{name:<12}  {found[mine].mean():8.2f}         {exact[mine].mean():6.2f}")
    print(f"correlation over customers {np.corrcoef(found, exact)[0, 1]:.2f}")


def draw(forest: GeneralizedCausalForest, customers: pd.DataFrame, path: Path) -> None:
    """Draw effects over both discounts: of everybody, and of the least and the most loyal."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    low, high = customers["loyalty"].quantile([1 / 3, 2 / 3])
    panels = {
        "Everybody": None,
        "The least loyal third": customers[customers["loyalty"] < low],
        "The most loyal third": customers[customers["loyalty"] > high],
    }
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
    for ax, (title, units) in zip(axes, panels.items(), strict=True):
        forest.plot.surface(units, effects=True, ax=ax)
        ax.set_title(title, loc="left", pad=18)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=70)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--picture", type=Path, default=Path("out/two-discounts.png"))
    asked = parser.parse_args(argv)
    data = JOINT_DESIGNS["two_discounts"].draw(n=asked.rows, seed=0)
    customers, discounts, orders = frames(data)
    forest = GeneralizedCausalForest(n_trees=asked.trees, baseline=BASELINE, random_state=0)
    forest.fit(customers, orders, treatment=discounts)
    print_effects(forest, data)
    print_interaction(forest, customers, data)
    draw(forest, customers, asked.picture)
    print(f"\nWrote {asked.picture}.")


if __name__ == "__main__":
    main()
