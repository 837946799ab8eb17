"""Demand for orange juice: how sales fall with the price, brand by brand and store by store.

Weekly sales of three brands in 83 supermarkets. Prices were not random: managers cut them when they
advertise, and an advertisement sells juice by itself. So "was it advertised" is a control, as are
the brand and the neighbourhood. Price and sales enter as logarithms: the slope of a curve is then
an elasticity. Takes a few minutes; prints elasticities and writes out/orange_juice.png.

Usage: python examples/orange_juice.py [--rows 5000] [--trees 400] [--out out]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from data_folder import read_data
from doseforest import GeneralizedCausalForest

BRANDS = {"dominicks": "#0072B2", "minute.maid": "#E69F00", "tropicana": "#009E73"}
# Residents: age, education, origin, income, households, working women, homes over $150,000; then
# distance and size of the nearest warehouse store and of the five nearest supermarkets.
NEIGHBOURHOOD = ["AGE60", "EDUC", "ETHNIC", "INCOME", "HHLARGE", "WORKWOM", "HVAL150"]
NEIGHBOURHOOD += ["SSTRDIST", "SSTRVOL", "CPDIST5", "CPWVOL5"]

FloatArray = NDArray[np.float64]


def covariates(sales: pd.DataFrame, *, advertised: bool = True) -> pd.DataFrame:
    """Brand, neighbourhood and, as a control, whether the brand was advertised that week."""
    brand = pd.DataFrame({name: sales["brand"] == name for name in BRANDS}, dtype=float)
    controls = ["feat"] if advertised else []
    return pd.concat([brand, sales[NEIGHBOURHOOD + controls]], axis=1)


def fit(sales: pd.DataFrame, n_trees: int, *, advertised: bool = True) -> GeneralizedCausalForest:
    """Fit curves of log sales over log price.

    Promotions run in all stores at once. As groups, the rows of a week share a fold: a bump at the
    price of one odd week is not believed, because it does not foretell other weeks.
    """
    forest = GeneralizedCausalForest(n_trees, baseline=np.log(2.0), random_state=0)
    X, dose = covariates(sales, advertised=advertised), np.log(sales["price"])
    return forest.fit(X, sales["logmove"], treatment=dose, groups=sales["week"])


def usual_prices(sales: pd.DataFrame, brand: str) -> FloatArray:
    """Ten prices over the middle nine tenths of those that a brand has had."""
    return sales.loc[sales["brand"] == brand, "price"].quantile(np.linspace(0.05, 0.95, 10)).values


def elasticities(
    forest: GeneralizedCausalForest, X: pd.DataFrame, prices: FloatArray
) -> FloatArray:
    """Slope of the line through each unit's curve at these prices."""
    curves = forest.dose_response(X, np.log(prices))
    centred = np.log(prices) - np.log(prices).mean()
    return curves @ centred / (centred @ centred)


def least_squares(sales: pd.DataFrame, *, advertised: bool) -> float:
    """The elasticity of a brand by a straight line, with or without the advertisements."""
    columns = [np.ones(len(sales)), np.log(sales["price"])]
    columns += [sales["feat"]] if advertised else []
    return float(np.linalg.lstsq(np.column_stack(columns), sales["logmove"], rcond=None)[0][1])


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
    for brand, color in BRANDS.items():
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
    sales = read_data("dominicks_oj.parquet")
    if options.rows:
        sales = sales.sample(options.rows, random_state=0)
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
