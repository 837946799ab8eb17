"""Doses of several components."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add their column, and let the column of plain doses be empty where it is used."""
    op.add_column("decisions", sa.Column("doses", sa.Text))
    if op.get_bind().dialect.name == "sqlite":
        # SQLite cannot change a column, and a table that was made anew would lose its outcomes.
        op.add_column("decisions", sa.Column("own_dose", sa.Float))
        op.execute("UPDATE decisions SET own_dose = dose")
        op.drop_column("decisions", "dose")
        op.execute("ALTER TABLE decisions RENAME COLUMN own_dose TO dose")
    else:
        op.alter_column("decisions", "dose", nullable=True)
