"""Bandwidths of a dose: by rule of thumb, or by leave-one-out risk of a smoother.

A bandwidth that the user gives passes `given_bandwidth` of doses/smoothing/smoother_inputs.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.doses.smoothing.kernels import KERNELS, Kernel
from doseforest.doses.smoothing.leave_one_out import leave_one_out_risk, smallest_bandwidth
from doseforest.doses.smoothing.product_kernels import MULTIPLES, product_loo_risks
from doseforest.doses.smoothing.smoother_inputs import (
    LARGEST_BANDWIDTH,
    SMALLEST_BANDWIDTH,
    checked_kernel,
    checked_numbers,
    checked_row_weights,
    given_bandwidth,
)

# Multiples of the rule of thumb that are tried: unit curves have wanted four times it (design).
_TRIED = 2.0 ** np.arange(-2, 3.25, 0.25)


@dataclass(frozen=True, slots=True)
class BandwidthChoice:
    """A bandwidth chosen among candidates, with the risk of each.

    Attributes
    ----------
    bandwidth : float
        The candidate of least risk.
    candidates : array of shape (n_candidates,)
        Bandwidths that were compared, ascending.
    risks : array of shape (n_candidates,)
        Leave-one-out mean squared error of each.

    Examples
    --------
    >>> dose = np.linspace(0, 1, 100)
    >>> loo_bandwidth(dose, dose, "gaussian", [0.1, 0.2]).candidates
    array([0.1, 0.2])
    """

    bandwidth: float
    candidates: FloatArray  # (n_candidates,)
    risks: FloatArray  # (n_candidates,)


def canonical_bandwidth(kernel: str | Kernel) -> float:
    """Factor (R / m2^2)^(1/5), with which bandwidths of different kernels smooth alike.

    R is the roughness and m2 the second moment: h over this factor trades bias against variance in
    the same way for every kernel.

    Parameters
    ----------
    kernel : str or Kernel
        A name in `KERNELS`, or a kernel with a bandwidth.

    Returns
    -------
    float
        The factor.

    Examples
    --------
    >>> round(canonical_bandwidth("epanechnikov") / canonical_bandwidth("gaussian"), 3)
    2.214
    """
    own = checked_kernel(kernel)
    if own.second_moment == 0:
        raise ValueError(
            f"The 'kernel' parameter must be a kernel with a bandwidth. Got {own.name!r} instead."
        )
    factor: float = (own.roughness / own.second_moment**2) ** 0.2
    return factor


def rule_of_thumb(dose: Any, kernel: str | Kernel, weights: Any = None) -> float:
    """Silverman's bandwidth 0.9 min(sd, IQR / 1.34) n^(-1/5), carried over to the kernel.

    With weights the standard deviation and the quartiles are weighted and n is the effective
    sample (sum w)^2 / sum w^2. Where half of the rows or more share one dose, the quartiles may
    coincide: then the standard deviation counts alone. The exact match has no use for a
    bandwidth and gets 1; so do doses of several components, for which it is a multiple of each
    component's own width.

    Parameters
    ----------
    dose : array of shape (n_rows,)
        Observed doses.
    kernel : str or Kernel
        A name in `KERNELS`, or a kernel.
    weights : array of shape (n_rows,), optional
        Weights of the rows; by default 1 each.

    Returns
    -------
    float
        The bandwidth, in units of the dose.

    Examples
    --------
    >>> dose = np.linspace(0, 10, 1001)
    >>> round(rule_of_thumb(dose, "gaussian"), 3), round(rule_of_thumb(dose, "biweight"), 3)
    (0.653, 1.713)
    """
    if Doses.of(dose).joint:
        return 1.0  # a multiple of each component's own width
    own, doses = checked_kernel(kernel), checked_numbers(dose, "dose")
    row_weights = checked_row_weights(weights, len(doses))
    if own.second_moment == 0:
        return 1.0
    mean = np.average(doses, weights=row_weights)
    spread = float(np.sqrt(np.average((doses - mean) ** 2, weights=row_weights)))
    lower, upper = _quartiles(doses, row_weights)
    if upper > lower:
        spread = min(spread, (upper - lower) / 1.34)
    sample = row_weights.sum() ** 2 / (row_weights**2).sum()
    ratio = canonical_bandwidth(own) / canonical_bandwidth(KERNELS["gaussian"])
    bandwidth = float(0.9 * spread * sample**-0.2 * ratio)
    if not SMALLEST_BANDWIDTH <= bandwidth <= LARGEST_BANDWIDTH:
        raise ValueError(
            "The 'dose' parameter must vary, and so that its rule-of-thumb bandwidth lies in "
            f"[{SMALLEST_BANDWIDTH:.0e}, {LARGEST_BANDWIDTH:.0e}]. "
            f"Got doses from {doses.min()} to {doses.max()} with bandwidth {bandwidth} instead."
        )
    return bandwidth


def loo_bandwidth(
    dose: Any,
    outcome: Any,
    kernel: str | Kernel,
    candidates: Any = None,
    weights: Any = None,
    *,
    degree: int = 1,
) -> BandwidthChoice:
    """Choose the bandwidth whose smoother best predicts each outcome from those of other rows.

    The risk is sum r_i (psi_i - f_-i(T_i))^2 / sum r_i, where f_-i is the local line (or local
    constant) through the other rows, with weights K_h r and one bandwidth at all doses. The
    outcomes psi must be the same for all candidates, as pseudo-outcomes of a doubly robust curve
    at the observed dose are. See `leave_one_out_risk` for how it is computed and how closely.

    Parameters
    ----------
    dose, outcome : array of shape (n_rows,)
        Doses T_i and (pseudo-)outcomes psi_i observed at them.
    kernel : str or Kernel
        A name in `KERNELS` or an object with the members of `Kernel`.
    candidates : array of shape (n_candidates,), optional
        Bandwidths to choose from; by default 21, from a quarter to eight times the rule of thumb.
        Time is proportional to their number. Not for doses of several components, whose candidates
        are multiples of each component's width.
    weights : array of shape (n_rows,), optional
        Row weights r; by default 1 each.
    degree : {1, 0}, default=1
        Local lines or local constants. Lines follow the curve at the ends of the doses; constants
        are steadier where rows are few.

    Returns
    -------
    BandwidthChoice
        The bandwidth, and the risk of every candidate.

    Examples
    --------
    >>> dose = np.linspace(0, 1, 400)
    >>> outcome = np.sin(20 * dose) + np.resize([0.5, -0.5, -0.5, 0.5], 400)
    >>> choice = loo_bandwidth(dose, outcome, "epanechnikov", [0.02, 0.05, 0.5])
    >>> choice.bandwidth, choice.risks.round(2)
    (0.05, array([0.32, 0.28, 0.72]))
    """
    if Doses.of(dose).joint:
        risks = product_loo_risks(dose, outcome, kernel, weights, degree)
        return BandwidthChoice(float(MULTIPLES[np.argmin(risks)]), MULTIPLES, np.array(risks))
    doses = checked_numbers(dose, "dose")
    outcomes = checked_numbers(outcome, "outcome", len(doses))
    row_weights = checked_row_weights(weights, len(doses))
    own = checked_kernel(kernel)
    canonical_bandwidth(own)  # refuses the exact match
    if degree not in (0, 1):
        raise ValueError(f"The 'degree' parameter must be 0 or 1. Got {degree!r} instead.")
    # Rows without weight neither smooth nor count.
    present = row_weights > 0
    doses, outcomes, row_weights = doses[present], outcomes[present], row_weights[present]
    if len(doses) < 2:
        raise ValueError(
            "The 'dose' parameter must have two rows of positive weight or more to leave one out. "
            f"Got {len(doses)} instead."
        )
    widths = _checked_candidates(candidates, doses, row_weights, own)
    risks = [leave_one_out_risk(doses, outcomes, own, h, row_weights, degree) for h in widths]
    return BandwidthChoice(float(widths[np.argmin(risks)]), widths, np.array(risks))


def _checked_candidates(
    candidates: Any, dose: FloatArray, weights: FloatArray, kernel: Kernel
) -> FloatArray:
    least = smallest_bandwidth(dose)
    if candidates is None:
        widths = rule_of_thumb(dose, kernel, weights) * _TRIED
        return widths[widths >= least] if widths[-1] >= least else np.array([least])
    widths = np.unique(checked_numbers(candidates, "candidates"))
    for width in widths:
        given_bandwidth(float(width), "candidates")
    if widths[0] < least:
        raise ValueError(
            f"The 'candidates' parameter must hold bandwidths of at least {least}, a fixed share "
            f"of the range of the doses. Got {widths[0]} instead."
        )
    return widths


def _quartiles(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    # Each value stands in the middle of its own weight: Hazen's rule when weights are equal.
    positions = (cumulated - weights[order] / 2) / cumulated[-1]
    lower, upper = np.interp([0.25, 0.75], positions, values[order])
    return float(lower), float(upper)
