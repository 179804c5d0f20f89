"""Studies and their points."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "studies",
        sa.Column("id", key, primary_key=True),
        sa.Column("tenant", key, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("started_at", sa.Float),
        sa.Column("ended_at", sa.Float),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True)),
        sa.Column("error", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "study_points",
        sa.Column("study_id", key, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("key", key, primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("solve_id", key),
        sa.Column("is_own", sa.Boolean, nullable=False),
        sa.Column("outcome", sa.JSON(none_as_null=True)),
        sa.Column("plan_digest", key),
    )
    op.create_index("studies_by_tenant", "studies", ["tenant", "id"])
    op.create_index("studies_by_state", "studies", ["state", "id"])
    op.create_index("study_points_by_plan", "study_points", ["plan_digest"])
