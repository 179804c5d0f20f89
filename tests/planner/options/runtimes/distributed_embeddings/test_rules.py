"""distributed-embeddings as a runtime: what is offered for it can be exported, and what it would not train is told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cost_models.vocabulary import DEVICE_KERNELS, HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Plan
from planner.domain.plan.shards import Shards
from planner.domain.problem.table import Table, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.distributed_embeddings.rules import DistributedEmbeddings
from planner.options.runtimes.export import UnexportablePlan
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.verify import verify
from tests.planner.options.runtimes.distributed_embeddings.test_export import assert_lookups_are_right
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exports import exporter
from tests.support.planning.long_plans import to_document

export_plan = exporter("distributed_embeddings")

OFFERED = {Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE}


def planned(*tables: Table, hosts: int = 1, local: int = 4) -> Plan:
    result = plan(
        make_problem(*tables, cluster=make_cluster(hosts, local), runtime="distributed_embeddings"),
        cost_model=ROOFLINE,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1, seed=0),
    )
    assert result.plan is not None
    return result.plan


def document_of(made: Plan) -> dict[str, object]:
    return to_document(made, name="m", spec_digest="sha256:spec", hardware_profile="test")


def test_what_is_offered() -> None:
    """No column cuts, rows of sums alone; kernels of the GPU's memory, though others are asked for."""
    tables = make_table("a", pooling="mean"), make_table("b", optimizer="adagrad")
    cluster = make_cluster(2, 2)
    problem = make_problem(*tables, cluster=cluster, runtime="distributed_embeddings", kernels=HOST_KERNELS)
    families = enumerate_families(problem).families
    for index, offered in ((0, OFFERED - {Scheme.ROW_WISE}), (1, OFFERED)):
        listed = {(one.scheme, one.storage.kernel) for one in families if one.table == index}
        assert listed == {(s, Kernel.DENSE if s is Scheme.DATA_PARALLEL else Kernel.FUSED) for s in offered}


@pytest.mark.parametrize("scheme", sorted(OFFERED))
@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 2), (3, 2)])
def test_every_scheme_that_is_an_option_is_planned_exported_and_looked_up_right(
    scheme: Scheme, hosts: int, local: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted = TableConstraints(sharding_types=frozenset({scheme}))
    mean = "sum" if scheme is Scheme.ROW_WISE else "mean"
    tables = [
        make_table(f"t{rows}", rows=rows, dim=dim, pooling=pooling, constraints=wanted)
        for rows, dim, pooling in ((40, 8, "sum"), (41, 4, mean), (59, 256, mean), (37, 8, "sum"), (38, 6, "sum"))
    ]
    pinned = frozenset({Scheme.TABLE_WISE})
    tables += [
        make_table(
            f"on{rank}", rows=5, dim=4, constraints=TableConstraints(sharding_types=pinned, ranks=frozenset({rank}))
        )
        for rank in range(hosts * local)
    ]
    export = export_plan(document_of(planned(*tables, hosts=hosts, local=local)))
    assert len(export["tables"]) == len(tables)
    assert_lookups_are_right(export, monkeypatch, tmp_path)


def test_a_rank_without_a_table_is_reported_by_the_export_and_repaired_by_the_spec() -> None:
    """The way out that the refusal names is one."""
    whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    tables = [make_table(f"t{number}", rows=900, constraints=whole) for number in range(3)]
    with pytest.raises(UnexportablePlan, match=r'there is none on rank (\d)\. .*"ranks" with one of them') as caught:
        export_plan(document_of(planned(*tables)))
    rank = int(str(caught.value).split("none on rank ")[1][0])
    small = make_table("small", rows=5, constraints=replace(whole, ranks=frozenset({rank})))
    others = replace(whole, ranks=frozenset(range(4)) - {rank})
    apart = [replace(table, constraints=others) for table in tables]
    export = export_plan(document_of(planned(*apart, small)))
    assert all(export["strategy"]["table_ids"])  # type: ignore[index]


def test_no_rank_has_more_rows_than_an_even_share_rounded_up() -> None:
    """Bytes were reserved for blocks; the last block of a plan may be shorter than what its rank holds."""
    wanted = TableConstraints(sharding_types=frozenset({Scheme.ROW_WISE}))
    made = planned(make_table(rows=41, constraints=wanted))
    export = export_plan(document_of(made))
    assert made.placement.tables[0].shards.num_rows.tolist() == [11, 11, 11, 8]
    (reported,) = export["tables"]  # type: ignore[misc]
    assert [shard["num_rows"] for shard in reported["shards"]] == [11, 10, 10, 10]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (make_table(pooling="none"), "exchanges one row per sample"),
        (replace(make_table(), is_weighted=True), "no weights of ids"),
        (make_table(optimizer="rowwise_adagrad"), "trains with sgd or adagrad, not with rowwise_adagrad"),
        (make_table(optimizer="adam"), "trains with sgd or adagrad, not with adam"),
        (make_table(data_type="fp16"), "for fp32 weights, not for fp16"),
    ],
    ids=["sequence", "weighted", "rowwise_adagrad", "adam", "fp16"],
)
def test_what_no_scheme_runs(table: Table, reason: str) -> None:
    for scheme in OFFERED:
        scheme_issue = DistributedEmbeddings().scheme_issue(table, scheme)
        assert scheme_issue is not None
        assert reason in scheme_issue


