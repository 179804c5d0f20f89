"""The tables of schema 3, from before there were revisions; a file of schema 2 gets those that it lacks."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

metadata = sa.MetaData()
#: PostgreSQL would else sort by the rules of a language, which differ between machines.
key = sa.String().with_variant(sa.String(collation="C"), "postgresql")
absent = sa.JSON(none_as_null=True)

sa.Table(
    "specs",
    metadata,
    sa.Column("request_digest", key, primary_key=True),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)
sa.Table(
    "solves",
    metadata,
    sa.Column("id", key, primary_key=True),
    sa.Column("request_digest", key, sa.ForeignKey("specs.request_digest"), nullable=False),
    sa.Column("spec_digest", key, nullable=False),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
    sa.Column("cancel_requested", sa.Boolean, nullable=False),
    sa.Column("assumptions", sa.JSON, nullable=False),
    sa.Column("warnings", sa.JSON, nullable=False),
    sa.Column("progress", absent),
    sa.Column("result", absent),
    sa.Column("error", absent),
    sa.Column("incumbent", sa.LargeBinary),
    sa.Index("solves_by_request", "request_digest"),
    sa.Index("solves_by_state", "state", "id"),
)
sa.Table(
    "plans",
    metadata,
    sa.Column("digest", key, primary_key=True),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)
sa.Table(
    "statistics",
    metadata,
    sa.Column("digest", key, primary_key=True),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("num_tables", sa.Integer, nullable=False),
    sa.Column("num_lookups", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)
sa.Table(
    "channels",
    metadata,
    sa.Column("name", key, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("plan_digest", key, sa.ForeignKey("plans.digest"), nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)
sa.Table(
    "channel_history",
    metadata,
    sa.Column("name", key, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("plan_digest", key, sa.ForeignKey("plans.digest"), nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)
sa.Table(
    "measurements",
    metadata,
    sa.Column("digest", key, primary_key=True),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("device", key, nullable=False),
    sa.Column("num_rows", sa.Integer, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("plan_digest", sa.String),
    sa.Column("comparison", absent),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Index("measurements_by_device", "device", "digest"),
)
sa.Table(
    "cost_model_documents",
    metadata,
    sa.Column("digest", key, primary_key=True),
    sa.Column("document", sa.LargeBinary, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)
sa.Table(
    "cost_models",
    metadata,
    sa.Column("name", key, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("digest", key, sa.ForeignKey("cost_model_documents.digest")),
    sa.Column("device", sa.String, nullable=False),
    sa.Column("figures", absent),
    sa.Column("request", absent),
    sa.Column("error", absent),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float),
    sa.Column("is_claimed", sa.Boolean, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Index("cost_models_by_digest", "digest"),
    sa.Index("cost_models_by_state", "state", "created_at"),
)
sa.Table(
    "activations",
    metadata,
    sa.Column("profile", key, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("model_name", sa.String, nullable=False),
    sa.Column("model_version", sa.Integer, nullable=False),
    sa.Column("digest", key, sa.ForeignKey("cost_model_documents.digest"), nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)


def upgrade() -> None:
    """Create the tables that are not there."""
    metadata.create_all(op.get_bind(), checkfirst=True)
