"""What serves right now, in memory, and how it follows the database.

Every process looks for changes once in a while, in a thread of its own: new files are read and
checked there while requests go on with what they have; then one assignment swaps everything.
"""

from __future__ import annotations

import json
import secrets as random_source
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from doseforest.pricing.service.deciding import Deciders
from doseforest.pricing.service.online_experiments.running_arms import Arm, RunningExperiment
from doseforest.pricing.service.registry.policy_catalog import Activation, find_policy, history
from doseforest.pricing.service.registry.policy_files import PolicyFileError, PolicyFiles
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from doseforest.pricing.service.security.api_keys import ApiKey, list_keys
from doseforest.pricing.service.served_doses import Dose, components_text, dose_name, has_components
from doseforest.pricing.service.storage.databases import Database
from doseforest.pricing.service.storage.service_tables import experiments, secrets

UNIT_KEY = "unit_key"  # of the hashes of unit ids


@dataclass(frozen=True, slots=True)
class Live:
    """A moment's policies, experiment and keys."""

    deciders: Deciders
    keys: Mapping[str, ApiKey] = field(default_factory=dict)  # by id, those that are not revoked
    activation: Activation | None = None  # of the policy that serves
    problems: tuple[str, ...] = ()  # what should serve and does not, and why


class LiveState:
    """Holds the current `Live`; `refresh` brings it up to date."""

    def __init__(self, database: Database, files: PolicyFiles, fallback_dose: Dose | None) -> None:
        self._database = database
        self._files = files
        self._loaded: dict[int, ServedPolicy] = {}
        self._lock = threading.Lock()
        self.current = Live(Deciders(None, None, fallback_dose))

    def refresh(self) -> None:
        """Read what changed; whatever cannot be loaded leaves the old one in its place."""
        with self._lock, self._database.reading.connect() as connection:
            problems: list[str] = []
            activation, policy = self._policy(connection, problems)
            experiment = self._experiment(connection, problems)
            keys = {key.id: key for key in list_keys(connection) if key.revoked_at is None}
            deciders = replace(self.current.deciders, policy=policy, experiment=experiment)
            problems += _fallback_problems(deciders)
            self.current = Live(deciders, keys, activation, tuple(problems))
            self._forget_others(deciders)

    def load(self, connection: Connection, version: int) -> ServedPolicy:
        """A policy by its version, checked; loaded once."""
        if version not in self._loaded:
            digest = find_policy(connection, version).sha256
            served = ServedPolicy(version, self._files.load(digest))
            served.warm()
            self._loaded[version] = served
        return self._loaded[version]

    def check(self, connection: Connection, version: int) -> None:
        """Refuse a policy whose file is not what was published, even if it is in memory."""
        self._files.load(find_policy(connection, version).sha256)

    def _policy(
        self, connection: Connection, problems: list[str]
    ) -> tuple[Activation | None, ServedPolicy | None]:
        """The newest activation whose policy loads: that before it serves on until then."""
        for each in history(connection):
            try:
                return each, self.load(connection, each.version)
            except PolicyFileError as error:
                problems.append(f"Policy {each.version} does not serve: {error}")
                serving = self.current
                if serving.activation is not None:
                    return serving.activation, serving.deciders.policy
        return None, None

    def _experiment(self, connection: Connection, problems: list[str]) -> RunningExperiment | None:
        row = connection.execute(
            select(experiments).where(experiments.c.stopped_at.is_(None))
        ).first()
        if row is None:
            return None
        running = self.current.deciders.experiment
        if running is not None and running.id == row.id:
            return running
        try:
            arms = tuple(
                Arm(arm["name"], arm["share"], self.load(connection, arm["version"]))
                for arm in json.loads(row.arms)
            )
        except PolicyFileError as error:
            problems.append(f"Experiment {row.name!r} does not run: {error}")
            return None
        return RunningExperiment(row.id, row.name, row.salt, arms)

    def _forget_others(self, deciders: Deciders) -> None:
        arms = () if deciders.experiment is None else deciders.experiment.arms
        used = [arm.served for arm in arms]
        used += [] if deciders.policy is None else [deciders.policy]
        self._loaded = {each.version: each for each in used}


def _fallback_problems(deciders: Deciders) -> list[str]:
    """A fallback dose that clients could not use, since what decides has other components."""
    dose, deciding = deciders.fallback_dose, deciders.deciding
    if dose is None or deciding is None or has_components(dose, deciding.components):
        return []
    return [
        f"The fallback dose {dose_name(dose)} does not serve: doses of policy {deciding.version} "
        f"have other components ({components_text(deciding.components)})."
    ]


def own_secret(database: Database, name: str) -> bytes:
    """A random secret of this database, made when it is first asked for."""
    wanted = select(secrets.c.value).where(secrets.c.name == name)
    with database.reading.connect() as connection:
        result = connection.execute(wanted).scalar()
    if result is None:
        try:
            with database.writing.begin() as connection:
                row = {"name": name, "value": random_source.token_hex(32)}
                connection.execute(secrets.insert(), [row])
        except IntegrityError:  # another process was faster
            pass
        with database.reading.connect() as connection:
            result = connection.execute(wanted).scalar_one()
    return bytes.fromhex(result)
