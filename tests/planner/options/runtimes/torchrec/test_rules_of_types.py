"""Types of weights that a runtime does not look up are no choice of its plans."""

import pytest

from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from tests.support.planning.builders import make_problem, make_table


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
