"""How alembic runs our migrations: on the connection that `schema.upgrade` hands over."""

from alembic import context
from sqlalchemy import text

from doseforest.pricing.service.storage.service_tables import metadata

UPGRADE_LOCK = 0x646F7365  # "dose": of two services that start at once one upgrades

connection = context.config.attributes["connection"]
if connection.dialect.name == "postgresql":
    connection.execute(text(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})"))
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
