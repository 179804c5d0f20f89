"""Types of weights that a runtime does not look up are no choice of its plans."""

import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shard, Shards
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.verification.verify import verify
from tests.support.planning.builders import SSD, make_cluster, make_problem, make_table
from tests.support.planning.serving_problems import serving_problem


@pytest.mark.parametrize(
    ("runtime", "optimizer", "asked", "chosen"),
    [
        ("torchrec", "sgd", ("bf16", "fp32"), {"fp32"}),
        ("torchrec", "sgd", ("bf16", "fp16", "fp32"), {"fp16", "fp32"}),
        ("hugectr", "sgd", ("fp16", "fp32"), {"fp32"}),
        ("distributed_embeddings", "sgd", ("fp16", "fp32"), {"fp32"}),
        ("generic", "sgd", ("bf16", "fp32"), {"bf16", "fp32"}),
    ],
)
def test_only_types_that_the_runtime_looks_up_are_chosen(
    runtime: str, optimizer: str, asked: tuple[str, ...], chosen: set[str]
) -> None:
    table = make_table(optimizer=optimizer, constraints=TableConstraints(data_types=asked))
    families = enumerate_families(make_problem(table, runtime=runtime)).families
    assert {family.storage.data_type.name for family in families} == chosen


@pytest.mark.parametrize("kernel", [Kernel.FUSED, Kernel.FUSED_UVM, Kernel.KEY_VALUE])
def test_quantised_rows_are_chosen_only_where_they_are_served(kernel: Kernel) -> None:
    """TorchRec builds no operator of them in training, and inference looks them up."""
    asked = TableConstraints(compute_kernels=frozenset({kernel}), data_types=("int8", "fp16"))
    table = make_table(optimizer="none", constraints=asked)

    cluster = make_cluster(1, 2, **SSD)
    trained, served = make_problem(table, cluster=cluster), serving_problem(table, cluster=cluster)
    chosen = [
        {family.storage.data_type.name for family in enumerate_families(problem).families}
        for problem in (trained, served)
    ]
    assert chosen == [{"fp16"}, {"int8", "fp16"}]


@pytest.mark.parametrize("data_type", ["int8", "int4", "int2"])
def test_the_reason_says_which_types_are_trained(data_type: str) -> None:
    table = make_table(optimizer="none", data_type=data_type)
    found = enumerate_families(make_problem(table, cluster=make_cluster(1, 2, **SSD)))
    assert dict(found.scheme_issues[0])[Scheme.TABLE_WISE] == "its weights are fp32 or fp16 here"


@pytest.mark.parametrize("data_type", ["int8", "int4", "int2"])
def test_a_plan_from_elsewhere_with_quantised_weights_is_for_serving_alone(data_type: str) -> None:
    table = make_table(optimizer="none", data_type=data_type, rows=10, dim=16)
    trained, served = make_problem(table), serving_problem(table)
    shard = Shard(rank=0, row_offset=0, num_rows=10, column_offset=0, num_columns=16, tier=Tier.HBM)
    for problem, codes in ((trained, ["data-type"]), (served, [])):
        placement = Placement(
            world_size=problem.world_size,
            ranks_per_host=problem.cluster.ranks_per_host,
            tables=(
                TablePlacement(
                    name=table.name,
                    sharding_type=Scheme.TABLE_WISE,
                    compute_kernel=Kernel.FUSED,
                    shards=Shards.of([shard]),
                ),
            ),
        )
        assert [issue.code for issue in verify(problem, placement)] == codes
