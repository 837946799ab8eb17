"""How alembic runs our migrations: on the connection that `schema.upgrade` hands over."""

from alembic import context
from sqlalchemy import text

from doseforest.pricing.service.storage.service_tables import metadata

connection = context.config.attributes["connection"]
lock = context.config.attributes["lock"]  # of two services that start at once one upgrades
if lock is not None:
    connection.execute(text(lock))
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
)
context.run_migrations()
