"""Orange juice: weekly sales of three brands in 83 supermarkets of Dominick's.

Prices were not random: managers cut them when they advertise, and an advertisement sells juice by
itself. Price and sales enter as logarithms: the slope of a curve is then an elasticity.
"""

from __future__ import annotations

import numpy as np

from bench.real_data.data_folder import Frame, drawn, read_data
from bench.real_data.dose_rows import DoseRows
from doseforest.base.dtypes import FloatArray
from doseforest.evaluation.effect_errors import CurveModel

FILE = "dominicks_oj.parquet"
BRANDS = ("dominicks", "minute.maid", "tropicana")
# Residents: age, education, origin, income, households, working women, homes over $150,000; then
# distance and size of the nearest warehouse store and of the five nearest supermarkets.
NEIGHBOURHOOD = ["AGE60", "EDUC", "ETHNIC", "INCOME", "HHLARGE", "WORKWOM", "HVAL150"]
NEIGHBOURHOOD += ["SSTRDIST", "SSTRVOL", "CPDIST5", "CPWVOL5"]
# Elasticities by least squares of log sales on log price, brand by brand.
PUBLISHED = {"dominicks": -3.38, "minute.maid": -3.32, "tropicana": -2.71}
BASELINE = np.log(2.0)  # two dollars, which every brand has cost


def read_sales(n_rows: int | None = None) -> Frame:
    """Weeks of a brand in a store: all, or some drawn at random."""
    return drawn(read_data(FILE), n_rows)


def covariates(sales: Frame, *, advertised: bool = True) -> Frame:
    """Brand, neighbourhood and, as a control, whether the brand was advertised that week."""
    return sales[["brand", *NEIGHBOURHOOD, *(["feat"] if advertised else [])]]


def rows(sales: Frame, *, advertised: bool = True) -> DoseRows:
    """Log sales over log price.

    Promotions run in all stores at once. As groups, the rows of a week share a fold: a bump at the
    price of one odd week is not believed, because it does not foretell other weeks.
    """
    return DoseRows(
        covariates(sales, advertised=advertised),
        sales["logmove"].to_numpy(float),
        np.log(sales["price"].to_numpy(float)),
        groups=sales["week"].to_numpy(),
    )


def usual_prices(sales: Frame, brand: str) -> FloatArray:
    """Ten prices over the middle nine tenths of those that a brand has had."""
    own = sales.loc[sales["brand"] == brand, "price"].to_numpy(float)
    prices: FloatArray = np.quantile(own, np.linspace(0.05, 0.95, 10))
    return prices


def elasticities(model: CurveModel, X: Frame, prices: FloatArray) -> FloatArray:
    """Slope of the line through each unit's curve at these prices, shape (n_units,)."""
    curves = np.asarray(model.dose_response(X, np.log(prices)))
    centred = np.log(prices) - np.log(prices).mean()
    slopes: FloatArray = curves @ centred / (centred @ centred)
    return slopes


def least_squares(sales: Frame, *, advertised: bool) -> float:
    """The elasticity of a brand by a straight line, with or without the advertisements."""
    columns = [np.ones(len(sales)), np.log(sales["price"])]
    columns += [sales["feat"]] if advertised else []
    return float(np.linalg.lstsq(np.column_stack(columns), sales["logmove"], rcond=None)[0][1])
