"""SparseCores as a runtime: what is offered for them can be exported, and what they would not train is told."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import HOST_KERNELS, Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.table import Table
from planner.options.enumerate import enumerate_families
from planner.options.runtimes.export import ExportFacts
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.verify import verify
from tests.planner.options.runtimes.sparsecore.test_export import assert_lookups_are_right
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table
from tests.support.planning.exports import exporter
from tests.support.planning.long_plans import to_document

export_plan = exporter("sparsecore")


def test_what_is_offered() -> None:
    """Rows over all chips, in their memory, whatever else is asked for."""
    tables = make_table("a", pooling="mean"), make_table("b", optimizer="adam")
    problem = make_problem(*tables, cluster=make_cluster(2, 2), runtime="sparsecore", kernels=HOST_KERNELS)
    families = enumerate_families(problem).families
    assert {(one.table, one.scheme, one.storage.kernel) for one in families} == {
        (index, Scheme.ROW_WISE, Kernel.FUSED) for index in (0, 1)
    }


@pytest.mark.parametrize(("hosts", "local"), [(1, 4), (2, 4), (1, 2)])
def test_what_is_planned_is_exported_and_looked_up_right(hosts: int, local: int) -> None:
    tables = [
        make_table(f"t{rows}", rows=rows, dim=dim, pooling=pooling, access=ZipfAccess(alpha=1.0))
        for rows, dim, pooling in ((40, 8, "sum"), (64, 16, "mean"), (150, 8, "sum"), (77, 64, "mean"))
    ]
    problem = make_problem(*tables, cluster=make_cluster(hosts, local), runtime="sparsecore")
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=SolveLimits(time_limit_seconds=1, seed=0))
    assert result.plan is not None
    document = to_document(result.plan, name="m", spec_digest="sha256:spec", hardware_profile="tpu-v5p")
    export = export_plan(document, facts=ExportFacts(problem=problem))
    assert sorted(one["stack"] for one in export["tables"]) == ["stack_of_2_from_t40"] * 2 + ["t64", "t77"]
    assert all(stack["max_ids_per_partition"] for stack in export["stacks"])
    assert_lookups_are_right(export)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (make_table(pooling="none"), "pools the ids of every sample"),
        (make_table(optimizer="rowwise_adagrad"), "trains with sgd, adagrad or adam, not with rowwise_adagrad"),
        (make_table(optimizer="none"), "not with none"),
        (make_table(data_type="fp16"), "keeps weights as fp32, not as fp16"),
        (make_table(dim=20), "padded to a multiple of 8 columns"),
        (make_table(rows=2**31), "at most 2147483647"),
    ],
    ids=["sequence", "rowwise_adagrad", "none", "fp16", "unaligned", "long"],
)
def test_what_no_scheme_runs(table: Table, reason: str) -> None:
    for scheme in Scheme:
        scheme_issue = SparseCore().scheme_issue(table, scheme)
        assert scheme_issue is not None
        assert reason in scheme_issue


@pytest.mark.parametrize("scheme", sorted(set(Scheme) - {Scheme.ROW_WISE}))
def test_schemes_that_sparsecores_have_not(scheme: Scheme) -> None:
    scheme_issue = SparseCore().scheme_issue(make_table(), scheme)
    assert (
        scheme_issue == f"every SparseCore holds rows of every table, which row_wise plans and {scheme.label} does not"
    )
    assert SparseCore().kernels(make_table(), scheme, frozenset(Kernel)) == ()


def test_weighted_lookups_run() -> None:
    assert SparseCore().scheme_issue(replace(make_table(), is_weighted=True), Scheme.ROW_WISE) is None


def faults(table: Table, placed: TablePlacement, *, chips: int = 4) -> dict[str, str]:
    problem = make_problem(table, runtime="sparsecore", cluster=make_cluster(1, chips))
    placement = Placement(world_size=chips, ranks_per_host=chips, tables=(placed,))
    return {issue.code: issue.message for issue in verify(problem, placement)}


def placed(*shards: tuple[int, int, int, int, int], kernel: Kernel = Kernel.FUSED) -> TablePlacement:
    rank, row_offset, num_rows, column_offset, num_columns = np.array(shards).T
    columns = Shards.of_columns(
        rank=rank,
        row_offset=row_offset,
        num_rows=num_rows,
        column_offset=column_offset,
        num_columns=num_columns,
        tier=Tier.HBM,
    )
    return TablePlacement(name="t", sharding_type=Scheme.ROW_WISE, compute_kernel=kernel, shards=columns)


def test_finished_plans_are_rated_by_what_the_library_makes_of_them() -> None:
    table = make_table(rows=10, dim=16)
    blocks = [(0, 0, 3, 0, 16), (1, 3, 3, 0, 16), (2, 6, 3, 0, 16), (3, 9, 1, 0, 16)]
    assert faults(table, placed(*blocks)) == {}
    dense = faults(table, placed(*blocks, kernel=Kernel.DENSE))
    assert dense["kernel"] == 'table "t": rows lie on the chip and run with fused, not dense'
    uneven = faults(table, placed((0, 0, 4, 0, 16), (1, 4, 2, 0, 16), (2, 6, 3, 0, 16), (3, 9, 1, 0, 16)))
    assert "a row block has 4 rows" in uneven["geometry"]
    trained = faults(make_table(rows=10, dim=16, optimizer="lamb"), placed(*blocks))
    assert trained["untrained"].endswith("it trains with sgd, adagrad or adam, not with lamb")
    three = faults(table, placed((0, 0, 4, 0, 16), (1, 4, 4, 0, 16), (2, 8, 2, 0, 16)), chips=3)
    assert three["world-size"] == "rows are dealt out to a power of two of SparseCores, and 3 chips have none"
