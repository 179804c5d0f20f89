"""The tables of the database; ``migrations/versions`` has how each came to be."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)

from api.store.tenants import DEFAULT_TENANT

metadata = MetaData()

#: PostgreSQL would else sort by the rules of a language, which differ between machines.
Key = String().with_variant(String(collation="C"), "postgresql")
#: A plan of the same tenant.
_PLAN = (["tenant", "plan_digest"], ["plans.tenant", "plans.digest"])

specs = Table(
    "specs",
    metadata,
    Column("request_digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("created_at", Float, nullable=False),
)

solves = Table(
    "solves",
    metadata,
    Column("id", Key, primary_key=True),  # sorts by time of creation
    Column("request_digest", Key, ForeignKey("specs.request_digest"), nullable=False),
    Column("spec_digest", Key, nullable=False),
    Column("name", String, nullable=False),
    Column("state", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    Column("assumptions", JSON, nullable=False),
    Column("warnings", JSON, nullable=False),
    Column("progress", JSON(none_as_null=True)),
    Column("result", JSON(none_as_null=True)),
    Column("error", JSON(none_as_null=True)),
    Column("executor_id", Key),  # who runs it, or ran it last
    Column("attempts", Integer, nullable=False, server_default="0"),  # how often it was begun
    Column("incumbent", LargeBinary),  # best plan so far, canonical bytes, zstd
    Column("tenant", Key, nullable=False, server_default=DEFAULT_TENANT),
    Index("solves_by_request", "request_digest"),
    Index("solves_by_state", "state", "id"),
    Index("solves_by_tenant", "tenant", "id"),
)

#: Priority and deadline of solves; without a row here, a solve has the defaults.
solve_requests = Table(
    "solve_requests",
    metadata,
    Column("solve_id", Key, ForeignKey("solves.id"), primary_key=True),
    Column("priority", Integer, nullable=False),
    Column("deadline_at", Float),
)

solve_tags = Table(
    "solve_tags",
    metadata,
    Column("solve_id", Key, ForeignKey("solves.id"), primary_key=True),
    Column("tag", Key, primary_key=True),
    Index("solve_tags_by_tag", "tag", "solve_id"),
)

#: Keys of requests, with what each has made.
request_keys = Table(
    "request_keys",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("scope", Key, primary_key=True),
    Column("key", Key, primary_key=True),
    Column("fingerprint", String, nullable=False),
    Column("resource", Key, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("request_keys_by_time", "created_at"),
    Index("request_keys_by_resource", "resource"),
)

#: What a solve has found while it ran; numbers grow and are never given twice.
solve_events = Table(
    "solve_events",
    metadata,
    Column("solve_id", Key, ForeignKey("solves.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("at_seconds", Float, nullable=False),
    Column("document", JSON, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("created_at", Float, nullable=False),
)

#: What lists show of plans, so that no document has to be unpacked for them.
plan_summaries = Table(
    "plan_summaries",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("plan_digest", Key, primary_key=True),
    Column("name", Key, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("world_size", Integer, nullable=False),
    Column("job_world_size", Integer),  # where it is not that of the plan, which is for one sharding group
    Column("hardware_profile", String, nullable=False),
    Column("cost_model", String, nullable=False),
    Column("objective_name", String, nullable=False),
    Column("objective_seconds", Float, nullable=False),
    Column("lower_bound_seconds", Float, nullable=False),
    Column("relative_gap", Float),
    Column("solve_id", Key),
    # of that solve, which may be deleted before the plan
    Column("spec_digest", Key),
    Column("request_digest", Key),
    Index("plan_summaries_by_request", "request_digest"),
    Index("plan_summaries_by_solve", "solve_id"),
    Index("plan_summaries_by_time", "tenant", "created_at", "plan_digest"),
    Index("plan_summaries_by_name", "tenant", "name", "created_at", "plan_digest"),
    Index("plan_summaries_by_spec", "spec_digest"),
    ForeignKeyConstraint(*_PLAN),
)

statistics = Table(
    "statistics",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("num_tables", Integer, nullable=False),
    Column("num_lookups", BigInteger, nullable=False),
    Column("created_at", Float, nullable=False),
)

#: Questions that take many plans.
studies = Table(
    "studies",
    metadata,
    Column("id", Key, primary_key=True),  # sorts by time of creation
    Column("tenant", Key, nullable=False),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("document", LargeBinary, nullable=False),  # the request, zstd
    Column("state", String, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("cancel_requested", Boolean, nullable=False),
    Column("attempts", Integer, nullable=False),  # how often it was begun
    Column("answer", JSON(none_as_null=True)),
    Column("error", JSON(none_as_null=True)),
    Index("studies_by_tenant", "tenant", "id"),
    Index("studies_by_state", "state", "id"),
)

study_points = Table(
    "study_points",
    metadata,
    Column("study_id", Key, ForeignKey("studies.id"), primary_key=True),
    Column("key", Key, primary_key=True),
    Column("seq", Integer, nullable=False),  # in the order in which points were asked for
    Column("labels", JSON, nullable=False),
    Column("solve_id", Key),  # which may be deleted before the study
    Column("is_own", Boolean, nullable=False),  # whether the solve was submitted for the study
    Column("outcome", JSON(none_as_null=True)),  # None until the point has ended
    Column("plan_digest", Key),
    Index("study_points_by_plan", "plan_digest"),
)

channels = Table(
    "channels",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("name", Key, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("plan_digest", Key, nullable=False),
    Column("updated_at", Float, nullable=False),
    ForeignKeyConstraint(*_PLAN),
)

channel_history = Table(
    "channel_history",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("name", Key, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("plan_digest", Key, nullable=False),
    Column("updated_at", Float, nullable=False),
    # Of versions from before the audit trail, or older than it is kept, who and how are not known.
    Column("who", String),
    Column("action", String),
    Column("restored_version", Integer),
    ForeignKeyConstraint(*_PLAN),
)

#: Plans by world size, of versions that have several; the plan of the version itself is one of them.
channel_members = Table(
    "channel_members",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("name", Key, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("world_size", Integer, primary_key=True, autoincrement=False),
    Column("plan_digest", Key, nullable=False),
    ForeignKeyConstraint(*_PLAN),
)

measurements = Table(
    "measurements",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("device", Key, nullable=False),
    Column("num_rows", Integer, nullable=False),
    Column("source", String, nullable=False),
    Column("plan_digest", String),
    Column("comparison", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    Index("measurements_by_device", "tenant", "device", "digest"),
)

cost_model_documents = Table(
    "cost_model_documents",
    metadata,
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("created_at", Float, nullable=False),
)

cost_models = Table(
    "cost_models",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("name", Key, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", String, nullable=False),
    Column("digest", Key, ForeignKey("cost_model_documents.digest")),
    Column("device", String, nullable=False),
    Column("figures", JSON(none_as_null=True)),
    Column("request", JSON(none_as_null=True)),
    Column("error", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("attempts", Integer, nullable=False),
    Index("cost_models_by_digest", "digest"),
    Index("cost_models_by_state", "state", "created_at"),
)

#: Every model that was active for a profile; the last version is.
activations = Table(
    "activations",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("profile", Key, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("model_name", String, nullable=False),
    Column("model_version", Integer, nullable=False),
    Column("digest", Key, ForeignKey("cost_model_documents.digest"), nullable=False),
    Column("updated_at", Float, nullable=False),
)

#: Processes that run solves and fits; times are those of the database's own clock.
executors = Table(
    "executors",
    metadata,
    Column("id", Key, primary_key=True),
    Column("life", String, nullable=False),  # differs for every start of a process
    Column("host", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("seen_at", Float, nullable=False),
    info={"of_processes": True},  # nothing that would be true after a restore
)

#: Keys that callers show.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String, nullable=False),
    Column("secret_digest", String, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("last_used_at", Float),
    Column("revoked_at", Float),
    Column("tenant", Key, nullable=False, server_default=DEFAULT_TENANT),
)

#: What was changed, by whom; numbers of a tenant have no gaps.
audit = Table(
    "audit",
    metadata,
    Column("tenant", Key, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("who", String, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", Key, nullable=False),
    Column("before", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    Column("request_id", String),
    Index("audit_by_subject", "tenant", "subject", "seq"),
)

#: Addresses to which events are sent.
webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Key, primary_key=True),
    Column("tenant", Key, nullable=False),
    Column("url", String, nullable=False),
    Column("events", JSON, nullable=False),
    Column("name", String, nullable=False),
    Column("secret", String, nullable=False),  # as it is, because it signs
    Column("state", String, nullable=False),
    Column("disabled_reason", String),
    Column("num_failed_in_row", Integer, nullable=False),
    Column("num_dropped", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Index("webhooks_by_tenant", "tenant", "created_at"),
)

#: Messages to them, waiting and ended; times but created_at are those of the clock of the database.
webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("id", Key, primary_key=True),
    Column("webhook_id", Key, ForeignKey("webhooks.id"), nullable=False),
    Column("event", String, nullable=False),
    Column("body", String, nullable=False),
    Column("state", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("due_at", Float, nullable=False),  # of the next attempt, or until when one may take that runs
    Column("status", Integer),
    Column("error", String),
    Column("ended_at", Float),
    Index("webhook_deliveries_by_state", "state"),
    Index("webhook_deliveries_by_webhook", "webhook_id", "state", "due_at", "id"),
)
