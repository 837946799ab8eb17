"""Small policies, units and keys for the tests of the service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from doseforest import CurveForest
from doseforest.estimator.distilled_forest import DistilledForest
from doseforest.policy import ConstantPolicy, DoseCost, DosePolicy, ExplorationPolicy, unit_table
from doseforest.pricing.service.registry import policy_catalog
from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.security.api_keys import create_key
from doseforest.pricing.service.service_settings import Settings
from doseforest.pricing.service.storage.databases import Database, open_database
from doseforest.pricing.service.storage.schema import upgrade

DOSES = [0.0, 1.0, 2.0]
NAMES = ("express", "premium")  # two mobility options, with discounts of their own
PAIRS = np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0], [5.0, 5.0]])


def forest_policy(price: float = 1.0) -> DosePolicy:
    """A dose of 1 brings x0, one of 2 brings 1.5 x0; a unit of dose costs the price."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 4, (300, 2))
    curves = X[:, :1] * [0.0, 1.0, 1.5]
    grown = CurveForest(n_trees=20, random_state=0).fit(X, curves, doses=DOSES)
    return DosePolicy(
        DistilledForest(grown.forest_, 0.0, error=0.0, spread=1.0),
        cost=DoseCost(1.0),
        budget_price=price,
    )


@cache
def joint_policy() -> DosePolicy:
    """5 off express brings 2 x0 + 1, 5 off premium 8; a unit of either discount costs 1."""
    X = np.random.default_rng(0).uniform(0, 4, (200, 2))
    curves = (2 * X[:, :1] + 1) * [0.0, 0.0, 1.0, 1.0] + [0.0, 8.0, 0.0, 8.0]
    return DosePolicy(
        unit_table(X, curves, PAIRS),
        cost=DoseCost(1.0) + DoseCost(1.0, component=1),
        budget_price=1.0,
        components=NAMES,
    )


POLICIES: dict[str, Any] = {
    "forest": forest_policy,
    "dear": lambda: forest_policy(price=3.0),
    "control": lambda: ConstantPolicy(0.0),
    "random": lambda: ExplorationPolicy(DOSES, [0.5, 0.25, 0.25], salt="spring"),
    "joint": joint_policy,
    "joint control": lambda: ConstantPolicy(PAIRS[0], NAMES),
    "joint random": lambda: ExplorationPolicy(
        PAIRS, [0.4, 0.2, 0.2, 0.2], salt="spring", components=NAMES
    ),
    "other names": lambda: ConstantPolicy(PAIRS[0], ("bus", "bike")),
}


@dataclass
class World:
    """A database with tables, a folder of policies, and keys of every role."""

    settings: Settings
    database: Database
    files: PolicyFiles
    folder: Path
    keys: dict[str, str]

    def publish(self, name: str, *, active: bool = True) -> int:
        """Publish one of POLICIES as the command line does."""
        path = self.folder / f"{name}.dose"
        POLICIES[name]().save(path)
        described = policy_catalog.describe(self.files, self.files.add(path.read_bytes()))
        with self.database.writing.begin() as connection:
            version = policy_catalog.publish(connection, described, note=name, by="test")
            if active:
                policy_catalog.activate(connection, version, by="test")
        return version

    def headers(self, role: str = "decide") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[role]}"}


def make_world(folder: Path, url: str, **settings: Any) -> World:
    folder.mkdir(parents=True, exist_ok=True)
    database = open_database(url)
    upgrade(database)
    with database.writing.begin() as connection:
        keys = {role: create_key(connection, role, role) for role in ("decide", "report", "admin")}
    own = Settings(
        database=url,
        policies=str(folder / "policies"),
        **{"refresh": 0.05, "rate": 0.0, "drain": 0.5, **settings},
    )
    return World(own, database, PolicyFiles(own.policies), folder, keys)


def unit(name: str = "ann", x0: float | None = 1.5, **fields: Any) -> dict[str, Any]:
    return {"unit": name, "features": {"x0": x0, "x1": 1.0}, **fields}
