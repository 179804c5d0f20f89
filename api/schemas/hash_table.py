"""Hash tables of a spec: tables whose ids are given rows as they come."""

from typing import Annotated, Literal

from pydantic import Field

from api.schemas.base import StrictModel

HashTableModeName = Literal["zch", "mpzch", "dynamicemb", "hugectr"]
EvictionName = Literal[
    "none",
    "lfu",
    "lru",
    "distance_lfu",
    "single_ttl",
    "per_feature_ttl",
    "timestamp",
    "step",
    "timestamp_lfu",
    "customized",
]


class HashTableSpec(StrictModel):
    """How ids become slots of a table that has no fixed row for each id."""

    mode: HashTableModeName = Field(
        description="What finds the slot of an id: zch searches sorted ids (TorchRec's MCHManagedCollisionModule), "
        "mpzch probes slots (HashZchManagedCollisionModule), and of dynamicemb kernels find rows by key; hugectr is a "
        "dynamic table of HugeCTR (max_vocabulary_size -1).",
        examples=["mpzch"],
    )
    capacity: Annotated[int, Field(ge=1, le=2**40)] | None = Field(
        default=None,
        description="Slots over all ranks, each with a row; at least num_embeddings, the ids that are expected to hold "
        "one at a time. null means num_embeddings; hugectr has no other. Unit: slots.",
        examples=[50_000_000],
    )
    eviction: EvictionName = Field(
        default="none", description="Which ids lose their slots, if others need them.", examples=["single_ttl"]
    )
    eviction_interval: Annotated[int, Field(ge=1, le=10**6)] | None = Field(
        default=None, description="Steps from one eviction to the next, of zch. Unit: steps.", examples=[10]
    )
    bucket_size: Annotated[int, Field(ge=1, le=2**40)] | None = Field(
        default=None,
        description="Slots of a bucket, which lies whole on one rank, of mpzch and dynamicemb. null means one bucket "
        "per rank, of dynamicemb 128. Unit: slots.",
        examples=[50_000],
    )
    initial_capacity_per_rank: Annotated[int, Field(ge=1, le=2**40)] | None = Field(
        default=None,
        description="Slots that a rank begins with, of dynamicemb, which doubles them up to its share of the capacity. "
        "null means all of them. Unit: slots.",
        examples=[None],
    )
    max_probe: Annotated[int, Field(ge=1, le=2**20)] | None = Field(
        default=None,
        description="Slots that a lookup tries at most, of mpzch. null means 128. Unit: slots.",
        examples=[128],
    )
    metadata_bytes_per_slot: Annotated[int, Field(ge=0, le=2**16)] = Field(
        default=0,
        description="What the model keeps with every slot besides, of mpzch: 8 with track_id_freq, 8 for each of "
        "write_runtime_meta_dim. Unit: bytes.",
        examples=[0],
    )
