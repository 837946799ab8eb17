"""Keys, policies, decisions, outcomes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("revoked_at", sa.BigInteger),
    )
    op.create_table(
        "policies",
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("doses", sa.Text, nullable=False),
        sa.Column("features", sa.Text, nullable=False),
        sa.Column("profile", sa.Text),
        sa.Column("note", sa.String(200), nullable=False),
        sa.Column("published_at", sa.BigInteger, nullable=False),
        sa.Column("published_by", sa.String(16), nullable=False),
    )
    op.create_table(
        "activations",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("version", sa.Integer, sa.ForeignKey("policies.version"), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("by", sa.String(16), nullable=False),
    )
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer),
        sa.Column("unit", sa.String(32), nullable=False),
        sa.Column("cell", sa.String(100), nullable=False),
        sa.Column("features", sa.Text, nullable=False),
        sa.Column("dose", sa.Float, nullable=False),
        sa.Column("propensity", sa.Float, nullable=False),
        sa.Column("propensities", sa.Text, nullable=False),
        sa.Column("reason", sa.String(24), nullable=False),
        sa.Column("fallback", sa.Boolean, nullable=False),
        sa.Column("effect", sa.Float),
        sa.Column("low", sa.Float),
        sa.Column("high", sa.Float),
        sa.Column("value", sa.Float),
        sa.Column("cost", sa.Float),
        sa.Column("shadow_price", sa.Float),
        sa.Column("supported", sa.Boolean),
    )
    op.create_index("decisions_at", "decisions", ["at"])
    op.create_table(
        "outcomes",
        sa.Column(
            "decision_id",
            sa.String(32),
            sa.ForeignKey("decisions.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("metric", sa.String(40), primary_key=True),
        sa.Column("value", sa.Float, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("key_id", sa.String(16), primary_key=True),
        sa.Column("token", sa.String(100), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_answers_at", "answers", ["at"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.String(64), nullable=False),
    )
