"""Runs revisions over the connection that ``api.store.migrate`` hands over, inside its transaction."""

from alembic import context

from api.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
