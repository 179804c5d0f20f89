"""Types of weights that a runtime does not look up are no choice of its plans."""

import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
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


def test_quantised_rows_lie_on_a_drive_only_where_they_are_served() -> None:
    """FBGEMM's lookup from a drive takes fp32 and fp16 in training, and quantised rows in inference."""
    asked = TableConstraints(compute_kernels=frozenset({Kernel.KEY_VALUE}), data_types=("int8", "fp16"))
    table = make_table(optimizer="none", constraints=asked)

    cluster = make_cluster(1, 2, **SSD)
    trained, served = make_problem(table, cluster=cluster), serving_problem(table, cluster=cluster)
    chosen = [
        {family.storage.data_type.name for family in enumerate_families(problem).families}
        for problem in (trained, served)
    ]
    assert chosen == [{"fp16"}, {"int8", "fp16"}]


def test_the_reason_says_which_types_a_drive_takes() -> None:
    asked = TableConstraints(compute_kernels=frozenset({Kernel.KEY_VALUE}))
    table = make_table(optimizer="none", data_type="int8", constraints=asked)
    found = enumerate_families(make_problem(table, cluster=make_cluster(1, 2, **SSD)))
    assert dict(found.scheme_issues[0])[Scheme.TABLE_WISE] == "key_value keeps fp16 or fp32 weights here"
