"""Learn how each customer responds to every discount, from data where discounts were not random.

Customers who live far away got larger discounts and order less anyway, so a plain comparison
of discounts misleads. The forest gives every customer a whole curve. Prints errors against the
known truth, and writes out/discount_curves.png and out/discount_curves.dose.

Usage: python examples/discount_curves.py [--rows 4000] [--trees 400] [--out out]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doseforest import GeneralizedCausalForest, load_forest
from doseforest.baselines import random_forest

DISCOUNTS = np.linspace(0, 30, 31)  # per cent
SHOWN = {  # distance, income and visits of the customers in the picture
    "low income, many visits": ([0, -1, 1], "#D55E00"),
    "low income, few visits": ([0, -1, -1], "#E69F00"),
    "high income, many visits": ([0, 1, 1], "#0072B2"),
    "high income, few visits": ([0, 1, -1], "#56B4E9"),
}

FloatArray = NDArray[np.float64]


def orders(discount: FloatArray, customers: FloatArray) -> FloatArray:
    """Expected orders: bargain hunters saturate early, others need a push."""
    distance, income, visits = customers[:, :1], customers[:, 1:2], customers[:, 2:3]
    saturating = 1 - np.exp(-discount / 6)
    threshold = 1 / (1 + np.exp(-(discount - 18) / 2))
    uplift = (2 + np.tanh(visits)) * np.where(income < 0, saturating, threshold)
    return 6 - 1.5 * distance + np.abs(visits) + uplift


def simulate(n: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Customers, the discounts they got, and their orders."""
    rng = np.random.default_rng(seed)
    customers = rng.normal(size=(n, 8))
    given = np.clip(12 + 4 * customers[:, 0] + 9 * rng.normal(size=n), 0, 30)
    placed = orders(given[:, None], customers)[:, 0] + rng.normal(size=n)
    return customers, given, placed


def rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def uplift(curves: FloatArray) -> FloatArray:
    """Curves over DISCOUNTS less their value at none."""
    return curves - curves[:, :1]


def plain_comparison(given: FloatArray, placed: FloatArray) -> FloatArray:
    """Mean orders of the customers who got about 0, 5, ... 30 per cent."""
    groups = np.round(given / 5).astype(int)
    return np.bincount(groups, placed) / np.bincount(groups)


def plot(
    compared: FloatArray, average: FloatArray, customers: FloatArray, curves: FloatArray, path: Path
) -> None:
    """Draw averages on the left, some customers on the right; the truth is dashed."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    truth = orders(DISCOUNTS, customers)
    compared = compared - compared[0]
    left.plot(DISCOUNTS[::5], compared, "o-", color="#999999", label="plain comparison")
    left.plot(DISCOUNTS, average - average[0], color="black", linewidth=2.5, label="forest")
    mean = uplift(truth).mean(axis=0)
    left.plot(DISCOUNTS, mean, "--", color="black", linewidth=1, label="truth")
    left.set_title("On average: far customers got more and order less", loc="left")
    for name, (point, color) in SHOWN.items():
        unit = int(np.argmin(np.abs(customers[:, :3] - point).sum(axis=1)))
        right.plot(DISCOUNTS, uplift(truth)[unit], "--", color=color, linewidth=1)
        right.plot(DISCOUNTS, uplift(curves)[unit], color=color, linewidth=2.5, label=name)
    right.set_title("Four new customers: each its own curve", loc="left")
    for axes in (left, right):
        axes.set(xlabel="discount (%)", ylabel="extra orders", xlim=(0, 30), ylim=(-0.4, 3.6))
        axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left", ncols=2, fontsize="small")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4000, help="customers")
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of what is written")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    stored = options.out / "discount_curves.dose"
    customers, given, placed = simulate(options.rows, seed=0)
    newcomers, _, _ = simulate(options.rows, seed=1)
    truth = uplift(orders(DISCOUNTS, newcomers))

    forest = GeneralizedCausalForest(options.trees, baseline=0.0, random_state=0)
    forest.fit(customers, placed, treatment=given)
    forest.save(stored)
    curves = load_forest(stored).dose_response(newcomers, DISCOUNTS)

    average = forest.average_dose_response(DISCOUNTS).values
    trees = random_forest(n_trees=200, n_jobs=-1).fit(customers, placed, treatment=given)
    spread = rms(truth - truth.mean(axis=0))
    print(f"{options.rows:,} customers, discounts given by distance. Error of the extra orders of")
    print(f"new ones over discounts up to 30 %, root mean square (they differ by {spread:.2f}):\n")
    rows = {
        "forest of curves": uplift(curves),
        "its outcome model alone": uplift(
            forest.outcome_model_.dose_response(newcomers, DISCOUNTS)
        ),
        "random forest on [X, discount]": uplift(trees.dose_response(newcomers, DISCOUNTS)),
        "average curve for everyone": np.tile(average - average[0], (len(truth), 1)),
    }
    for name, answer in rows.items():
        print(f"  {name:<32}{rms(answer - truth):6.2f}")
    effect, compared = forest.average_effect(20.0), plain_comparison(given, placed)
    print(
        f"\nAverage effect of 20 %: {effect.value:.2f} orders (standard error "
        f"{effect.standard_error:.2f}; truth {truth[:, 20].mean():.2f}). A plain comparison of "
        f"customers says {compared[4] - compared[0]:.2f}."
    )
    within = forest.supported(newcomers, [20.0]).mean()
    print(f"{within:.0%} of new customers could well have been given 20 %.")
    plot(compared, average, newcomers, curves, options.out / "discount_curves.png")
    print(f"\nWrote {options.out / 'discount_curves.png'} and {stored}.")


if __name__ == "__main__":
    main()
