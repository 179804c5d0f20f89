"""Versions of channels may have a plan for each of several world sizes."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "channel_members",
        sa.Column("tenant", key, primary_key=True),
        sa.Column("name", key, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("world_size", sa.Integer, primary_key=True),
        sa.Column("plan_digest", key, nullable=False),
        sa.ForeignKeyConstraint(["tenant", "plan_digest"], ["plans.tenant", "plans.digest"]),
    )
