"""What is wrong with the overlap and what to do about it; silent where nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import dose_text
from doseforest.estimator.unit_support import FEWEST_SUPPORTED

if TYPE_CHECKING:
    from doseforest.report.overlap.overlap_report import OverlapReport

FEWEST_ROWS = 50.0  # effective sample at a dose, as for a baseline
FEWEST_AT_LEVEL = 20.0  # rows are compared exactly at a level, no kernel takes a part of them away
UNBALANCED = 0.1  # correlations and standardised differences beyond this are worth a look
NOISE = 3.0  # and beyond this many standard errors of theirs
LEAST_EFFICIENCY = 0.2  # effective sample of the weights over rows
MOST_WEAK = 0.05  # share of units with next to no choice of dose
SHOWN = 5


def overlap_messages(report: OverlapReport) -> tuple[str, ...]:
    """One sentence or two for each problem."""
    return tuple(_messages(report))


def _messages(report: OverlapReport) -> Iterator[str]:
    rare = report.supported < FEWEST_SUPPORTED
    if rare.any():
        yield (
            f"Fewer than {FEWEST_SUPPORTED:.0%} of the units could have had the dose(s) "
            f"{_named(report.doses[rare])}: curves are extrapolated there. Ask for other doses, "
            "or look at supported(X, doses) before an effect is used."
        )
    least = FEWEST_ROWS if report.continuous else FEWEST_AT_LEVEL
    thin = report.weighted_sample < least
    if thin.any():
        cure = (
            "Leave them out, or give a wider 'average_bandwidth'."
            if report.continuous
            else "Merge them with their neighbours."
        )
        yield (
            f"Fewer than {least:.0f} rows speak about the average outcome at the dose(s) "
            f"{_named(report.doses[thin])}. {cure}"
        )
    if report.weak_share > MOST_WEAK:
        yield (
            f"{report.weak_share:.0%} of the units had next to no choice of {_chosen(report)} its "
            f"variance is below {report.weak_below:.0%} of the overall. Leave "
            "covariates that drive the dose alone out of 'density_features', or do without units "
            "whose dose was decided beforehand."
        )
    efficiency = report.after_cap.effective_sample / report.n_rows
    if efficiency < LEAST_EFFICIENCY:
        yield (
            f"The treatment weights leave an effective sample of {efficiency:.0%} of the rows. "
            "Averages rest on few units: try density='entropy', or fewer 'density_features'."
        )
    yield from _balance_message(report)


def _chosen(report: OverlapReport) -> str:
    if len(report.components) == 1:
        return "dose: given their covariates"
    shares = report.weak_shares
    worst = max(shares, key=lambda name: shares[name])
    return f"some component (most of {worst}): given their covariates and what comes before it"


def _balance_message(report: OverlapReport) -> Iterator[str]:
    balance = report.balance
    noise = NOISE / np.sqrt(report.after_cap.effective_sample)
    if balance.standardised:  # means of the units at a level
        noise = NOISE / np.sqrt(np.maximum(report.level_samples, 1.0))
    limit = np.broadcast_to(np.maximum(UNBALANCED, noise), balance.after.shape)
    beyond: NDArray[np.bool_] = np.any(np.abs(balance.after) > limit, axis=1)
    if not beyond.any():
        return
    worst = np.abs(balance.after).max(axis=1)
    order = [place for place in np.argsort(-worst, kind="stable") if beyond[place]]
    named = ", ".join(f"{balance.covariates[k]} ({worst[k]:.2f})" for k in order[:SHOWN])
    more = ", …" if len(order) > SHOWN else ""
    what = "Standardised differences" if balance.standardised else "Correlations with the dose"
    if report.weights_name == "none":
        yield (
            f"{what} of {named}{more} are as they were: no weights are used, and averages rest on "
            "the outcome model there. To balance covariates regardless, give density='entropy'."
        )
    else:
        yield (
            f"{what} remain after weighting by {report.weights_name!r}: {named}{more}. Averages "
            "lean on the outcome model there: try density='entropy', or compare with "
            "density='none' to see what hangs on it."
        )


def _named(doses: FloatArray) -> str:
    shown = ", ".join(dose_text(dose, 4) for dose in doses[:SHOWN])
    return shown + (", …" if len(doses) > SHOWN else "")
