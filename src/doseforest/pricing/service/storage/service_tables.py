"""The tables. Times are whole milliseconds since 1970 in UTC; JSON is text, as it was sent."""

from __future__ import annotations

import time

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

from doseforest.policy.artifact.policy_decisions import ANSWERED

metadata = MetaData()

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),  # public: the first part of the key
    Column("digest", String(64), nullable=False),  # SHA-256 of the secret part, hexadecimal
    Column("role", String(16), nullable=False),
    Column("name", String(100), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)

policies = Table(
    "policies",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("sha256", String(64), nullable=False, unique=True),  # of the file, and its name
    Column("size", BigInteger, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("doses", Text, nullable=False),  # JSON: what it may give, numbers or objects
    Column("features", Text, nullable=False),  # JSON: names of the forest's features
    Column("profile", Text),  # JSON: how features were spread in training, for drift
    Column("note", String(200), nullable=False),
    Column("published_at", BigInteger, nullable=False),
    Column("published_by", String(16), nullable=False),  # id of a key, or "command"
)

activations = Table(  # the newest row is what serves
    "activations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("version", ForeignKey("policies.version"), nullable=False),
    Column("action", String(16), nullable=False),  # "activate" or "roll back"
    Column("at", BigInteger, nullable=False),
    Column("by", String(16), nullable=False),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("salt", String(64), nullable=False),
    Column("arms", Text, nullable=False),  # JSON: name, policy version, share of each
    Column("started_at", BigInteger, nullable=False),
    Column("stopped_at", BigInteger),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", String(32), primary_key=True),  # grows with time
    Column("at", BigInteger, nullable=False),
    Column("key_id", String(16), nullable=False),
    Column("version", Integer),  # of the policy; none where there was none
    Column("experiment_id", Integer),
    Column("arm", String(40)),
    Column("unit", String(32), nullable=False),  # keyed hash of the unit's id
    Column("cell", String(100), nullable=False),  # what an experiment assigns
    Column("features", Text, nullable=False),  # JSON
    Column("dose", Float),  # none where it has several components
    Column("doses", Text),  # JSON: a number for each component by name, where it has several
    Column("propensity", Float, nullable=False),  # of the dose, over arms and draws
    Column("propensities", Text, nullable=False),  # JSON: pairs of dose and probability
    Column("reason", String(24), nullable=False),
    Column("fallback", Boolean, nullable=False),
    *(Column(name, Float) for name in ANSWERED),
    Column("supported", Boolean),
    Index("decisions_at", "at"),
    Index("decisions_experiment", "experiment_id", "at"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("decision_id", ForeignKey("decisions.id", ondelete="CASCADE"), primary_key=True),
    Column("metric", String(40), primary_key=True),
    Column("value", Float, nullable=False),
    Column("at", BigInteger, nullable=False),
)

answers = Table(  # to requests with an idempotency key, to be given again
    "answers",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("token", String(100), primary_key=True),
    Column("fingerprint", String(64), nullable=False),  # SHA-256 of path and body
    Column("body", Text, nullable=False),
    Column("at", BigInteger, nullable=False, index=True),
)

secrets = Table(  # the service's own, such as the key of hashed unit ids
    "secrets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", String(64), nullable=False),
)


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
