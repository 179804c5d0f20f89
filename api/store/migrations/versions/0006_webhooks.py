"""Webhooks, and what is to be sent to them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "webhooks",
        sa.Column("id", key, primary_key=True),
        sa.Column("tenant", key, nullable=False),
        sa.Column("url", sa.String, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("secret", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("disabled_reason", sa.String),
        sa.Column("num_failed_in_row", sa.Integer, nullable=False),
        sa.Column("num_dropped", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", key, primary_key=True),
        sa.Column("webhook_id", key, sa.ForeignKey("webhooks.id"), nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("body", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("due_at", sa.Float, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("error", sa.String),
        sa.Column("ended_at", sa.Float),
    )
    op.create_index("webhooks_by_tenant", "webhooks", ["tenant", "created_at"])
    op.create_index("webhook_deliveries_by_state", "webhook_deliveries", ["state"])
    op.create_index("webhook_deliveries_by_webhook", "webhook_deliveries", ["webhook_id", "state", "due_at", "id"])
