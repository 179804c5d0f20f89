"""The tables of the database; ``migrations/versions`` has how each came to be."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)

metadata = MetaData()

#: PostgreSQL would else sort by the rules of a language, which differ between machines.
Key = String().with_variant(String(collation="C"), "postgresql")

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
    Index("solves_by_request", "request_digest"),
    Index("solves_by_state", "state", "id"),
)

plans = Table(
    "plans",
    metadata,
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("created_at", Float, nullable=False),
)

statistics = Table(
    "statistics",
    metadata,
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("num_tables", Integer, nullable=False),
    Column("num_lookups", BigInteger, nullable=False),
    Column("created_at", Float, nullable=False),
)

channels = Table(
    "channels",
    metadata,
    Column("name", Key, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("plan_digest", Key, ForeignKey("plans.digest"), nullable=False),
    Column("updated_at", Float, nullable=False),
)

channel_history = Table(
    "channel_history",
    metadata,
    Column("name", Key, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("plan_digest", Key, ForeignKey("plans.digest"), nullable=False),
    Column("updated_at", Float, nullable=False),
)

measurements = Table(
    "measurements",
    metadata,
    Column("digest", Key, primary_key=True),
    Column("document", LargeBinary, nullable=False),  # canonical bytes, zstd
    Column("device", Key, nullable=False),
    Column("num_rows", Integer, nullable=False),
    Column("source", String, nullable=False),
    Column("plan_digest", String),
    Column("comparison", JSON(none_as_null=True)),
    Column("created_at", Float, nullable=False),
    Index("measurements_by_device", "device", "digest"),
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
)
