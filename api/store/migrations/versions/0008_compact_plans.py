"""Plans are stored in compact form, which earlier releases cannot read; those that are there stay as they are."""

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change no table: the revision alone keeps earlier releases from plans that they cannot read."""
