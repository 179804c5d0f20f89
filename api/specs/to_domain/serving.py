"""The requests of a spec as values of the domain."""

from api.schemas.kv_cache import KvCacheSpec
from api.schemas.spec import ServingSpec
from planner.domain.problem.kv_cache import KvCache
from planner.domain.problem.serving import Serving

#: Bytes of a key or a value by type.
_ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
_KEY_AND_VALUE = 2


def serving_of(spec: ServingSpec) -> Serving:
    """Return the requests, and the cache of keys and values next to the tables."""
    return Serving(
        samples_per_request=spec.samples_per_request,
        requests_per_second=spec.requests_per_second,
        kv_cache=None if spec.kv_cache is None else _kv_cache(spec.kv_cache),
        utilization_limit=spec.utilization_limit,
        p99_seconds=spec.p99_seconds,
    )


def _kv_cache(spec: KvCacheSpec) -> KvCache:
    return KvCache(
        sizes_bytes=tuple(spec.sizes_bytes),
        bytes_per_token=_bytes_per_token(spec),
        tokens_per_user=spec.tokens_per_user,
        hit_rates=tuple(spec.hit_rates),
        recompute_seconds=spec.recompute_seconds,
    )


def _bytes_per_token(spec: KvCacheSpec) -> float:
    """Return the bytes of a token: as they are given, or a key and a value of each head of each layer."""
    if spec.shape is None:
        assert spec.bytes_per_token is not None, "the spec was checked"
        return spec.bytes_per_token
    shape = spec.shape
    return float(_KEY_AND_VALUE * shape.layers * shape.kv_heads * shape.head_dim * _ELEMENT_BYTES[shape.data_type])
