"""Hash tables of a spec: what is accepted, and every refusal with its place, its numbers and a way out."""

from typing import Any

import pytest

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.errors import InvalidProblem, Issue
from tests.support.service.specs import raw, tiny

ZCH = {"mode": "zch", "eviction": "lfu", "eviction_interval": 10}
MPZCH = {"mode": "mpzch"}


def table(hash_table: dict[str, Any] | None = None, name: str = "item", **fields: Any) -> dict[str, Any]:
    given = {} if hash_table is None else {"hash_table": hash_table}
    return {"name": name, "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 2.0, **given, **fields}


def request_of(*tables: dict[str, Any], **changes: Any) -> SolveRequest:
    return parse_spec(raw(tiny(model__tables=list(tables), **changes)))


def issues_of(*tables: dict[str, Any], **changes: Any) -> tuple[Issue, ...]:
    with pytest.raises(InvalidProblem) as caught:
        request_of(*tables, **changes)
    return caught.value.issues


def one(*tables: dict[str, Any], **changes: Any) -> tuple[str, str, str]:
    """Pointer below the first table, message and hint of the only issue."""
    (issue,) = issues_of(*tables, **changes)
    return issue.pointer.removeprefix("/model/tables/0"), issue.message, issue.hint


def test_slots_are_the_rows_that_are_planned() -> None:
    request = request_of(table({**MPZCH, "capacity": 1600, "bucket_size": 100, "eviction": "lru"}), table(ZCH, "user"))
    probed, sorted_ = request.problem.tables
    assert (probed.num_embeddings, sorted_.num_embeddings) == (1600, 1000)
    assert probed.hash_table is not None
    assert (probed.hash_table.expected_rows, probed.hash_table.bucket_size, probed.hash_table.max_probe) == (
        1000,
        100,
        128,
    )
    assert sorted_.hash_table is not None
    assert (sorted_.hash_table.eviction_interval, sorted_.hash_table.max_probe) == (10, None)
    assert probed.ids == "hashed"


def test_a_spec_without_hash_tables_is_the_same_spec() -> None:
    plain = request_of(table())
    assert "hash_table" not in str(plain.spec)
    assert request_of(table(ZCH)).spec_digest != plain.spec_digest


def test_a_stored_spec_is_read_again() -> None:
    request = request_of(table({**MPZCH, "capacity": 1600, "bucket_size": 100}))
    again = parse_spec(raw(request.spec))
    assert (again.spec_digest, again.problem.tables) == (request.spec_digest, request.problem.tables)


@pytest.mark.parametrize(
    ("hash_table", "pointer", "message", "hint"),
    [
        (
            {**ZCH, "capacity": 999},
            "capacity",
            "999 slots for 1,000 ids that are expected to hold one",
            "use at least 1000, or expect fewer (num_embeddings)",
        ),
        (
            {**ZCH, "eviction": "single_ttl"},
            "eviction",
            "zch has no eviction single_ttl",
            "use lfu, lru, distance_lfu",
        ),
        ({**ZCH, "eviction": "none"}, "eviction", "zch has no eviction none", "use lfu, lru, distance_lfu"),
        ({"mode": "zch", "eviction": "lru"}, "eviction_interval", "zch needs eviction_interval", "add it"),
        (
            {**ZCH, "bucket_size": 10},
            "bucket_size",
            "bucket_size 10 is of mpzch and dynamicemb, and the mode is zch",
            "leave it out",
        ),
        (
            {**MPZCH, "eviction_interval": 10},
            "eviction_interval",
            "eviction_interval 10 is of zch, and the mode is mpzch",
            "leave it out",
        ),
        (
            {**MPZCH, "metadata_bytes_per_slot": 12},
            "metadata_bytes_per_slot",
            "12 bytes are no whole int64 numbers",
            "use a multiple of 8",
        ),
        (
            {**MPZCH, "bucket_size": 300},
            "bucket_size",
            "1,000 slots are no whole number of buckets of 300",
            "use num_embeddings 1200",
        ),
        (
            {**MPZCH, "capacity": 1001},
            "capacity",
            "1,001 slots are no whole number of slots for each of 2 ranks",
            "use 1002",
        ),
        (
            {**MPZCH, "bucket_size": 200},
            "bucket_size",
            "5 buckets of 200 slots are no whole number for each of 2 ranks",
            "use num_embeddings 1200, or leave bucket_size out",
        ),
    ],
)
def test_refusals_say_where_what_and_the_way_out(
    hash_table: dict[str, Any], pointer: str, message: str, hint: str
) -> None:
    assert one(table(hash_table)) == (f"/hash_table/{pointer}", message, hint)


def test_all_mistakes_are_in_one_answer() -> None:
    wrong = {**MPZCH, "capacity": 900, "eviction": "lfu", "eviction_interval": 3, "metadata_bytes_per_slot": 5}
    found = {issue.pointer.rsplit("/", 1)[1] for issue in issues_of(table(wrong))}
    assert found == {"capacity", "eviction", "eviction_interval", "metadata_bytes_per_slot"}


def test_every_rank_has_a_slot() -> None:
    few = table({**ZCH}, num_embeddings=9)
    pointer, message, hint = one(few, hardware={"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8})
    assert (pointer, hint) == ("/num_embeddings", "use at least 16")
    assert message == "9 slots in blocks of 2 leave one of 8 ranks without any"


@pytest.mark.parametrize("runtime", ["generic", "distributed_embeddings"])
def test_a_runtime_without_hash_tables(runtime: str) -> None:
    found = issues_of(table(ZCH, optimizer="sgd", embedding_dim=8), runtime=runtime)
    (issue,) = [one for one in found if "hash_table" in one.pointer]
    assert issue.pointer == "/model/tables/0/hash_table/mode"
    assert issue.message == f"the runtime {runtime} has no zch: it has no hash tables"
    assert issue.hint == "use the runtime torchrec or torcheasyrec, or leave hash_table out"


def test_dynamic_tables_of_hugectr() -> None:
    """They have no capacity, may lie on one rank, and are alone in a spec."""
    given = table({"mode": "hugectr"}, optimizer="sgd", num_embeddings=3)
    eight = {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8}
    (found,) = parse_spec(raw(tiny(model__tables=[given], runtime="hugectr", hardware=eight))).problem.tables
    assert (found.hash_table_mode, found.num_embeddings) == ("hugectr", 3)
    pointer, message, hint = one(table({"mode": "hugectr", "capacity": 2000}, optimizer="sgd"), runtime="hugectr")
    assert (pointer, message) == (
        "/hash_table/capacity",
        "2,000 slots, and tables of hugectr grow with the ids that come",
    )
    assert hint == "leave it out, and give the ids that are expected as num_embeddings"
    mixed = issues_of(given, table(name="fixed", optimizer="sgd"), runtime="hugectr")
    assert [issue.pointer for issue in mixed] == ["/model/tables/1/hash_table"]
    pointer, message, hint = one(table(ZCH, optimizer="sgd"), runtime="hugectr")
    assert (pointer, hint) == ("/hash_table/mode", "use the runtime torchrec or torcheasyrec, or one of hugectr")
    assert message == "the runtime hugectr has no zch: it has hugectr"


@pytest.mark.parametrize(
    ("access", "name"),
    [
        ({"zipf_alpha": 1.0, "ids": "frequency_sorted"}, "ids"),
        ({"row_cdf": [[0.5, 0.9], [1.0, 1.0]]}, "row_cdf"),
    ],
)
def test_slots_have_no_row_numbers_of_ids(access: dict[str, Any], name: str) -> None:
    pointer, message, hint = one(table(ZCH, access=access))
    assert (pointer, hint) == (f"/access/{name}", "leave it out")
    assert message.startswith("the rows of a hash table are slots")
    assert request_of(table(ZCH, access={"zipf_alpha": 1.0, "ids": "hashed"}))


CPU = {"profile": "cpu-2s-genoa-200g", "num_hosts": 2}


@pytest.mark.parametrize(
    ("hash_table", "optimizer", "message", "hint"),
    [
        (
            MPZCH,
            "sgd",
            "ids get their slots on GPUs alone, and the cluster has none",
            "use zch, or ranks with GPUs",
        ),
        (
            ZCH,
            "rowwise_adagrad",
            "FBGEMM resets no rows of rowwise_adagrad on CPUs",
            "use sgd or adagrad, or ranks with GPUs",
        ),
    ],
)
def test_what_hosts_without_accelerators_lack(
    hash_table: dict[str, Any], optimizer: str, message: str, hint: str
) -> None:
    pointer, found, way_out = one(table(hash_table, optimizer=optimizer), hardware=CPU)
    assert (pointer, way_out) == ("/hash_table", hint)
    assert found == f"the runtime torchrec cannot hold this hash table: {message}"
    assert request_of(table(ZCH, optimizer="sgd"), hardware=CPU)


def test_rows_are_reset_with_an_optimizer() -> None:
    pointer, message, hint = one(table(ZCH, optimizer="none"))
    assert (pointer, hint) == ("/hash_table", "name an optimizer")
    assert "there is none" in message
    assert request_of(table(MPZCH, optimizer="none"))


def test_zch_records_at_most_1024_blocks() -> None:
    many = {"profile": "dgx-h100-80g", "num_hosts": 129}
    pointer, message, _ = one(table(ZCH, num_embeddings=10**6), hardware=many)
    assert pointer == "/hash_table"
    assert message.endswith("zch has at most 1024 row blocks, and there are 1032 ranks")
    assert request_of(table({**MPZCH, "capacity": 1032 * 1000}, num_embeddings=10**6), hardware=many)


def test_slots_are_no_wider_than_a_shard() -> None:
    pointer, message, hint = one(table(ZCH, embedding_dim=2048))
    assert (pointer, hint) == ("/embedding_dim", "use at most 1024")
    assert message == "2048 columns, and slots are cut by rows alone, into shards of at most 1024 columns"


def test_a_bucket_is_no_larger_than_the_table() -> None:
    found = {"mode": "dynamicemb", "eviction": "lfu", "bucket_size": 2**40}
    (issue,) = issues_of(table(found), runtime="dynamicemb")
    assert issue.pointer == "/model/tables/0/hash_table/bucket_size"
    assert issue.hint == "use at most 1000, or leave it out"


def test_a_module_has_a_hash_table_for_every_table() -> None:
    mixed = table(ZCH, module_path="m"), table(None, "user", module_path="m")
    (issue,) = issues_of(*mixed)
    assert issue.pointer == "/model/tables/1/hash_table"
    assert issue.message.startswith('table "user" has none, and "item" of the same module "m" has one')
    assert request_of(mixed[0], {**mixed[1], "module_path": "n"})


def test_a_feature_has_one_hash_table_in_a_module() -> None:
    features = {"pooling_factor": None, "features": [{"name": "clicks", "pooling_factor": 1.0}]}
    pair = table(ZCH, module_path="m", **features), table(ZCH, "user", module_path="m", **features)
    (issue,) = issues_of(*pair)
    assert issue.pointer == "/model/tables/1/features/0"
    assert issue.message.startswith('the feature "clicks" is looked up in "item" of the same module as well')
    assert request_of(pair[0], {**pair[1], "module_path": "n"})


def test_a_host_that_serves_has_none() -> None:
    (issue,) = issues_of(
        table(MPZCH, optimizer="none", data_type="int8", num_embeddings=1002),
        model__batch_size_per_rank=None,
        model__pipeline="none",
        hardware={"profile": "inference-6card-m2"},
        objective="request_latency",
        cost_model="serving",
        serving={"samples_per_request": 16},
    )
    assert (issue.pointer, issue.hint) == ("/model/tables/0/hash_table", "leave hash_table out")
    assert "no public number" in issue.message
