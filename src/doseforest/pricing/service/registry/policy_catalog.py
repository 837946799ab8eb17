"""Which policies there are and which one serves, as rows of the database."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from doseforest.pricing.service.registry.policy_files import PolicyFiles
from doseforest.pricing.service.registry.served_policy import ServedPolicy
from doseforest.pricing.service.served_doses import Components, Dose, components_of
from doseforest.pricing.service.storage.service_tables import activations, now, policies

ACTIVATE, ROLL_BACK = "activate", "roll back"


class UnknownPolicyError(Exception):
    """There is no such policy, or nothing to roll back to."""


@dataclass(frozen=True, slots=True)
class PublishedPolicy:
    """A policy as the database knows it."""

    version: int
    sha256: str
    size: int
    kind: str
    doses: list[Dose]
    features: list[str]
    profile: dict[str, Any] | None
    note: str
    published_at: int
    published_by: str

    @property
    def components(self) -> Components:
        """Names of the components of its doses, where they have several."""
        return components_of(self.doses[0])


@dataclass(frozen=True, slots=True)
class Activation:
    """A moment from which on a policy served."""

    id: int
    version: int
    action: str
    at: int
    by: str


def describe(files: PolicyFiles, digest: str) -> dict[str, Any]:
    """What is stored of a policy, read from its file."""
    served = ServedPolicy(0, files.load(digest))
    return {
        "sha256": digest,
        "size": len(files.read(digest)),
        "kind": served.kind,
        "doses": json.dumps(served.named_doses),
        "features": json.dumps(list(served.needed.names)),
    }


def publish(
    connection: Connection,
    described: dict[str, Any],
    *,
    note: str,
    by: str,
    profile: dict[str, Any] | None = None,
) -> int:
    """Register a policy and return its version; the same file keeps the version that it has."""
    result = connection.execute(
        select(policies.c.version).where(policies.c.sha256 == described["sha256"])
    ).scalar()
    if result is not None:
        return int(result)
    row = {
        **described,
        "note": note,
        "profile": None if profile is None else json.dumps(profile),
        "published_at": now(),
        "published_by": by,
    }
    inserted = connection.execute(policies.insert().returning(policies.c.version), row)
    return int(inserted.scalar_one())


def activate(connection: Connection, version: int, *, by: str, action: str = ACTIVATE) -> int:
    """Let a policy serve from now on; returns its version."""
    find_policy(connection, version)
    row = {"version": version, "action": action, "at": now(), "by": by}
    connection.execute(activations.insert(), row)
    return version


def roll_back(connection: Connection, *, by: str) -> int:
    """Let the policy serve that served before the active one; returns its version.

    Rolling back twice goes back by two: what was rolled back is not gone back to.
    """
    return activate(connection, previous_version(connection), by=by, action=ROLL_BACK)


def previous_version(connection: Connection) -> int:
    """What rolling back would activate."""
    served: list[int] = []  # as if what was rolled back had never been
    for each in reversed(history(connection)):
        if each.action == ROLL_BACK:
            while served and served[-1] != each.version:
                served.pop()
        elif not served or served[-1] != each.version:
            served.append(each.version)
    if len(served) < 2:
        raise UnknownPolicyError("There is no earlier policy to roll back to.")
    return served[-2]


def history(connection: Connection) -> list[Activation]:
    """All activations, the newest first."""
    rows = connection.execute(select(activations).order_by(activations.c.id.desc()))
    return [Activation(**row) for row in rows.mappings()]


def find_policy(connection: Connection, version: int) -> PublishedPolicy:
    """A policy by its version."""
    rows = connection.execute(select(policies).where(policies.c.version == version))
    row = rows.mappings().first()
    if row is None:
        raise UnknownPolicyError(f"There is no policy of version {version}.")
    return _published(row)


def list_policies(connection: Connection) -> list[PublishedPolicy]:
    """All policies, the newest first."""
    rows = connection.execute(select(policies).order_by(policies.c.version.desc()))
    return [_published(row) for row in rows.mappings()]


def _published(row: Any) -> PublishedPolicy:
    plain = dict(row)
    for name in ("doses", "features", "profile"):
        plain[name] = None if plain[name] is None else json.loads(plain[name])
    return PublishedPolicy(**plain)
