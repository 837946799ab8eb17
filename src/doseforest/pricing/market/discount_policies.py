"""What counts as a policy: one discount, one for each view, or what makes them of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.base.dtypes import FloatArray
from doseforest.doses.dose_values import Doses
from doseforest.pricing.market.regimes import MAX_DISCOUNT

ROUNDING = 1e-9  # beyond the largest discount, by decimals


def plan_of(policy: Any, X: FloatArray, n_options: int) -> FloatArray:
    """Discounts of views by a policy.

    Parameters
    ----------
    policy : number, array, callable or object with a method ``decide``
        A number (or one for each option) is the same discount for all views, an array has one for
        each view. A callable, or the method ``decide``, is called with ``X`` and answers with such
        an array, or with what has one as ``dose``, as the decisions of the library's policies do.
    X : array of shape (n_views, n_features)
        Features of the views.
    n_options : int
        Number of options.

    Returns
    -------
    array of shape (n_views, n_options)
        The discounts.

    Examples
    --------
    >>> plan_of(lambda X: 0.01 * X[:, 0], np.array([[5.0], [10.0]]), 1)
    array([[0.05],
           [0.1 ]])
    """
    decide = getattr(policy, "decide", policy)
    answer = decide(X) if callable(decide) else decide
    answer = getattr(answer, "dose", answer)
    try:
        given = Doses.of(answer)
        doses = np.asarray(given.table if given.joint else answer, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(_message(f"{type(answer).__name__}", len(X), n_options)) from error
    if doses.ndim == 0 or (n_options > 1 and doses.shape == (n_options,)):
        doses = np.broadcast_to(doses, (len(X), n_options))
    elif n_options == 1 and doses.shape == (len(X),):
        doses = doses[:, None]
    if doses.shape != (len(X), n_options):
        raise ValueError(_message(f"shape {doses.shape}", len(X), n_options))
    inside = (doses >= 0) & (doses <= MAX_DISCOUNT + ROUNDING)
    if not inside.all():
        raise ValueError(
            f"The 'policy' parameter must give discounts from 0 to {MAX_DISCOUNT:g}. "
            f"Got {doses[~inside][0]} instead."
        )
    return doses


def _message(got: str, n_views: int, n_options: int) -> str:
    shape = f"({n_views},)" if n_options == 1 else f"({n_views}, {n_options})"
    return (
        "The 'policy' parameter must be a discount, an array of them, a callable or an object "
        f"with a method 'decide' that gives shape {shape}. Got {got} instead."
    )
