"""Hardware profiles, releases and kinds of problems as documents."""

from operator import attrgetter
from typing import Annotated

from pydantic import BeforeValidator, Field

from api.schemas.base import Document

#: How well a number is known; of a profile the member of ``Evidence``.
EvidenceLabel = Annotated[str, BeforeValidator(attrgetter("label"))]


class NumberDocument(Document):
    """One number of a profile."""

    value: float = Field(description="Value, in the unit.")
    unit: str = Field(description="bytes, bytes_per_second or seconds.", examples=["bytes"])
    evidence: EvidenceLabel = Field(description="measured, given, datasheet or estimated.", examples=["measured"])
    source: str = Field(description="Who says so.")
    note: str = Field(default="", description="What else is known about it.")
    rows: int | None = Field(default=None, description="Measured rows that it rests on; null where nothing is known.")
    relative_error: float | None = Field(
        default=None, description="Part of itself by which it may be wrong; null where nothing is known."
    )


class CurveDocument(Document):
    """Bus bandwidth of one collective by message size."""

    message_bytes: list[float] = Field(description="Unit: bytes.")
    bus_bytes_per_second: list[float] = Field(description="Unit: bytes per second.")
    num_ranks: int = Field(description="Ranks that took part in the measurement.", examples=[8])
    evidence: EvidenceLabel = Field(description="How well it is known.", examples=["measured"])
    source: str = Field(description="Who says so.")


class ProfileSummary(Document):
    """A hardware profile, in short."""

    id: str = Field(description="What hardware.profile names.", examples=["dgx-h100-80g"])
    family: str = Field(description="gpu, tpu, cpu, inference or custom.", examples=["gpu"])
    description: str = Field(description="In words.")
    ranks_per_host: int = Field(description="Accelerators of one host.", examples=[8])


class ProfileList(Document):
    """All hardware profiles."""

    profiles: list[ProfileSummary]


class ProfileDocument(ProfileSummary):
    """A hardware profile with every number; all are per rank."""

    devices: list[str] = Field(
        description="Names that drivers have for its accelerators; empty where none is known.",
        examples=[["NVIDIA H100 80GB HBM3"]],
    )
    numbers: dict[str, NumberDocument]
    intra_host_curves: dict[str, CurveDocument]


class VersionDocument(Document):
    """What runs here."""

    name: str = Field(examples=["shardplan"])
    version: str = Field(description="Release of the service.")
    versions: dict[str, str] = Field(description="Releases of what it is made of.")


class HealthDocument(Document):
    """Whether the server is well."""

    status: str = Field(examples=["ok"])


class ProblemKindDocument(Document):
    """A kind of problem."""

    type: str = Field(description="Its URI on this server.")
    code: str = Field(description="Its stable code.")
    title: str = Field(description="In a few words.")
    status: int = Field(description="HTTP status.")
    retryable: bool = Field(description="Whether the same request may work later.")
    explanation: str = Field(description="What to do about it.")


class ExampleSummary(Document):
    """A body that can be posted as it is."""

    id: str = Field(description="Id of the example.", examples=["three-tables"])
    summary: str = Field(description="What it shows.", examples=["Three tables on one host"])
    method: str = Field(description="How it is sent.", examples=["POST"])
    path: str = Field(description="Where it is sent to.", examples=["/v1/solves"])
    url: str = Field(description="Where the body is.", examples=["/v1/examples/three-tables"])


class ExampleList(Document):
    """All examples, in an order in which they can be sent."""

    examples: list[ExampleSummary]
