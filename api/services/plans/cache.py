"""Plans as they are served: ready bytes in every encoding, the latest in memory."""

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import zstandard

from api.services.plans.forms import COMPACT, Form, shards_in

_ZSTD_LEVEL = 9
_GZIP_LEVEL = 6
ENCODINGS = ("zstd", "gzip", "identity")

PlanKey = tuple[str, str, Form]  # tenant, digest and form
SliceKey = tuple[str, str, int]  # tenant, digest and rank
Key = TypeVar("Key", bound=PlanKey | SliceKey)


@dataclass(frozen=True, slots=True, kw_only=True)
class Representation:
    """The bytes of a document in one encoding."""

    encoding: str
    body: bytes
    etag: str  # strong, with its quotes; differs by encoding


def representations(content: bytes) -> dict[str, Representation]:
    """Compress a document once, for all the times that it will be fetched."""
    name = hashlib.sha256(content).hexdigest()[:32]
    bodies = {
        "zstd": zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(content),
        "gzip": gzip.compress(content, _GZIP_LEVEL, mtime=0),
        "identity": content,
    }
    return {
        encoding: Representation(
            encoding=encoding, body=body, etag=f'"{name}"' if encoding == "identity" else f'"{name}-{encoding}"'
        )
        for encoding, body in bodies.items()
    }


@dataclass(frozen=True)
class ServedPlan:
    """A plan, or the slice of a rank, in all encodings."""

    by_encoding: Mapping[str, Representation]

    @cached_property
    def num_shards(self) -> int:
        """Number of shards of a plan in compact form, which is counted once for all fetches."""
        return shards_in(self.canonical)

    @property
    def canonical(self) -> bytes:
        return self.by_encoding["identity"].body

    @property
    def num_bytes(self) -> int:
        return len(self.canonical) + sum(len(item.body) for item in self.by_encoding.values())


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How a cache is used."""

    num_hits: int
    num_misses: int
    num_bytes: int


class PlanCache(Generic[Key]):
    """The plans or slices of all tenants that were fetched last, within a budget of bytes. Thread safe."""

    def __init__(self, load: Callable[[Key], bytes | None], *, max_bytes: int) -> None:
        self._load, self._max_bytes = load, max_bytes
        self._lock = threading.Lock()
        self._plans: OrderedDict[Key, ServedPlan] = OrderedDict()
        self._num_bytes = self._num_hits = self._num_misses = 0

    def use(self) -> CacheUse:
        """Return what it has done so far, and the memory that it takes now."""
        with self._lock:
            return CacheUse(self._num_hits, self._num_misses, self._num_bytes)

    def peek(self, key: Key) -> ServedPlan | None:
        """Return a plan that is in memory; never waits."""
        with self._lock:
            found = self._plans.get(key)
            if found is not None:
                self._plans.move_to_end(key)
                self._num_hits += 1
            return found

    def find(self, key: Key) -> bytes | None:
        """Return the canonical bytes of a plan, ``None`` if there is none."""
        found = self.get(key)
        return None if found is None else found.canonical

    def get(self, key: Key) -> ServedPlan | None:
        """Return a plan from memory or from the store, ``None`` if there is none."""
        found = self.peek(key)
        if found is not None:
            return found
        canonical = self._load(key)
        if canonical is None:
            return None
        loaded = ServedPlan(representations(canonical))
        with self._lock:
            self._num_misses += 1
            if key not in self._plans and loaded.num_bytes <= self._max_bytes:
                self._plans[key] = loaded
                self._num_bytes += loaded.num_bytes
                while self._num_bytes > self._max_bytes:
                    _, dropped = self._plans.popitem(last=False)
                    self._num_bytes -= dropped.num_bytes
        return loaded


class TenantPlans:
    """The plans of one tenant, or their slices for single ranks, in the memory that all tenants share. Thread safe."""

    def __init__(self, plans: PlanCache[PlanKey], slices: PlanCache[SliceKey], tenant: str) -> None:
        self._plans, self._slices, self._tenant = plans, slices, tenant

    def peek(self, digest: str, rank: int | None = None, *, form: Form = COMPACT) -> ServedPlan | None:
        """Return what is in memory; never waits. The slice of a rank has one form."""
        if rank is None:
            return self._plans.peek((self._tenant, digest, form))
        return self._slices.peek((self._tenant, digest, rank))

    def get(self, digest: str, rank: int | None = None, *, form: Form = COMPACT) -> ServedPlan | None:
        """Return a plan or slice, from memory or from the store; ``None`` if there is none."""
        if rank is None:
            return self._plans.get((self._tenant, digest, form))
        return self._slices.get((self._tenant, digest, rank))

    def find(self, digest: str) -> bytes | None:
        """Return the canonical bytes of the compact form of a plan, ``None`` if there is none."""
        return self._plans.find((self._tenant, digest, COMPACT))
