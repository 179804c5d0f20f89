"""HugeCTR as a runtime: what is offered for it can be exported, and what it would not train is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.hash_table import HashTable
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.hugectr.rules import HugeCTR
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.verify import verify
from tests.planner.options.runtimes.hugectr.test_export import assert_lookups_are_right
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exports import exporter
from tests.support.planning.long_plans import to_document

export_plan = exporter("hugectr")

OFFERED = {Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE}


def test_what_is_offered() -> None:
    """No column cuts; means in any mixture; kernels of the GPU's memory alone, though others are asked for."""
    tables = make_table("a", pooling="mean"), make_table("b", optimizer="adagrad")
    problem = make_problem(*tables, cluster=make_cluster(2, 2), runtime="hugectr", kernels=HOST_KERNELS)
    families = enumerate_families(problem).families
    for index in (0, 1):
        listed = {(one.scheme, one.storage.kernel) for one in families if one.table == index}
        assert listed == {(s, Kernel.DENSE if s is Scheme.DATA_PARALLEL else Kernel.FUSED) for s in OFFERED}


@pytest.mark.parametrize("scheme", sorted(OFFERED))
@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 2), (3, 2)])
def test_every_scheme_that_is_an_option_is_planned_exported_and_looked_up_right(
    scheme: Scheme, hosts: int, local: int
) -> None:
    wanted = TableConstraints(sharding_types=frozenset({scheme}))
    tables = [
        make_table(f"t{rows}", rows=rows, dim=dim, pooling=pooling, constraints=wanted)
        for rows, dim, pooling in ((40, 8, "sum"), (41, 4, "mean"), (59, 256, "mean"), (37, 6, "sum"))
    ]
    problem = make_problem(*tables, cluster=make_cluster(hosts, local), runtime="hugectr")
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    export = export_plan(to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="test"))
    assert len(export["tables"]) == len(tables)
    assert_lookups_are_right(export)


