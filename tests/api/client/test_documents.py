"""The client's own canonical bytes and digests, against the service's."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.client import UnexpectedAnswer, canonical_bytes, parse_plan, plan_digest
from planner.domain.formats import canonical_json as canonical
from tests.support.client.plans import tiny_bytes, tiny_plan

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé\U0001f680\n"'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(JSON)
def test_canonical_bytes_are_the_services(document: object) -> None:
    assert canonical_bytes(document) == canonical.canonical_bytes(document)


@given(JSON, JSON)
def test_digest_is_the_services(table_extra: object, shard_extra: object) -> None:
    plan = tiny_plan()
    plan["tables"][0]["extra"] = table_extra
    plan["tables"][0]["shards"][0]["extra"] = shard_extra
    assert plan_digest(plan) == canonical.plan_digest(plan)


def _timing(plan: dict) -> None:
    plan["provenance"]["solver_seconds"] = 99.0


def _bytes(plan: dict) -> None:
    plan["tables"][0]["shards"][0]["bytes"] = 10


def _rank(plan: dict) -> None:
    plan["tables"][0]["shards"][0]["rank"] = 0


def _world(plan: dict) -> None:
    plan["world_size"] = 4


@pytest.mark.parametrize(("change", "same"), [(_timing, True), (_bytes, True), (_rank, False), (_world, False)])
def test_digest_covers_what_determines_training(change: Callable[[dict], None], same: bool) -> None:
    plan = tiny_plan()
    change(plan)
    assert (plan_digest(plan) == plan["plan_digest"]) is same


def test_parse_plan_gives_the_document_and_its_digest() -> None:
    document, digest = parse_plan(tiny_bytes())
    assert document == tiny_plan()
    assert digest == tiny_plan()["plan_digest"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "not valid JSON"),
        (tiny_bytes()[:-1], "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a": 1, "a": 2}', "stands twice"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"schema_version": 2}', "schema_version 2; this client reads 1"),
        (b'{"schema_version": 1}', "not a plan document"),
        (tiny_bytes().replace(b'"shards":[', b'"shards":[7,'), "not a plan document"),
    ],
)
def test_parse_plan_refuses(content: bytes, message: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=message):
        parse_plan(content)
