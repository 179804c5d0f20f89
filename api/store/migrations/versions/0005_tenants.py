"""Everything belongs to a tenant; what there was belongs to ``default``.

A table whose key gets the tenant is written again and filled from the old one, which is then dropped: the one way that
SQLite has. It takes as long, and meanwhile as much room again, as the documents of plans, statistics and measurements.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")
absent = sa.JSON(none_as_null=True)
metadata = sa.MetaData()


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant", key, primary_key=True)


def _plan() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["tenant", "plan_digest"], ["plans.tenant", "plans.digest"])


sa.Table("cost_model_documents", metadata, sa.Column("digest", key, primary_key=True))  # stays as it is

#: In an order in which each refers to those before it.
REBUILT = (
    sa.Table(
        "plans",
        metadata,
        _tenant(),
        sa.Column("digest", key, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    ),
    sa.Table(
        "plan_summaries",
        metadata,
        _tenant(),
        sa.Column("plan_digest", key, primary_key=True),
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
        sa.Index("plan_summaries_by_request", "request_digest"),
        sa.Index("plan_summaries_by_solve", "solve_id"),
        sa.Index("plan_summaries_by_time", "tenant", "created_at", "plan_digest"),
        sa.Index("plan_summaries_by_name", "tenant", "name", "created_at", "plan_digest"),
        sa.Index("plan_summaries_by_spec", "spec_digest"),
        _plan(),
    ),
    sa.Table(
        "channels",
        metadata,
        _tenant(),
        sa.Column("name", key, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("plan_digest", key, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        _plan(),
    ),
    sa.Table(
        "channel_history",
        metadata,
        _tenant(),
        sa.Column("name", key, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("plan_digest", key, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        _plan(),
    ),
    sa.Table(
        "statistics",
        metadata,
        _tenant(),
        sa.Column("digest", key, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("num_tables", sa.Integer, nullable=False),
        sa.Column("num_lookups", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    ),
    sa.Table(
        "measurements",
        metadata,
        _tenant(),
        sa.Column("digest", key, primary_key=True),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.Column("device", key, nullable=False),
        sa.Column("num_rows", sa.Integer, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("plan_digest", sa.String),
        sa.Column("comparison", absent),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Index("measurements_by_device", "tenant", "device", "digest"),
    ),
    sa.Table(
        "cost_models",
        metadata,
        _tenant(),
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
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Index("cost_models_by_digest", "digest"),
        sa.Index("cost_models_by_state", "state", "created_at"),
    ),
    sa.Table(
        "activations",
        metadata,
        _tenant(),
        sa.Column("profile", key, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("model_name", sa.String, nullable=False),
        sa.Column("model_version", sa.Integer, nullable=False),
        sa.Column("digest", key, sa.ForeignKey("cost_model_documents.digest"), nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    ),
    sa.Table(
        "request_keys",
        metadata,
        _tenant(),
        sa.Column("scope", key, primary_key=True),
        sa.Column("key", key, primary_key=True),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("resource", key, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Index("request_keys_by_time", "created_at"),
        sa.Index("request_keys_by_resource", "resource"),
    ),
    sa.Table(
        "audit",
        metadata,
        _tenant(),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("subject", key, nullable=False),
        sa.Column("before", absent),
        sa.Column("after", absent),
        sa.Column("request_id", sa.String),
        sa.Index("audit_by_subject", "tenant", "subject", "seq"),
    ),
)


def upgrade() -> None:
    """Give everything to ``default``."""
    for name in ("solves", "api_keys"):
        op.add_column(name, sa.Column("tenant", key, nullable=False, server_default="default"))
    op.create_index("solves_by_tenant", "solves", ["tenant", "id"])
    for table in REBUILT:
        for index in table.indexes:
            op.drop_index(str(index.name), table_name=table.name)
        # What refers to the table goes on to refer to it by its new name, so each is dropped after those.
        op.rename_table(table.name, f"old_{table.name}")
    for table in REBUILT:
        table.create(op.get_bind())
        names = ", ".join(f'"{column.name}"' for column in table.columns if column.name != "tenant")
        op.execute(f"INSERT INTO {table.name} (tenant, {names}) SELECT 'default', {names} FROM old_{table.name}")
    for table in reversed(REBUILT):
        op.drop_table(f"old_{table.name}")
