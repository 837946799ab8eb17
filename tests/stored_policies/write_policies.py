"""Store small policies of the current format, to be run once at each release that changes it.

Usage: python tests/stored_policies/write_policies.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from doseforest import load_forest, load_policy
from doseforest.files.forest_file import FORMAT_VERSION
from doseforest.policy import (
    ConstantPolicy,
    DiscountCost,
    DoseCost,
    DosePolicy,
    ExplorationPolicy,
    Explore,
    Fee,
    LowerBound,
    MeanVariance,
    PartPrices,
    Response,
    unit_table,
)

FOLDER = Path(__file__).parent
FOREST = FOLDER.parent / "stored_forests" / "effect_forest_binary_format_1.dose"
ANSWERS = ("dose_index", "value", "cost", "net", "effect", "propensity", "reason_code")


def main() -> None:
    rng = np.random.default_rng(0)
    X, doses = rng.normal(size=(60, 2)), np.array([0.0, 0.1, 0.2])
    policy = DosePolicy(
        unit_table(X, X[:, :1] + doses, doses),
        value=Response("margin") - Fee(0.1),
        cost=DiscountCost("fare"),
        budget_price=0.5,
        group_prices=PartPrices("region", {"north": 0.1, 2: 0.2}),
        cell_prices=PartPrices("cell", {1: 0.3}, unseen=0.1),
        max_dose="largest",
        support=unit_table(X, np.ones((60, 3)), doses),
        errors=unit_table(X, np.full((60, 3), 0.1), doses),
        risk=LowerBound(1.0),
    )
    explored = Explore(policy, 0.1, [0.2, 0.3, 0.5], key="rider", salt="spring")
    store("explore", explored)
    store("constant", ConstantPolicy(5.0))
    store("joint_constant", ConstantPolicy([0.0, 5.0], ("express", "premium")))
    store("exploration", ExplorationPolicy(doses, [0.5, 0.25, 0.25], key="rider", salt="spring"))
    pairs = np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0], [5.0, 5.0]])
    joint = DosePolicy(
        unit_table(X, X[:, :1] * [0.0, 1.0, 2.0, 3.0] + 1, pairs),
        cost=DoseCost(0.1) + DoseCost("fare", component=1),
        budget_price=0.25,
        errors=unit_table(X, np.full((60, 4), 0.1), pairs),
        risk=MeanVariance(2.0),
        components=("express", "premium"),
    )
    store("joint", joint)
    served = DosePolicy(
        load_forest(FOREST), doses=[0.0, 1.0, 2.0, 3.0], cost=DoseCost(), min_dose=0.5, baseline=1.0
    )
    store("of_effect_forest", served)


def store(kind, policy) -> None:
    path = FOLDER / f"{kind}_format_{FORMAT_VERSION}.dose"
    answers = path.with_suffix(".decisions.npz")
    if not path.exists():
        policy.save(path)
    if not answers.exists():
        np.savez(answers, **decided(load_policy(path)))


def decided(policy) -> dict[str, np.ndarray]:
    """What a policy decides for eight units."""
    X = np.random.default_rng(1).normal(size=(8, policy_width(policy)))
    context = {
        "margin": np.arange(8.0),
        "fare": np.linspace(0.5, 4.0, 8),
        "region": np.array(["north", "2"] * 4),
        "cell": np.arange(8) % 2,
        "largest": np.full(8, 0.15),
        "rider": np.arange(8),
        "unit": np.arange(8),
    }
    decisions = policy.decide(X, context)
    return {name: np.asarray(getattr(decisions, name)) for name in ANSWERS}


def policy_width(policy) -> int:
    """Features of a policy's forest; a policy without one takes any."""
    forest = getattr(getattr(policy, "policy", policy), "forest", None)
    if forest is None:
        return 2
    return getattr(forest, "forest", forest).n_features


if __name__ == "__main__":
    main()
