"""Events of solves, what requests say in addition to their specs, keys of requests, and summaries of plans."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables; ``api.store.migrations.run`` summarises the plans that are there."""
    op.create_table(
        "solve_requests",
        sa.Column("solve_id", key, sa.ForeignKey("solves.id"), primary_key=True),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("deadline_at", sa.Float),
    )
    op.create_table(
        "solve_tags",
        sa.Column("solve_id", key, sa.ForeignKey("solves.id"), primary_key=True),
        sa.Column("tag", key, primary_key=True),
    )
    op.create_index("solve_tags_by_tag", "solve_tags", ["tag", "solve_id"])
    op.create_table(
        "request_keys",
        sa.Column("scope", key, primary_key=True),
        sa.Column("key", key, primary_key=True),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("resource", key, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )
    op.create_index("request_keys_by_time", "request_keys", ["created_at"])
    op.create_index("request_keys_by_resource", "request_keys", ["resource"])
    op.create_table(
        "solve_events",
        sa.Column("solve_id", key, sa.ForeignKey("solves.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("at_seconds", sa.Float, nullable=False),
        sa.Column("document", sa.JSON, nullable=False),
    )
    op.create_table(
        "plan_summaries",
        sa.Column("plan_digest", key, sa.ForeignKey("plans.digest"), primary_key=True),
        sa.Column("name", key, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("world_size", sa.Integer, nullable=False),
        sa.Column("hardware_profile", sa.String, nullable=False),
        sa.Column("cost_model", sa.String, nullable=False),
        sa.Column("objective_name", sa.String, nullable=False),
        sa.Column("objective_seconds", sa.Float, nullable=False),
        sa.Column("lower_bound_seconds", sa.Float, nullable=False),
        sa.Column("relative_gap", sa.Float),
        sa.Column("solve_id", key),
        sa.Column("spec_digest", key),
        sa.Column("request_digest", key),
    )
    op.create_index("plan_summaries_by_request", "plan_summaries", ["request_digest"])
    op.create_index("plan_summaries_by_solve", "plan_summaries", ["solve_id"])
    op.create_index("plan_summaries_by_time", "plan_summaries", ["created_at", "plan_digest"])
    op.create_index("plan_summaries_by_name", "plan_summaries", ["name", "created_at", "plan_digest"])
    op.create_index("plan_summaries_by_spec", "plan_summaries", ["spec_digest"])
