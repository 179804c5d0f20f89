"""Tables of one module: names that other modules may have too, and what one module of TorchRec can hold."""

import pytest

from api.specs.parse import parse_plan, parse_spec
from api.specs.request import SolveRequest
from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import InvalidProblem, Issue
from planner.pipeline import plan as solved
from planner.verification.verify import verify
from tests.support.planning.long_plans import exported, to_document
from tests.support.service.specs import raw, tiny


def table(name: str = "item", **fields: object) -> dict[str, object]:
    return {"name": name, "num_embeddings": 1000, "embedding_dim": 8, "pooling_factor": 2.0, **fields}


def request_of(*tables: dict[str, object], **changes: object) -> SolveRequest:
    return parse_spec(raw(tiny(model__tables=list(tables), **changes)))


def issues_of(*tables: dict[str, object], **changes: object) -> tuple[Issue, ...]:
    with pytest.raises(InvalidProblem) as caught:
        request_of(*tables, **changes)
    return caught.value.issues


ITEMS = (table(module_path="m.ebc"), table(module_path="m.ec", pooling="none"), table("user", module_path="m.ebc"))


def test_modules_may_have_tables_of_one_name() -> None:
    request = request_of(*ITEMS, constraints={"same_rank": [["m.ebc/item", "user"]]})
    assert [one.name for one in request.problem.tables] == ["m.ebc/item", "m.ec/item", "user"]
    assert request.problem.same_rank == (frozenset({0, 2}),)
    found = solved(
        request.problem, cost_model=request.cost_model, partitioner=request.partitioner, limits=request.limits
    )
    document = to_document(found.plan, name="", spec_digest=request.spec_digest, hardware_profile="test")
    given = parse_plan(canonical_bytes(document), request.problem)
    assert given.placement == found.plan.placement
    torchrec = exported(document, "torchrec", module_path=None, device="cuda")
    assert {path: set(tables) for path, tables in torchrec["plan"].items()} == {
        "m.ebc": {"item", "user"},
        "m.ec": {"item"},
    }
    again = parse_plan(canonical_bytes(torchrec), request.problem)
    assert verify(request.problem, again.placement) == ()
    assert [one.name for one in again.placement.tables] == ["m.ebc/item", "user", "m.ec/item"]


def test_one_module_has_a_name_once() -> None:
    (issue,) = issues_of(table(module_path="m"), table(module_path="m", embedding_dim=16))
    assert (issue.code, issue.pointer) == ("duplicate-name", "/model/tables/1/name")
    (issue,) = issues_of(table(), table())
    assert issue.code == "duplicate-name"


def test_a_name_that_several_modules_have_is_no_name_for_a_group() -> None:
    (issue,) = issues_of(*ITEMS, constraints={"apart": [["item", "user"]]})
    assert issue.pointer == "/constraints/apart/0/0"
    assert issue.message == '2 modules have a table "item"'
    assert issue.hint == "write m.ebc/item or m.ec/item"


@pytest.mark.parametrize(
    ("one", "other", "pointer", "message"),
    [
        ({"pooling": "none"}, {}, "pooling", 'table "b" is pooled, and "a" of the same module "m" is not'),
        ({}, {"pooling": "none"}, "pooling", 'table "b" is not pooled, and "a" of the same module "m" is'),
        (
            {"pooling": "none"},
            {"pooling": "none", "embedding_dim": 16},
            "embedding_dim",
            'table "b" has 16 columns, and "a" of the same module "m" has 8',
        ),
        (
            {},
            {"is_weighted": True},
            "is_weighted",
            'table "b" has weights of ids, and "a" of the same module "m" has none',
        ),
    ],
)
def test_what_no_module_of_torchrec_can_hold_is_refused(
    one: dict[str, object], other: dict[str, object], pointer: str, message: str
) -> None:
    pair = table("a", module_path="m", **one), table("b", module_path="m", **other)
    (issue,) = issues_of(*pair)
    assert (issue.pointer, issue.message) == (f"/model/tables/1/{pointer}", message)
    assert request_of(*pair, runtime="generic")
    assert request_of(pair[0], {**pair[1], "module_path": "n"})
    assert request_of(*({key: value for key, value in one.items() if key != "module_path"} for one in pair))


def test_bags_of_mixed_widths_are_one_module() -> None:
    assert request_of(table("a", module_path="m"), table("b", module_path="m", embedding_dim=16, pooling="mean"))


def test_weights_that_no_kernel_looks_up_are_refused() -> None:
    (issue,) = issues_of(table("a", data_type="bf16"))
    assert issue.pointer == "/model/tables/0/data_type"
    assert "the runtime torchrec does not hold bf16 weights" in issue.message
    assert request_of(table("a", data_type="bf16"), runtime="generic")


def test_hosts_of_unequal_size_are_refused_with_their_numbers() -> None:
    (issue,) = issues_of(table(), hardware__ranks_per_host=[8, 4])
    assert issue.pointer == "/hardware/ranks_per_host"
    assert issue.message == "hosts of 8, 4 ranks: all hosts of a cluster have as many, so give one number"


def test_ranks_share_a_host_without_accelerators() -> None:
    alone = request_of(table(), hardware={"profile": "cpu-2s-genoa-200g", "num_hosts": 2}).problem.cluster.hardware
    shared = request_of(
        table(),
        hardware={"profile": "cpu-2s-genoa-200g", "num_hosts": 2, "ranks_per_host": 4},
    ).problem.cluster
    assert (shared.world_size, shared.ranks_per_host) == (8, 4)
    for name in ("ddr_bytes", "ddr_bytes_per_second", "inter_host_bytes_per_second", "ssd_reads_per_second"):
        assert shared.hardware.numbers[name].value == alone.numbers[name].value / 4
    for name in ("ssd_block_bytes", "inter_host_latency_seconds"):
        assert shared.hardware.numbers[name].value == alone.numbers[name].value
    between = shared.hardware.numbers["intra_host_bytes_per_second"]
    assert between.value == alone.numbers["ddr_bytes_per_second"].value / 8
    assert between.evidence.label == "estimated"
    (issue,) = issues_of(table(), hardware={"profile": "dgx-a100-80g", "ranks_per_host": 16})
    assert issue.pointer == "/hardware/ranks_per_host"
