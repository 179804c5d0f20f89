"""Hash tables of dynamicemb in a spec: what is accepted, and every refusal with its place, numbers and a way out."""

from typing import Any

import pytest

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from cost_models.errors import UnsupportedWork
from cost_models.vocabulary import Kernel
from planner.errors import InvalidProblem, Issue
from tests.support.service.specs import raw, tiny

KEYED = {"mode": "dynamicemb", "eviction": "timestamp"}


def table(name: str = "item", hash_table: dict[str, Any] | None = KEYED, **fields: Any) -> dict[str, Any]:
    given = {} if hash_table is None else {"hash_table": hash_table}
    return {"name": name, "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 2.0, **given, **fields}


def request_of(*tables: dict[str, Any], **changes: Any) -> SolveRequest:
    return parse_spec(raw(tiny(model__tables=list(tables), **{"runtime": "dynamicemb"} | changes)))


def issues_of(*tables: dict[str, Any], **changes: Any) -> tuple[Issue, ...]:
    with pytest.raises(InvalidProblem) as caught:
        request_of(*tables, **changes)
    return caught.value.issues


def one(*tables: dict[str, Any], **changes: Any) -> tuple[str, str, str]:
    """Pointer below the tables, message and hint of the only issue."""
    (issue,) = issues_of(*tables, **changes)
    return issue.pointer.removeprefix("/model/tables"), issue.message, issue.hint


def test_slots_need_be_no_whole_buckets() -> None:
    """And tables without a hash table may be in one module with those that have one."""
    keyed = {**KEYED, "capacity": 1201, "bucket_size": 64, "initial_capacity_per_rank": 100}
    of_users = {**KEYED, "bucket_size": 64}
    tables = table("item", keyed), table("country", None), table("user", of_users)
    request = request_of(*({**one, "module_path": "m"} for one in tables))
    found = request.problem.tables[0]
    assert found.num_embeddings == 1201
    assert found.hash_table is not None
    assert (found.hash_table.expected_rows, found.hash_table.initial_capacity_per_rank) == (1000, 100)
    assert request.problem.tables[2].hash_table_mode == "dynamicemb"


def test_what_the_seconds_rest_on() -> None:
    plain, keyed = request_of(table("country", None)), request_of(table(), table("country", None))
    subject = "model.tables.hash_table"
    assert [one.subject for one in plain.assumptions if one.subject == subject] == []
    (found,) = [one for one in keyed.assumptions if one.subject == subject]
    assert found.evidence == "estimated"
    assert "1 hash table by laws of 19 launches on one H100" in found.value
    assert found.source is not None
    assert "NVIDIA/recsys-examples at 43465ae" in found.source


def test_other_runtimes_have_no_such_tables() -> None:
    pointer, message, hint = one(table(), runtime="torchrec")
    assert pointer == "/0/hash_table/mode"
    assert message.startswith("the runtime torchrec has no dynamicemb: it has mpzch, zch")
    assert "use the runtime dynamicemb" in hint


def test_managed_collisions_are_not_dynamicembs() -> None:
    pointer, message, hint = one(table(hash_table={"mode": "zch", "eviction": "lfu", "eviction_interval": 10}))
    assert (pointer, hint) == ("/0/hash_table/mode", "use the runtime torchrec or torcheasyrec, or one of dynamicemb")
    assert "the runtime dynamicemb has no zch" in message


@pytest.mark.parametrize(
    ("changes", "pointer", "message", "hint"),
    [
        (
            {"eviction": "single_ttl"},
            "/eviction",
            "dynamicemb has no eviction single_ttl",
            "use timestamp, step, lfu, timestamp_lfu, customized, none",
        ),
        (
            {"max_probe": 64},
            "/max_probe",
            "max_probe 64 is of mpzch, and the mode is dynamicemb",
            "leave it out",
        ),
        (
            {"capacity": 999},
            "/capacity",
            "999 slots for 1,000 ids that are expected to hold one",
            "use at least 1000, or expect fewer (num_embeddings)",
        ),
        (
            {"bucket_size": 100},
            "",
            "the runtime dynamicemb cannot hold this hash table: buckets have a multiple of 16 slots, not 100",
            "use bucket_size 112",
        ),
        (
            {"initial_capacity_per_rank": 501},
            "",
            "the runtime dynamicemb cannot hold this hash table: initial_capacity_per_rank 501 exceeds the 500 slots of"
            " one of 2 ranks",
            "use at most 500, or leave it out",
        ),
    ],
)
def test_numbers_that_do_not_go_together(changes: dict[str, Any], pointer: str, message: str, hint: str) -> None:
    found = one(table(hash_table={**KEYED, **changes}), hardware__ranks_per_host=2)
    assert found == (f"/0/hash_table{pointer}", message, hint)


def test_fields_of_dynamicemb_are_refused_of_other_modes() -> None:
    zch = {"mode": "zch", "eviction": "lfu", "eviction_interval": 10, "initial_capacity_per_rank": 10}
    pointer, message, _ = one(table(hash_table=zch), runtime="torchrec")
    assert pointer == "/0/hash_table/initial_capacity_per_rank"
    assert message == "initial_capacity_per_rank 10 is of dynamicemb, and the mode is zch"


def test_tables_of_one_operator_agree() -> None:
    """All differences are listed, and each once."""
    some = {"constraints": {"cache_load_factors": [0.3]}}
    found = issues_of(
        table("a"),
        table("b", {**KEYED, "bucket_size": 256}, **some),
        table("c", module_path="other"),
        table("d", **some),
    )
    assert [issue.pointer.removeprefix("/model/tables") for issue in found] == [
        "/1/hash_table/bucket_size",
        "/1/constraints",
        "/3/constraints",
    ]
    assert 'table "b" has buckets of 256 slots, and "a" of the same operator of 128' in found[0].message
    assert found[0].hint == "use bucket_size 128, or another module_path"
    assert "hash_caching with cache_load_factor 0.1 or hash_caching with cache_load_factor 0.3" in found[1].message


def test_kernels_of_hash_tables_are_named_as_others_are() -> None:
    constraints = {"compute_kernels": ["hash_hybrid"], "cache_load_factors": [0.25]}
    request = request_of(table(constraints=constraints))
    assert request.problem.tables[0].constraints.compute_kernels == frozenset({Kernel.HASH_HYBRID})


def test_cost_models_without_a_formula_are_refused() -> None:
    with pytest.raises(UnsupportedWork, match='cost model "torchrec" cannot price kernel hash'):
        request_of(table(), cost_model="torchrec")
    large = table("country", None, num_embeddings=10**6)
    with pytest.raises(UnsupportedWork, match="kernel hash"):
        request_of(table(), large, cost_model="torchrec")
    bucket = {**KEYED, "bucket_size": 100}
    found = issues_of(table(), table("b", bucket), cost_model="torchrec")
    assert [issue.pointer for issue in found] == ["/model/tables/1/hash_table", "/cost_model"]


def test_tables_of_a_fixed_size_are_priced_by_every_model() -> None:
    assert request_of(table("country", None), cost_model="torchrec").problem.runtime == "dynamicemb"


def test_weights_beyond_all_memory_name_kernels_of_the_host() -> None:
    far = {"num_embeddings": 2**40, "embedding_dim": 128, "constraints": {"compute_kernels": ["hash"]}}
    (issue,) = issues_of(table(**far))
    assert issue.code == "table-too-large"
    assert "allow kernels of host memory (hash_caching)" in issue.hint
