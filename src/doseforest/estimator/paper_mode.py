"""The paper's Algorithm 1 as parameters of a forest: their defaults, rules and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np

from doseforest.doses.vectors import is_record, n_components
from doseforest.estimator.fit_plan import PaperRules
from doseforest.estimator.honest_split import n_growing
from doseforest.estimator.training_rows import TrainingRows

# The paper names the Gaussian kernel and a bandwidth by rule of thumb or cross-validation. It gives
# no value for the others: alpha is the even split, B, min.node.size and the share of features are
# those that regression forests commonly have, and zeta is 1 because the term is in the formula.
PAPER: dict[str, Any] = {
    "correction": "paper",
    "n_trees": 500,  # B
    "honesty": "forest",
    "honesty_fraction": 0.5,  # alpha
    "mtry": 1 / 3,
    "min_node_size": 5,
    "min_info_gain": 0.0,
    "criterion": "theta",
    "distance": "l2",  # D2
    "zeta": 1.0,
    "kernel": "gaussian",
    "bandwidth": "rule_of_thumb",
    "density": "location_scale",
}


def paper_rules(forest: Any, baseline: float) -> PaperRules | None:
    """Rules of a forest with correction="paper"; None for the others."""
    if forest.correction != "paper":
        return None
    return PaperRules(
        alpha=float(forest.honesty_fraction),
        baseline=baseline,
        criterion=forest.criterion,
        zeta=float(forest.zeta),
        min_info_gain=float(forest.min_info_gain),
    )


def check_paper(rows: TrainingRows, forest: Any) -> None:
    """Raise ValueError where parameters of correction="paper" do not fit the rows or each other."""
    if is_record(rows.dose):
        raise ValueError(
            "The 'treatment' parameter must have one component for correction='paper'. Got "
            f"{n_components(rows.dose)} instead: the other corrections take several."
        )
    if forest.honesty != "forest":
        raise ValueError(
            "The 'honesty' parameter must be 'forest' for correction='paper', which splits the "
            f"sample once; GeneralizedCausalForest.paper() sets it. Got {forest.honesty!r} instead."
        )
    if np.size(forest.min_node_size) > 1:
        raise ValueError(
            "The 'min_node_size' parameter must be one int for correction='paper'. "
            f"Got {forest.min_node_size!r} instead."
        )
    n_groups = len(np.unique(rows.ids))
    growing = n_growing(n_groups, forest.honesty_fraction)
    if not forest.n_folds <= growing < n_groups:
        raise ValueError(
            f"The 'honesty_fraction' parameter must leave at least {forest.n_folds} of the "
            f"{n_groups} rows or groups to grow, one for each of 'n_folds', and one to fill leaves "
            f"for correction='paper'. Got {forest.honesty_fraction!r}, {growing} that grow, "
            "instead."
        )
