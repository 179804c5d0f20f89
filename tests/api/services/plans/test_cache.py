"""Plans in memory: right bytes in every encoding, and never more of them than the budget."""

import gzip

import zstandard

from api.services.plans.cache import PlanCache, serve


def test_every_encoding_holds_the_same_plan_under_its_own_etag() -> None:
    served = serve("sha256:1", b"plan" * 100)
    bodies = {name: item.body for name, item in served.by_encoding.items()}
    assert bodies["identity"] == b"plan" * 100
    assert gzip.decompress(bodies["gzip"]) == b"plan" * 100
    assert zstandard.decompress(bodies["zstd"]) == b"plan" * 100
    etags = [item.etag for item in served.by_encoding.values()]
    assert len(set(etags)) == 3
    assert all(etag.startswith('"') and etag.endswith('"') for etag in etags)
    assert serve("sha256:1", b"plan" * 100) == served  # the same bytes after a restart
    assert serve("sha256:1", b"other").by_encoding["zstd"].etag != served.by_encoding["zstd"].etag


def test_a_plan_is_loaded_once_and_the_oldest_goes_first() -> None:
    loads: list[str] = []

    def load(digest: str) -> bytes | None:
        loads.append(digest)
        return None if digest == "none" else b"x" * 1000

    one = serve("a", b"x" * 1000).num_bytes
    cache = PlanCache(load, max_bytes=2 * one)
    assert cache.get("none") is None
    for digest in ("a", "b", "a", "c"):
        assert cache.get(digest).digest == digest
    assert loads == ["none", "a", "b", "c"]
    assert cache.peek("b") is None  # "a" was used after it
    assert cache.peek("a") is not None
    assert cache.peek("c") is not None


def test_a_plan_larger_than_the_budget_is_served_and_not_preserved() -> None:
    cache = PlanCache(lambda _: b"x" * 1000, max_bytes=10)
    assert cache.get("a").canonical == b"x" * 1000
    assert cache.peek("a") is None
