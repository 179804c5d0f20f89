"""Versions of channels say who made them, how, and which version a rollback brought back.

What there was is read from the audit trail, as far as that was kept. A rollback brought back the last version before
it with the same plan.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

key = sa.String().with_variant(sa.String(collation="C"), "postgresql")

history = sa.table(
    "channel_history",
    sa.column("tenant", key),
    sa.column("name", key),
    sa.column("version", sa.Integer),
    sa.column("plan_digest", key),
    sa.column("who", sa.String),
    sa.column("action", sa.String),
    sa.column("restored_version", sa.Integer),
)
audit = sa.table(
    "audit",
    sa.column("tenant", key),
    sa.column("who", sa.String),
    sa.column("action", sa.String),
    sa.column("subject", key),
    sa.column("after", sa.JSON),
)


def upgrade() -> None:
    """Add the columns, and fill them."""
    for name, kind in (("who", sa.String), ("action", sa.String), ("restored_version", sa.Integer)):
        op.add_column("channel_history", sa.Column(name, kind))
    connection = op.get_bind()
    changes = {
        (entry.tenant, entry.subject, entry.after["version"]): (entry.who, entry.action)
        for entry in connection.execute(
            sa.select(audit).where(audit.c.action.in_(("channel.promote", "channel.rollback")))
        )
    }
    #: By channel and plan, the last version that was made of it by a promotion, or brought back.
    last: dict[tuple[str, str, str], int] = {}
    rows = connection.execute(sa.select(history).order_by(history.c.tenant, history.c.name, history.c.version)).all()
    for row in rows:
        who, action = changes.get((row.tenant, f"channels/{row.name}", row.version), (None, None))
        plan = row.tenant, row.name, row.plan_digest
        restored = last.get(plan) if action == "channel.rollback" else None
        last[plan] = restored or row.version
        if action is not None:
            this = sa.and_(history.c.tenant == row.tenant, history.c.name == row.name, history.c.version == row.version)
            values = {"who": who, "action": action, "restored_version": restored}
            connection.execute(history.update().where(this).values(**values))
