"""Which server or worker runs a solve or a fit, and which of them live."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the executors, and the columns that name them; fits are no longer claimed, they are run by the engine."""
    op.create_table(
        "executors",
        sa.Column("id", key, primary_key=True),
        sa.Column("life", sa.String, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("seen_at", sa.Float, nullable=False),
    )
    op.add_column("solves", sa.Column("executor_id", key))
    op.add_column("solves", sa.Column("attempts", sa.Integer, nullable=False, server_default="0"))
    op.drop_column("cost_models", "is_claimed")
    # Servers from before had a database to themselves: what ran in one runs no more.
    op.execute("UPDATE solves SET state = 'queued' WHERE state = 'running'")
