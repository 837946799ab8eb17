"""Learn how each customer responds to every discount, from data where discounts were not random.

Customers who live far away got larger discounts and order less anyway, so a plain comparison
of discounts misleads. The forest gives every customer a whole curve. Prints errors against the
known truth, and writes out/discount_curves.png and out/discount_curves.dose.

Usage: python examples/discount_curves.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.baselines import random_forest

N_CUSTOMERS = 4_000
DISCOUNTS = np.linspace(0, 30, 31)  # per cent
OUT = Path("out")

FloatArray = NDArray[np.float64]


def orders(discount: FloatArray, customers: FloatArray) -> FloatArray:
    """Expected orders: bargain hunters saturate early, others need a push."""
    distance, income, visits = customers[:, :1], customers[:, 1:2], customers[:, 2:3]
    saturating = 1 - np.exp(-discount / 6)
    threshold = 1 / (1 + np.exp(-(discount - 18) / 2))
    uplift = (2 + np.tanh(visits)) * np.where(income < 0, saturating, threshold)
    return 6 - 1.5 * distance + np.abs(visits) + uplift


def simulate(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Customers, the discounts they got, and their orders."""
    rng = np.random.default_rng(seed)
    customers = rng.normal(size=(N_CUSTOMERS, 8))
    given = np.clip(12 + 4 * customers[:, 0] + 9 * rng.normal(size=N_CUSTOMERS), 0, 30)
    placed = orders(given[:, None], customers)[:, 0] + rng.normal(size=N_CUSTOMERS)
    return customers, given, placed


def rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def uplift(curves: FloatArray) -> FloatArray:
    """Curves over DISCOUNTS less their value at none."""
    return curves - curves[:, :1]


def plot(truth: FloatArray, estimates: FloatArray, path: Path) -> None:
    """Draw some customers: the truth dashed, the forest's curve solid."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for unit, color in enumerate(plt.get_cmap("viridis")(np.linspace(0.05, 0.85, len(truth)))):
        axes.plot(DISCOUNTS, truth[unit], "--", color=color, linewidth=1.2)
        axes.plot(
            DISCOUNTS, estimates[unit], color=color, linewidth=2, label=f"customer {unit + 1}"
        )
    axes.set(xlabel="discount (%)", ylabel="extra orders")
    axes.set_title("Each customer's own response (dashed: truth)", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    customers, given, placed = simulate(seed=0)
    new_customers, _, _ = simulate(seed=1)
    truth = uplift(orders(DISCOUNTS, new_customers))

    forest = GeneralizedCausalForest(baseline=0.0, random_state=0)
    forest.fit(customers, placed, treatment=given)
    forest.save(OUT / "discount_curves.dose")
    estimates = uplift(
        load_forest(OUT / "discount_curves.dose").dose_response(new_customers, DISCOUNTS)
    )

    average = forest.average_dose_response(DISCOUNTS).values
    trees = random_forest(n_trees=200, n_jobs=-1).fit(customers, placed, treatment=given)
    spread = rms(truth - truth.mean(axis=0))
    print(
        f"{N_CUSTOMERS:,} customers, discounts given by distance. Error of the extra orders of new"
    )
    print(f"customers over discounts up to 30 %, root mean square (they differ by {spread:.2f}):\n")
    rows = {
        "forest of curves": estimates,
        "its outcome model alone": uplift(
            forest.outcome_model_.dose_response(new_customers, DISCOUNTS)
        ),
        "random forest on [X, discount]": uplift(trees.dose_response(new_customers, DISCOUNTS)),
        "average curve for everyone": np.tile(average - average[0], (len(truth), 1)),
    }
    for name, answer in rows.items():
        print(f"  {name:<32}{rms(answer - truth):6.2f}")
    effect = forest.average_effect(20.0)
    print(
        f"\nAverage effect of 20 %: {effect.value:.2f} orders (standard error "
        f"{effect.standard_error:.2f}; truth {truth[:, 20].mean():.2f})."
    )
    within = forest.supported(new_customers, [20.0]).mean()
    print(f"{within:.0%} of new customers could well have been given 20 %.")

    shown = [
        int(np.argmin(np.abs(new_customers[:, :3] - point).sum(axis=1)))
        for point in ([0, -1, -1], [0, -1, 1], [0, 1, -1], [0, 1, 1])
    ]
    plot(truth[shown], estimates[shown], OUT / "discount_curves.png")
    print(f"\nWrote {OUT / 'discount_curves.png'} and {OUT / 'discount_curves.dose'}.")


if __name__ == "__main__":
    main()
