"""Demand for orange juice: how sales fall with the price, brand by brand and store by store.

Weekly sales of three brands in 83 supermarkets. Prices were not random: managers cut them when they
advertise, and an advertisement sells juice by itself. So "was it advertised" is a control, as are
the brand and the neighbourhood. Price and sales enter as logarithms: the slope of a curve is then
an elasticity. Takes a few minutes; prints elasticities and writes out/orange_juice.png.

Usage: python examples/orange_juice.py [--rows 5000] [--trees 400] [--out out]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bench.real_data import MissingDataError
from bench.real_data.orange_juice_rows import (
    BASELINE,
    BRANDS,
    covariates,
    elasticities,
    least_squares,
    read_sales,
    usual_prices,
)
from doseforest import GeneralizedCausalForest

COLORS = dict(zip(BRANDS, ("#0072B2", "#E69F00", "#009E73"), strict=True))


def fit(sales: pd.DataFrame, n_trees: int) -> GeneralizedCausalForest:
    """Fit curves of log sales over log price.

    Promotions run in all stores at once. As groups, the rows of a week share a fold: a bump at the
    price of one odd week is not believed, because it does not foretell other weeks.
    """
    forest = GeneralizedCausalForest(n_trees, baseline=BASELINE, random_state=0)
    X, dose = covariates(sales), np.log(sales["price"])
    return forest.fit(X, sales["logmove"], treatment=dose, groups=sales["week"])


def by_store(forest: GeneralizedCausalForest, sales: pd.DataFrame, brand: str) -> pd.Series:
    """Mean elasticity of a brand in each store, in weeks without an advertisement."""
    quiet = sales[(sales["brand"] == brand) & (sales["feat"] == 0)]
    own = elasticities(forest, covariates(quiet), usual_prices(sales, brand))
    return pd.Series(own, quiet.index).groupby(quiet["store"]).mean()


def report(forest: GeneralizedCausalForest, sales: pd.DataFrame) -> None:
    """Print elasticities by brand beside those of straight lines."""
    homes = sales.groupby("store")["HVAL150"].first()
    dear, cheap = homes >= homes.quantile(0.75), homes <= homes.quantile(0.25)
    print("Elasticity of sales: change in per cent when the price is one per cent higher.\n")
    print(f"{'':<14}{'line':>8}{'line, adverts':>15}{'forest':>8}{'falling':>9}{'stores':>18}")
    for brand in BRANDS:
        own = sales[sales["brand"] == brand]
        found = elasticities(forest, covariates(own), usual_prices(sales, brand))
        lines = [least_squares(own, advertised=advertised) for advertised in (False, True)]
        stores = by_store(forest, sales, brand)
        print(
            f"  {brand:<12}{lines[0]:>8.2f}{lines[1]:>15.2f}{found.mean():>8.2f}"
            f"{(found < 0).mean():>9.1%}{stores[cheap].mean():>10.2f} /{stores[dear].mean():>6.2f}"
        )
    print("\nline: least squares on the price alone, then with advertisements; falling: rows whose")
    print("own curve falls; stores: without adverts, among the cheapest and the dearest homes.")


def plot(forest: GeneralizedCausalForest, sales: pd.DataFrame, path: Path) -> None:
    """Draw demand by brand on the left and elasticities by store on the right."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    homes = 100 * sales.groupby("store")["HVAL150"].first()
    for brand, color in COLORS.items():
        prices = np.geomspace(*usual_prices(sales, brand)[[0, -1]], 20)
        quiet = sales[(sales["brand"] == brand) & (sales["feat"] == 0)]
        sold = np.exp(forest.dose_response(covariates(quiet), np.log(prices)).mean(axis=0))
        left.plot(prices, sold / 1000, color=color, linewidth=2.5, label=brand)
        stores = by_store(forest, sales, brand)
        right.plot(homes[stores.index], stores, "o", color=color, markersize=4, alpha=0.8)
        line = np.polynomial.Polynomial.fit(homes[stores.index], stores, 1)
        right.plot(*line.linspace(2), color=color, linewidth=2.5)
    left.set(xscale="log", yscale="log", xlabel="price ($)", ylabel="units sold a week (thousands)")
    left.set_xticks([1, 1.5, 2, 2.5, 3, 3.5], ["1", "1.50", "2", "2.50", "3", "3.50"])
    left.set_yticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    left.set_title("Demand falls with the price", loc="left")
    left.legend(frameon=False)
    right.set(xlabel="homes worth over $150,000 (%)", ylabel="elasticity")
    right.set_title("Each dot a store: the wealthier mind prices less", loc="left")
    for axes in (left, right):
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows drawn from the table; all by default")
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    options = parser.parse_args(argv)
    try:
        sales = read_sales(options.rows)
    except MissingDataError as error:
        sys.exit(str(error))
    forest = fit(sales, options.trees)
    price = sales.groupby(["brand", "feat"])["price"].mean().unstack()
    share, cut = sales["feat"].mean(), 1 - (price[1] / price[0]).mean()
    print(f"{len(sales):,} weeks of a brand in one of {sales['store'].nunique()} stores.")
    print(f"Advertised in {share:.0%} of them, and then {cut:.0%} cheaper.\n")
    report(forest, sales)
    options.out.mkdir(parents=True, exist_ok=True)
    plot(forest, sales, options.out / "orange_juice.png")
    print(f"\nWrote {options.out / 'orange_juice.png'}.")


if __name__ == "__main__":
    main()
