"""What a forest must have before its training rows may judge it."""

from __future__ import annotations

import numpy as np

from doseforest.estimator.fit_plan import FitPlan
from doseforest.estimator.training_rows import TrainingRows


def require_out_of_bag(plan: FitPlan, what: str, *, or_new_rows: bool = False) -> None:
    """Refuse what compares outcomes with curves of a forest whose leaves have seen them."""
    if plan.correction.judged_out_of_bag:
        return
    raise ValueError(
        f"{what} needs outcomes out of bag, which correction={plan.correction.name!r} does not "
        "have; "
        + ("give new rows X, y, treatment." if or_new_rows else "fit with another correction.")
    )


def require_varied_outcome(rows: TrainingRows, what: str) -> None:
    """Refuse an outcome that is the same everywhere: what is left of it is rounding error."""
    if np.ptp(rows.y) == 0:
        raise ValueError(
            f"The 'y' parameter of fit must vary for {what}. Got {rows.y[0]:g} in all rows instead."
        )
