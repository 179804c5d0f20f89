"""Statistics documents: there and back, merged, and refused with place and reason."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from api.schemas.statistics import MAX_SKETCH_BYTES
from api.specs.input.json import RejectedDocument
from api.specs.references.statistics_document import Statistics, merge_statistics, parse_statistics
from planner.access.sketches.sketch import INDEX_BITS, OtherSketch
from planner.domain.formats.canonical_json import canonical_bytes, digest
from tests.support.planning.id_streams import in_batches, sketched, zipf
from tests.support.service.statistics_files import ROWS, document, idle, statistics
from tests.support.thorough import thorough


def test_there_and_back() -> None:
    given = statistics("b", "a")
    again = parse_statistics(given.canonical)
    assert again.canonical == given.canonical
    assert list(again.sketches) == ["a", "b"]
    assert again.document["statistics_digest"] == again.digest


def test_documents_in_another_order_with_white_space_have_the_same_digest() -> None:
    given = statistics("b", "a")
    content = {key: value for key, value in reversed(given.document.items()) if key != "statistics_digest"}
    content["tables"] = list(reversed(content["tables"]))  # type: ignore[call-overload]
    other = {**content, "statistics_digest": digest(content)}
    assert other["statistics_digest"] != given.digest
    again = parse_statistics(json.dumps(other, indent=1).encode())
    assert (again.digest, again.canonical) == (given.digest, given.canonical)
    assert again.digest == digest({key: value for key, value in again.document.items() if key != "statistics_digest"})


def test_a_table_that_is_never_looked_up() -> None:
    assert parse_statistics(idle("a").canonical).sketches["a"].lookups == 0


def test_documents_from_before_positions_keep_their_digest() -> None:
    """They lack the field, also in what was hashed."""
    content = {key: value for key, value in statistics("a", "b").document.items() if key != "statistics_digest"}
    content["tables"] = [
        {key: value for key, value in table.items() if key != "positions"}
        for table in content["tables"]  # type: ignore[attr-defined]
    ]
    old = parse_statistics(json.dumps({**content, "statistics_digest": digest(content)}).encode())
    assert old.digest == digest(content)
    assert old.sketches["a"].positions is None
    assert "positions" not in old.document["tables"][0]  # type: ignore[index]
    assert merge_statistics([old, statistics("c")]).sketches["c"].positions is not None


@thorough
def test_a_sketch_of_many_rows_stays_small() -> None:
    sketch = sketched([zipf(0.3, 3_000_000, 500_000, seed) for seed in range(5)])
    (table,) = Statistics(sketches={"t": sketch}).document["tables"]  # type: ignore[misc]
    assert 35_000 < len(canonical_bytes(table)) <= MAX_SKETCH_BYTES


def test_merged_documents() -> None:
    one, two = statistics("a", "b"), statistics("b", "c", seed=1)
    merged = merge_statistics([one, two])
    assert merged.canonical == merge_statistics([two, one]).canonical
    assert {name: sketch.lookups for name, sketch in merged.sketches.items()} == {"a": 20_000, "b": 40_000, "c": 20_000}
    with pytest.raises(OtherSketch, match="hash seeds 0, 1"):
        merge_statistics([one, statistics("z", hash_seed=1)])


def refusal(document: Mapping[str, Any], *, renew: bool = True) -> tuple[str, str]:
    """Place and reason of the first problem of a document, whose digest is made right."""
    if renew:
        content = {key: value for key, value in document.items() if key != "statistics_digest"}
        document = {**content, "statistics_digest": digest(content)}
    with pytest.raises(RejectedDocument) as caught:
        parse_statistics(json.dumps(document).encode())
    issue = caught.value.issues[0]
    return issue.pointer, issue.message


def edited(*path: str | int, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(document("a", "b")))
    target: Any = changed
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "where", "reason"),
    [
        (("schema_version",), 2, "/schema_version", "not one of the values"),
        (("tables", 1, "lookups"), 19_999, "/tables/1", "reuse.lookups sum to 20000, and the table has 19999"),
        (("tables", 1, "reuse", "rows", 0), 1, "/tables/1", "bin 0 of reuse"),
        (("tables", 1, "reuse", "rows"), [1], "/tables/1/reuse/rows", "too few items"),
        (("tables", 1, "name"), "a", "/tables/1", "stands twice"),
        (("tables", 0, "registers"), "AAAA", "/tables/0", "Expected 32768 registers"),
        (("tables", 0, "registers"), "!!!!", "/tables/0/registers", "characters"),
        (("tables", 0, "registers"), "AAA", "/tables/0/registers", "too short"),
        (("tables", 0, "registers"), "AAAAA", "/tables/0", "not base64"),
        (("tables", 0, "thinned", 0, "lookups"), 10**9, "/tables/0", "level 1"),
        (("tables", 0, "hot_rows", "rows", 0), ROWS + 1, "/tables/0", "hot rows of the table"),
        (("tables", 0, "windows", 3, 2), 10**9, "/tables/0", "windows of size 3"),
        (("hash_seed",), 5, "/tables/0", "the hottest first"),
        (("tables", 0, "lookups"), -1, "/tables/0/lookups", "below the least value"),
        (("tables", 0, "lookups"), 2**60, "/tables/0/lookups", "above the largest value"),
        (("tables",), [], "/tables", "too few items"),
    ],
)
def test_what_contradicts_itself_is_refused(path: tuple[str | int, ...], value: Any, where: str, reason: str) -> None:
    found = refusal(edited(*path, value=value))
    assert found[0] == where
    assert reason in found[1]


def test_a_sketch_that_packs_badly_is_refused() -> None:
    sketch = sketched(in_batches(zipf(0.0, 600_000, 700_000), 10_000))
    registers = (np.arange(2**INDEX_BITS) % 20).astype(np.uint8)  # equally often: 10 bits each, where lookups make 3
    given = Statistics(sketches={"a": idle("a").sketches["a"], "t": replace(sketch, table="t", registers=registers)})
    size = len(canonical_bytes(given.document["tables"][1]))  # type: ignore[index]
    assert refusal(given.document) == ("/tables/1", f'table "t": sketch of {size:,} bytes, 65,536 at most')


def test_a_digest_of_something_else_is_refused() -> None:
    where, reason = refusal(edited("statistics_digest", value="sha256:" + 64 * "0"), renew=False)
    assert where == "/statistics_digest"
    assert "its content has the digest" in reason
