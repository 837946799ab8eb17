"""Simulate units with different dose-response curves, grow a forest of curves, show what it found.

Each unit's curve is only known through noise: a row of 31 noisy points. The forest pools units
that respond alike and gives every unit a whole curve. Writes out/forest_of_curves.png and
out/forest_of_curves.dose.

Usage: python examples/forest_of_curves.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from doseforest import CurveForest, load_forest

N_UNITS = 20_000
DOSES = np.linspace(0, 30, 31)  # per cent of discount
OUT = Path("out")

FloatArray = NDArray[np.float64]


def true_curves(distance: FloatArray, income: FloatArray) -> FloatArray:
    """Extra orders of each unit at each discount: bargain hunters saturate, others need a push."""
    saturating = 1 - np.exp(-DOSES / 6)
    threshold = 1 / (1 + np.exp(-(DOSES - 18) / 2))
    hunter = (income < 0)[:, None]
    return (1 + np.abs(distance))[:, None] * np.where(hunter, saturating, threshold)


def simulate(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, noisy curves and true curves."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(N_UNITS, 10))
    features[rng.random(features.shape) < 0.02] = np.nan
    truth = true_curves(np.nan_to_num(features[:, 0]), np.nan_to_num(features[:, 1]))
    return features, truth + rng.normal(size=truth.shape), truth


def rms(error: FloatArray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def nearest(features: FloatArray, point: list[float]) -> int:
    """Unit whose features lie closest to a point."""
    return int(np.nanargmin(np.abs(features - point).sum(axis=1)))


def plot(truth: FloatArray, predicted: FloatArray, path: Path) -> None:
    """Draw four units: the truth dashed, the forest's curve solid."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for unit, color in enumerate(plt.get_cmap("viridis")(np.linspace(0.05, 0.85, len(truth)))):
        axes.plot(DOSES, truth[unit], "--", color=color, linewidth=1.2)
        axes.plot(DOSES, predicted[unit], color=color, linewidth=2, label=f"unit {unit + 1}")
    axes.set(xlabel="discount (%)", ylabel="extra orders")
    axes.set_title("Each unit its own curve (dashed: truth)", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    features, curves, _ = simulate(seed=0)
    new_features, _, new_truth = simulate(seed=1)

    forest = CurveForest(n_trees=200, min_node_size=20, random_state=0)
    forest.fit(features, curves, doses=DOSES)
    forest.save(OUT / "forest_of_curves.dose")
    predicted = load_forest(OUT / "forest_of_curves.dose").predict(new_features)

    average = np.broadcast_to(curves.mean(axis=0), new_truth.shape)
    print(f"Forest of {forest.n_trees} trees on {N_UNITS:,} units, {len(DOSES)} doses each.\n")
    print(f"{'Error on new units (rms) at':<33}{'5 %':>8}{'15 %':>8}{'30 %':>8}{'all':>8}")
    for name, answer in (("average curve", average), ("forest of curves", predicted)):
        places = np.searchsorted(DOSES, [5, 15, 30])
        errors = [rms((answer - new_truth)[:, place]) for place in places]
        row = "".join(f"{error:8.3f}" for error in [*errors, rms(answer - new_truth)])
        print(f"  {name:<31}{row}")

    shown = [nearest(new_features[:, :2], point) for point in ([0, -1], [2, -1], [0, 1], [2, 1])]
    plot(new_truth[shown], predicted[shown], OUT / "forest_of_curves.png")
    print(f"\nWrote {OUT / 'forest_of_curves.png'} and {OUT / 'forest_of_curves.dose'}.")


if __name__ == "__main__":
    main()
