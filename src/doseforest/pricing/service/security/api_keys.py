"""API keys: ``df_<id>_<secret>`` with a random secret of 256 bits; only its hash is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets as random_source
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from doseforest.pricing.service.storage.service_tables import api_keys, now

PREFIX = "df"
# What each role may do. "admin" may do everything.
ROLES = {
    "decide": "ask for decisions and curves",
    "report": "report outcomes; read results, exports, metrics and the dashboard",
    "admin": "publish and activate policies, run experiments, and all of the above",
}
COMMAND = "command"  # in the place of a key's id: done on the command line
NOBODY = "0" * 64  # compared with where there is no such key, so that it takes as long


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as the service knows it: without its secret."""

    id: str
    digest: str  # SHA-256 of the secret, hexadecimal
    role: str
    name: str
    created_at: int
    revoked_at: int | None

    def may(self, role: str) -> bool:
        """Whether it may do what a role may."""
        return self.role in (role, "admin")


def digest_of(secret: str) -> str:
    """What is stored of a secret. It is random, so that a plain hash cannot be searched."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_key(connection: Connection, role: str, name: str) -> str:
    """Make a key and return it; it cannot be had again."""
    if role not in ROLES:
        raise ValueError(
            f"The 'role' parameter must be one of {', '.join(ROLES)}. Got {role!r} instead."
        )
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise ValueError(
            f"The 'name' parameter must have 1 to 100 printable characters. Got {name!r} instead."
        )
    key_id, secret = random_source.token_hex(4), random_source.token_urlsafe(32)
    row = {
        "id": key_id,
        "digest": digest_of(secret),
        "role": role,
        "name": name,
        "created_at": now(),
    }
    connection.execute(api_keys.insert(), [row])
    return f"{PREFIX}_{key_id}_{secret}"


def revoke_key(connection: Connection, key_id: str) -> None:
    """Make a key worthless; services notice within their refresh time."""
    done = connection.execute(
        api_keys.update()
        .where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now())
    )
    if done.rowcount == 0:
        raise ValueError(f"There is no key {key_id!r} that could be revoked.")


def list_keys(connection: Connection) -> list[ApiKey]:
    """Every key, revoked ones too, oldest first."""
    rows = connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
    return [ApiKey(**row) for row in rows.mappings()]


def find_key(keys: Mapping[str, ApiKey], presented: str | None) -> ApiKey | None:
    """The key that was presented, or None, whatever is wrong with it.

    Parameters
    ----------
    keys : mapping of id to ApiKey
        Those that are not revoked.
    presented : str, optional
        The value of the ``Authorization`` header.

    Examples
    --------
    >>> key = ApiKey("0a1b2c3d", digest_of("pepper"), "decide", "shop", 0, None)
    >>> find_key({key.id: key}, "Bearer df_0a1b2c3d_pepper").name
    'shop'
    >>> find_key({key.id: key}, "Bearer df_0a1b2c3d_salt") is None
    True
    """
    scheme, _, token = (presented or "").partition(" ")
    prefix, _, rest = token.strip().partition("_")
    key_id, _, secret = rest.partition("_")
    key = keys.get(key_id)
    stored = NOBODY if key is None else key.digest
    same = hmac.compare_digest(stored, digest_of(secret))
    well_formed = scheme.lower() == "bearer" and prefix == PREFIX
    return key if same and well_formed else None
