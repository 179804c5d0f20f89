"""Plans as they are served: ready bytes in every encoding, the latest in memory."""

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import zstandard

_ZSTD_LEVEL = 9
_GZIP_LEVEL = 6
ENCODINGS = ("zstd", "gzip", "identity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """The bytes of a plan in one encoding."""

    encoding: str
    body: bytes
    etag: str  # strong, with its quotes; differs by encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPlan:
    """A plan in all encodings."""

    digest: str
    canonical: bytes
    by_encoding: dict[str, Representation]

    @property
    def num_bytes(self) -> int:
        """Memory that it takes."""
        return len(self.canonical) + sum(len(item.body) for item in self.by_encoding.values())


def serve(digest: str, canonical: bytes) -> ServedPlan:
    """Compress a plan once, for all the times that it will be fetched."""
    name = hashlib.sha256(canonical).hexdigest()[:32]
    bodies = {
        "zstd": zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(canonical),
        "gzip": gzip.compress(canonical, _GZIP_LEVEL, mtime=0),
        "identity": canonical,
    }
    return ServedPlan(
        digest=digest,
        canonical=canonical,
        by_encoding={
            encoding: Representation(
                encoding=encoding,
                body=body,
                etag=f'"{name}"' if encoding == "identity" else f'"{name}-{encoding}"',
            )
            for encoding, body in bodies.items()
        },
    )


def tenant_key(tenant: str, key: str) -> str:
    """Return the key of a tenant's plan or slice in the memory that all tenants share."""
    return f"{tenant}/{key}"


def tenant_and_key(shared_key: str) -> tuple[str, str]:
    """Return the arguments of ``tenant_key``; names of tenants have no slash."""
    tenant, _, key = shared_key.partition("/")
    return tenant, key


def slice_key(digest: str, rank: int) -> str:
    """Return the key of the slice of a rank, in a cache of slices."""
    return f"{digest}#{rank}"


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How a cache is used."""

    num_hits: int
    num_misses: int
    num_bytes: int


class PlanCache:
    """The plans that were asked for last, within a budget of bytes. Thread safe."""

    def __init__(self, load: Callable[[str], bytes | None], *, max_bytes: int) -> None:
        self._load, self._max_bytes = load, max_bytes
        self._lock = threading.Lock()
        self._plans: OrderedDict[str, ServedPlan] = OrderedDict()
        self._num_bytes = self._num_hits = self._num_misses = 0

    def use(self) -> CacheUse:
        """Return what it has done so far, and the memory that it takes now."""
        with self._lock:
            return CacheUse(self._num_hits, self._num_misses, self._num_bytes)

    def peek(self, digest: str) -> ServedPlan | None:
        """Return a plan that is in memory; never waits."""
        with self._lock:
            found = self._plans.get(digest)
            if found is not None:
                self._plans.move_to_end(digest)
                self._num_hits += 1
            return found

    def find(self, digest: str) -> bytes | None:
        """Return the canonical bytes of a plan, ``None`` where there is none."""
        found = self.get(digest)
        return None if found is None else found.canonical

    def get(self, digest: str) -> ServedPlan | None:
        """Return a plan from memory or from the store, ``None`` where there is none."""
        found = self.peek(digest)
        if found is not None:
            return found
        canonical = self._load(digest)
        if canonical is None:
            return None
        loaded = serve(digest, canonical)
        with self._lock:
            self._num_misses += 1
            if digest not in self._plans and loaded.num_bytes <= self._max_bytes:
                self._plans[digest] = loaded
                self._num_bytes += loaded.num_bytes
                while self._num_bytes > self._max_bytes:
                    _, dropped = self._plans.popitem(last=False)
                    self._num_bytes -= dropped.num_bytes
        return loaded


class TenantPlans:
    """The plans or slices of one tenant, in the memory that all share. Thread safe."""

    def __init__(self, cache: PlanCache, tenant: str) -> None:
        self._cache, self._tenant = cache, tenant

    def peek(self, key: str) -> ServedPlan | None:
        """Return what is in memory; never waits."""
        return self._cache.peek(tenant_key(self._tenant, key))

    def get(self, key: str) -> ServedPlan | None:
        """Return what there is, from memory or from the store."""
        return self._cache.get(tenant_key(self._tenant, key))

    def find(self, key: str) -> bytes | None:
        """Return the canonical bytes of what there is."""
        return self._cache.find(tenant_key(self._tenant, key))