def test_means_of_tables_cut_by_rows() -> None:
    scheme_issue = DistributedEmbeddings().scheme_issue(make_table(pooling="mean"), Scheme.ROW_WISE)
    assert scheme_issue is not None
    assert "its bags have means" in scheme_issue
    assert DistributedEmbeddings().scheme_issue(make_table(pooling="sum"), Scheme.ROW_WISE) is None


@pytest.mark.parametrize("scheme", sorted(set(Scheme) - OFFERED))
def test_schemes_that_are_not_offered(scheme: Scheme) -> None:
    scheme_issue = DistributedEmbeddings().scheme_issue(make_table(), scheme)
    cut = f"{scheme.label} must cut into even slices on different ranks, which is not searched for"
    whole = "rows are cut over all ranks: row_wise does that"
    assert scheme_issue == (whole if scheme is Scheme.TABLE_ROW_WISE else cut)


def faults(table: Table, placed: TablePlacement) -> dict[str, str]:
    problem = make_problem(table, runtime="distributed_embeddings", kernels=DEVICE_KERNELS)
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


def test_finished_plans_are_rated_by_what_is_made_of_them() -> None:
    table = make_table(rows=10, dim=16)
    copies = [(rank, 0, 10, 0, 16) for rank in range(4)]
    halves = placed(Scheme.COLUMN_WISE, Kernel.FUSED, (1, 0, 10, 0, 8), (3, 0, 10, 8, 8))
    assert faults(table, halves) == {}
    assert faults(table, placed(Scheme.DATA_PARALLEL, Kernel.DENSE, *copies)) == {}
    dense = faults(table, replace(halves, compute_kernel=Kernel.DENSE))
    assert dense == {"kernel": 'table "t": column_wise runs with fused, not dense'}
    odd = faults(table, placed(Scheme.COLUMN_WISE, Kernel.FUSED, (1, 0, 10, 0, 12), (3, 0, 10, 12, 4)))
    assert odd == {
        "geometry": 'table "t": its column slices are 4 and 12 wide; 16 columns are cut evenly, into slices of 8'
    }
    trained = faults(make_table(rows=10, dim=16, optimizer="adam"), halves)
    assert trained == {
        "untrained": 'table "t": the runtime distributed_embeddings cannot run this table: it trains with sgd or'
        " adagrad, not with adam"
    }


def test_means_are_rated_by_geometry() -> None:
    blocks = placed(Scheme.ROW_WISE, Kernel.FUSED, *[(rank, 3 * rank, 3, 0, 16) for rank in range(4)])
    assert faults(make_table(rows=12, dim=16), blocks) == {}
    assert "its bags have means" in faults(make_table(rows=12, dim=16, pooling="mean"), blocks)["pooling"]


@pytest.mark.parametrize(
    ("shards", "parts"),
    [
        ([(1, 0, 10, 0, 6), (3, 0, 10, 6, 6)], "column slices"),
        ([(rank, 2 * rank, 2, 0, 16) for rank in range(4)], "row blocks"),
    ],
)
def test_shards_that_end_before_the_table_does(shards: list[tuple[int, int, int, int, int]], parts: str) -> None:
    """A plan document has no sizes but those of its shards; a spec has."""
    problem = make_problem(make_table(rows=10, dim=16), runtime="distributed_embeddings")
    short = placed(Scheme.ROW_WISE, Kernel.FUSED, *shards)
    (issue,) = DistributedEmbeddings().check(problem, Placement(world_size=4, ranks_per_host=4, tables=(short,)))
    assert (issue.code, issue.pointer) == ("geometry", "/tables/0")
    assert issue.message == f'table "t": its {parts} leave gaps or overlap'
