"""Lists of plans show the ranks of the job where a plan is for one of its sharding groups."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, which plans without sharding groups leave empty."""
    op.add_column("plan_summaries", sa.Column("job_world_size", sa.Integer))
