"""Experiments as rows of the database: started once, stopped once, never changed."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from doseforest.pricing.experiments.hashed_arms import checked_shares
from doseforest.pricing.service.registry.policy_catalog import find_policy
from doseforest.pricing.service.served_doses import components_text
from doseforest.pricing.service.storage.service_tables import experiments, now


class ExperimentError(Exception):
    """An experiment that cannot be started or stopped, or that is not there."""


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """An experiment as the database knows it."""

    id: int
    name: str
    salt: str
    arms: list[dict[str, Any]]  # name, version, share
    started_at: int
    stopped_at: int | None

    @property
    def shares(self) -> dict[str, float]:
        """Planned shares of the arms; the first one is the control."""
        return {arm["name"]: arm["share"] for arm in self.arms}


def start_experiment(
    connection: Connection, name: str, arms: list[dict[str, Any]], salt: str | None = None
) -> int:
    """Start an experiment and return its id; one runs at a time.

    The salt is random unless it is given: whoever knew it could choose an arm.
    """
    names = [arm["name"] for arm in arms]
    if len(set(names)) < len(names):
        raise ExperimentError("Arms must have distinct names.")
    try:
        checked_shares({arm["name"]: arm["share"] for arm in arms})
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    _check_components(connection, arms)
    for experiment in list_experiments(connection):
        if experiment.stopped_at is None:
            raise ExperimentError(f"Experiment {experiment.name!r} is running. Stop it first.")
        if experiment.name == name:
            raise ExperimentError(f"There is an experiment {name!r} already.")
    row = {
        "name": name,
        "salt": salt or secrets.token_hex(16),
        "arms": json.dumps(arms),
        "started_at": now(),
    }
    inserted = connection.execute(experiments.insert().returning(experiments.c.id), row)
    return int(inserted.scalar_one())


def _check_components(connection: Connection, arms: list[dict[str, Any]]) -> None:
    """Refuse arms that do not give the same kind of doses: nothing could be compared or mixed."""
    first, *others = [(arm["name"], find_policy(connection, arm["version"])) for arm in arms]
    for name, policy in others:
        if policy.components != first[1].components:
            raise ExperimentError(
                "Arms must give doses of the same components, in the same order. "
                f"Arm {first[0]!r} has {components_text(first[1].components)}, "
                f"arm {name!r} {components_text(policy.components)}."
            )


def stop_experiment(connection: Connection, experiment_id: int) -> None:
    """Stop an experiment; the active policy decides on everybody again."""
    if find_experiment(connection, experiment_id).stopped_at is not None:
        raise ExperimentError("The experiment has been stopped already.")
    connection.execute(
        experiments.update().where(experiments.c.id == experiment_id).values(stopped_at=now())
    )


def find_experiment(connection: Connection, experiment_id: int) -> StoredExperiment:
    """An experiment by its id."""
    rows = connection.execute(select(experiments).where(experiments.c.id == experiment_id))
    row = rows.mappings().first()
    if row is None:
        raise UnknownExperimentError(f"There is no experiment {experiment_id}.")
    return _stored(row)


def list_experiments(connection: Connection) -> list[StoredExperiment]:
    """All experiments, the newest first."""
    rows = connection.execute(select(experiments).order_by(experiments.c.id.desc()))
    return [_stored(row) for row in rows.mappings()]


class UnknownExperimentError(ExperimentError):
    """There is no such experiment."""


def _stored(row: Any) -> StoredExperiment:
    return StoredExperiment(**{**row, "arms": json.loads(row["arms"])})
