"""What a plan document states of a cache of keys and values next to the tables."""

from typing import Annotated, TypedDict

from planner.output.documents.field_example import Example


class KvCacheSizeDocument(TypedDict):
    """A size of the cache that was considered."""

    bytes: Annotated[int, "Of every rank. Unit: bytes.", Example(4_000_000_000)]
    hit_rate: Annotated[float, "Share of requests that find their user in the cache.", Example(0.6)]
    seconds_per_request: Annotated[float, "Recomputation that a request has on average. Unit: seconds."]
    state: Annotated[
        str,
        "planned; ruled_out: no plan of this size is better than the best one; infeasible: there is none; or"
        " not_searched: the time was over.",
        Example("planned"),
    ]
    objective_seconds: Annotated[float | None, "Of its best plan; null if none was searched for. Unit: seconds."]
    lower_bound_seconds: Annotated[float, "No plan of this size is better; 0 where nothing is known. Unit: seconds."]
    detail: Annotated[str, "Why it has no plan."]


class KvCacheDocument(TypedDict):
    """What the cache takes and saves under a plan, and how other sizes compare."""

    bytes: Annotated[int, "Of every rank. Unit: bytes.", Example(4_000_000_000)]
    users: Annotated[float, "Users whose keys and values it holds, on all ranks together.", Example(50_000.0)]
    hit_rate: Annotated[float, "Share of requests that find their user in the cache.", Example(0.6)]
    recompute_seconds: Annotated[float, "Of a miss. Unit: seconds.", Example(0.008)]
    seconds_per_request: Annotated[
        float, "Recomputation that a request has on average, the phase kv_recompute. Unit: seconds."
    ]
    sizes: Annotated[
        list[KvCacheSizeDocument], "Every size that was considered; empty where the spec states one, and of scores."
    ]
