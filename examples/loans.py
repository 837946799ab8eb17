"""A randomised interest rate: how many more clients apply for a loan when it is lower.

A South African lender offered 53,178 former clients loans at rates drawn at random (Karlan and
Zinman 2008). The draw was random only among clients of one risk class in one mailing: safe
clients had lower rates and apply more often anyway. `Strata` tells the forest so. The dose is the
rate as a share of what the client normally pays, so that 1 means no discount for everyone. Takes
a few minutes; prints elasticities and writes out/loans.png.

Usage: python examples/loans.py [--rows 5000] [--trees 400] [--out out]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.real_data import MissingDataError
from bench.real_data.loan_rows import (
    NORMAL_RATE,
    PUBLISHED,
    SHARES,
    covariates,
    pooled_elasticity,
    read_offers,
    strata,
)
from doseforest import GeneralizedCausalForest
from doseforest.estimator.averages.average_curves import AverageDoseResponse

COLORS = {"LOW": "#009E73", "MEDIUM": "#E69F00", "HIGH": "#0072B2"}

FloatArray = NDArray[np.float64]


def fit(offers: pd.DataFrame, outcome: str, n_trees: int) -> GeneralizedCausalForest:
    """Fit curves of an outcome over the offered share of the normal rate."""
    within = strata(offers)
    forest = GeneralizedCausalForest(n_trees, density=within, baseline=1.0, random_state=0)
    return forest.fit(covariates(offers), offers[outcome], treatment=offers["share"])


def plot(
    average: AverageDoseResponse, by_risk: dict[str, FloatArray], offers: pd.DataFrame, path: Path
) -> None:
    """Draw the risk classes over the rate itself, and the average over shares of normal rates."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for risk, curve in by_risk.items():
        own = offers.loc[offers["risk"] == risk, ["offer4", "applied"]]
        seen = own.groupby(pd.qcut(own["offer4"], 6, duplicates="drop"), observed=True).mean()
        left.plot(seen["offer4"], 100 * seen["applied"], "o", color=COLORS[risk], markersize=5)
        rates, label = NORMAL_RATE[risk] * SHARES, f"{risk.lower()} risk, {len(own):,} clients"
        left.plot(rates, 100 * curve, color=COLORS[risk], linewidth=2.5, label=label)
    line = np.polynomial.Polynomial.fit(offers["offer4"], 100 * offers["applied"], 1)
    left.plot(*line.linspace(2), "--", color="#777777", label="one line through all")
    left.set(xlabel="interest rate (% a month)", ylabel="clients who apply (%)", ylim=(0, 25))
    left.set_title("Risk classes: dots as seen, curves by the forest", loc="left")
    left.legend(frameon=False, fontsize="small", ncols=2)
    shares, values, errors = 100 * SHARES, 100 * average.values, 100 * average.standard_errors
    right.fill_between(shares, values - 2 * errors, values + 2 * errors, color="#dddddd")
    right.plot(shares, values, color="black", linewidth=2.5)
    right.set(xlabel="interest rate (% of the client's normal rate)", ylim=(0, 12))
    right.set_title("All clients, with two standard errors", loc="left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, help="clients drawn from the table; all by default")
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    options = parser.parse_args(argv)
    try:
        offers = read_offers(options.rows)
    except MissingDataError as error:
        sys.exit(str(error))
    forest = fit(offers, "applied", options.trees)
    average = forest.average_dose_response(SHARES)
    found, half = average.elasticity(), forest.average_effect(0.5)
    print(f"{len(offers):,} clients; {offers['applied'].mean():.1%} applied.\n")
    print("Elasticity of applications: change in per cent when the rate is one per cent higher.\n")
    print(f"  one line through all, strata ignored  {pooled_elasticity(offers, 'applied'):5.2f}")
    print(f"  forest, random within strata          {found.value:5.2f}", end="")
    print(f"  (standard error {found.standard_error:.2f})")
    print(f"  published                             {PUBLISHED['applied']:5.2f}\n")
    print(
        f"At half the normal rate another {half.value:.1%} of all clients would apply (standard "
        f"error {half.standard_error:.1%}).\nWho would apply at half and at the full normal rate:\n"
    )
    X, by_risk = covariates(offers), {}
    for risk in NORMAL_RATE:
        rows = offers["risk"] == risk
        by_risk[risk] = forest.dose_response(X[rows], SHARES).mean(axis=0)
        low, normal = forest.dose_response(X[rows], [0.5, 1.0]).mean(axis=0)
        print(f"  {risk.lower() + ' risk':<13}{low:6.1%}{normal:7.1%}")
    options.out.mkdir(parents=True, exist_ok=True)
    plot(average, by_risk, offers, options.out / "loans.png")
    print(f"\nWrote {options.out / 'loans.png'}.")


if __name__ == "__main__":
    main()
