"""Plans in memory: right bytes in every encoding, and never more of them than the budget."""

import gzip

import zstandard

from api.services.plans.cache import PlanCache, ServedPlan, representations


def test_every_encoding_holds_the_same_plan_under_its_own_etag() -> None:
    served = representations(b"plan" * 100)
    bodies = {name: item.body for name, item in served.items()}
    assert bodies["identity"] == b"plan" * 100
    assert gzip.decompress(bodies["gzip"]) == b"plan" * 100
    assert zstandard.decompress(bodies["zstd"]) == b"plan" * 100
    etags = [item.etag for item in served.values()]
    assert len(set(etags)) == 3
    assert all(etag.startswith('"') and etag.endswith('"') for etag in etags)
    assert representations(b"plan" * 100) == served  # the same bytes after a restart
    assert representations(b"other")["zstd"].etag != served["zstd"].etag


def test_a_plan_is_loaded_once_and_the_oldest_goes_first() -> None:
    loads: list[str] = []

    def load(key: tuple[str, str]) -> bytes | None:
        loads.append(key[1])
        return None if key[1] == "none" else key[1].encode() * 1000

    one = ServedPlan(representations(b"a" * 1000)).num_bytes
    cache = PlanCache(load, max_bytes=2 * one)
    assert cache.get(("ads", "none")) is None
    for digest in ("a", "b", "a", "c"):
        assert cache.find(("ads", digest)) == digest.encode() * 1000
    assert loads == ["none", "a", "b", "c"]
    assert cache.peek(("ads", "b")) is None  # "a" was used after it
    assert cache.peek(("ads", "a")) is not None
    assert cache.peek(("ads", "c")) is not None


def test_a_plan_larger_than_the_budget_is_served_and_not_preserved() -> None:
    cache = PlanCache(lambda _: b"x" * 1000, max_bytes=10)
    assert cache.get(("ads", "a")).canonical == b"x" * 1000
    assert cache.peek(("ads", "a")) is None
