"""Experiments, and the arm of each decision."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table and the columns; decisions so far were of no experiment."""
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("arms", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("stopped_at", sa.BigInteger),
    )
    op.add_column("decisions", sa.Column("experiment_id", sa.Integer))
    op.add_column("decisions", sa.Column("arm", sa.String(40)))
    op.create_index("decisions_experiment", "decisions", ["experiment_id", "at"])
