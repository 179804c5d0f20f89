"""Runs revisions over the connection that ``api.store.migrations.run`` hands over, inside its transaction."""

from alembic import context

from api.store.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