def test_no_gpu_has_more_than_one_row_of_a_table_beyond_an_even_share() -> None:
    """Bytes were reserved for blocks; the last block of a plan may be shorter than what its GPU holds."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    table = make_table(rows=41, constraints=wanted)
    result = plan(
        make_problem(table, runtime="hugectr"),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1),
    )
    assert result.plan is not None
    planned = result.plan.placement.tables[0].shards.num_rows.tolist()
    export = export_plan(to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="test"))
    held = [shard["num_rows"] for shard in export["tables"][0]["shards"]]
    assert planned == [11, 11, 11, 8]
    assert held == [11, 10, 10, 10]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (make_table(pooling="none"), "a fixed number of ids per sample"),
        (replace(make_table(), is_weighted=True), "no weights of ids"),
        (make_table(optimizer="rowwise_adagrad"), "trains with sgd or adagrad, not with rowwise_adagrad"),
        (make_table(optimizer="none"), "not with none"),
        (make_table(data_type="fp16"), "keeps weights as fp32, not as fp16"),
        (make_table(dim=260), "256 columns wide at most"),
    ],
    ids=["sequence", "weighted", "rowwise_adagrad", "none", "fp16", "wide"],
)
def test_what_no_scheme_runs(table: Table, reason: str) -> None:
    for scheme in OFFERED:
        scheme_issue = HugeCTR().scheme_issue(table, scheme)
        assert scheme_issue is not None
        assert reason in scheme_issue
    assert HugeCTR().scheme_issue(make_table(dim=256), Scheme.TABLE_WISE) is None


def dynamic(name: str = "t", **fields: Any) -> Table:
    """A table without a vocabulary size."""
    table = make_table(name, **fields)
    found = HashTable(mode="hugectr", eviction="none", expected_rows=table.num_embeddings)
    return replace(table, hash_table=found)


def test_dynamic_tables_are_not_copied_and_train_with_adam() -> None:
    problem = make_problem(dynamic(optimizer="adam"), cluster=make_cluster(2, 2), runtime="hugectr")
    listed = {one.scheme for one in enumerate_families(problem).families}
    assert listed == OFFERED - {Scheme.DATA_PARALLEL}
    reason = HugeCTR().scheme_issue(dynamic(optimizer="rowwise_adagrad"), Scheme.TABLE_WISE)
    assert reason == "it trains with sgd, adagrad or adam, not with rowwise_adagrad"
    copies = placed(Scheme.DATA_PARALLEL, Kernel.DENSE, *[(rank, 0, 10, 0, 16) for rank in range(4)])
    assert faults(dynamic(rows=10, dim=16), copies)["hash-table"].endswith("is not copied to all GPUs")
    whole = replace(placed(Scheme.TABLE_WISE, Kernel.FUSED, (1, 0, 10, 0, 16)), hash_table_mode="hugectr")
    assert faults(dynamic(rows=10, dim=16), whole) == {}


def test_tables_of_a_collection_are_all_dynamic_or_none_and_share_an_optimizer() -> None:
    runtime, fixed = HugeCTR(), make_table("f")
    assert list(runtime.operator_issues({"/0": fixed, "/1": make_table("g", optimizer="adagrad")})) == []
    assert list(runtime.operator_issues({"/0": dynamic("a"), "/1": dynamic("b")})) == []
    (issue,) = runtime.operator_issues({"/0": fixed, "/1": dynamic("a")})
    assert (issue.where, issue.field) == ("/0", "hash_table")
    assert 'a fixed size next to "a"' in issue.message
    (issue,) = runtime.operator_issues({"/0": dynamic("a"), "/1": dynamic("b", optimizer="adagrad")})
    assert (issue.where, issue.field, issue.hint) == ("/1", "optimizer", "use sgd")


@pytest.mark.parametrize("scheme", sorted(set(Scheme) - OFFERED))
def test_schemes_that_are_not_searched_for(scheme: Scheme) -> None:
    scheme_issue = HugeCTR().scheme_issue(make_table(), scheme)
    assert scheme_issue == f"{scheme.label} must cut into equal pieces, which is not searched for"


def faults(table: Table, placed: TablePlacement) -> dict[str, str]:
    problem = make_problem(table, runtime="hugectr", kernels=DEVICE_KERNELS)
    placement = Placement(world_size=4, ranks_per_host=4, tables=(placed,))
    return {issue.code: issue.message for issue in verify(problem, placement)}


def placed(scheme: Scheme, kernel: Kernel, *shards: tuple[int, int, int, int, int]) -> TablePlacement:
    rank, row_offset, num_rows, column_offset, num_columns = np.array(shards).T
    columns = Shards.of_columns(
        rank=rank,
        row_offset=row_offset,
        num_rows=num_rows,
        column_offset=column_offset,
        num_columns=num_columns,
        tier=Tier.HBM,
    )
    return TablePlacement(name="t", sharding_type=scheme, compute_kernel=kernel, shards=columns)


def test_finished_plans_are_rated_by_what_hugectr_makes_of_them() -> None:
    table = make_table(rows=10, dim=16)
    halves = [(1, 0, 10, 0, 8), (3, 0, 10, 8, 8)]
    copies = [(rank, 0, 10, 0, 16) for rank in range(4)]
    column_wise = placed(Scheme.COLUMN_WISE, Kernel.FUSED, *halves)
    assert faults(table, column_wise) == {}
    assert faults(table, placed(Scheme.DATA_PARALLEL, Kernel.DENSE, *copies)) == {}
    dense = faults(table, placed(Scheme.COLUMN_WISE, Kernel.DENSE, *halves))
    assert dense == {"kernel": 'table "t": column_wise runs with fused, not dense'}
    odd = faults(table, placed(Scheme.COLUMN_WISE, Kernel.FUSED, (1, 0, 10, 0, 12), (3, 0, 10, 12, 4)))
    assert odd == {"geometry": 'table "t": its column pieces are 4 and 12 wide; they must be equally wide'}
    trained = faults(make_table(rows=10, dim=16, optimizer="adam"), column_wise)
    assert trained == {
        "untrained": 'table "t": the runtime hugectr cannot run this table: it trains with sgd or'
        " adagrad, not with adam"
    }


def test_ids_are_stored_with_their_rows() -> None:
    """8 B of an int64 key for every row, of copies on every GPU."""
    tables = make_table("a", rows=1000), make_table("b", rows=10)
    problem = make_problem(*tables, cluster=make_cluster(1, 2), runtime="hugectr")
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    rows = sum(placed.shards.num_rows.sum() for placed in result.plan.placement.tables)
    assert sum(rank.ledger_bytes[Tier.HBM]["row_keys"] for rank in result.plan.evaluation.ranks) == 8 * rows


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31])
def test_rows_are_counted_in_32_bits(rows: int) -> None:
    reason = HugeCTR().scheme_issue(make_table(rows=rows, dim=4), Scheme.ROW_WISE)
    if rows < 2**31:
        assert reason is None
    else:
        assert reason is not None
        assert "2147483648 rows are more than 2147483647" in reason


def test_width_is_counted_by_piece() -> None:
    table, whole = make_table(rows=10, dim=512), [(rank, 0, 10, 0, 512) for rank in range(4)]
    halves = [(1, 0, 10, 0, 256), (3, 0, 10, 256, 256)]
    assert faults(table, placed(Scheme.COLUMN_WISE, Kernel.FUSED, *halves)) == {}
    for wide in (
        placed(Scheme.TABLE_WISE, Kernel.FUSED, whole[0]),
        placed(Scheme.DATA_PARALLEL, Kernel.DENSE, *whole),
    ):
        assert "512 columns are on one GPU; gradients are 256 wide at most" in faults(table, wide)["geometry"]
