"""Real TorchRec, trained under plans, ends where the unsharded model ends."""

from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from cost_models.vocabulary import Scheme
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import LONELY, MIXED, SEQUENCES, hand_plan
from tests.support.torchrec.harness import LEAST_MOVE, TOLERANCE, Case, Difference, run_cases
from tests.support.torchrec.service_plans import forced_plan, free_plan

pytestmark = pytest.mark.torchrec

CLUSTERS = ((2, 2), (4, 4), (4, 2))  # ranks, ranks per host
#: name, tables, where the plan comes from, optimizer
TRAININGS = (
    ("mixed", MIXED, hand_plan, "sgd"),
    ("mixed", MIXED, hand_plan, "rowwise_adagrad"),
    ("lonely", LONELY, hand_plan, "sgd"),
    ("lonely", LONELY, hand_plan, "rowwise_adagrad"),
    ("sequences", SEQUENCES, hand_plan, "sgd"),
    ("sequences", SEQUENCES, hand_plan, "rowwise_adagrad"),
    ("forced_sequences", SEQUENCES, forced_plan, "rowwise_adagrad"),
    ("forced", MIXED, forced_plan, "sgd"),
    ("forced", MIXED, forced_plan, "rowwise_adagrad"),
    ("free", MIXED, free_plan, "rowwise_adagrad"),
)


def test_the_mixed_model_has_every_scheme() -> None:
    assert {table.scheme for table in MIXED} == set(Scheme.labels())


@pytest.mark.parametrize(
    ("world_size", "ranks_per_host"), [CLUSTERS[0], *(pytest.param(*shape, marks=thorough) for shape in CLUSTERS[1:])]
)
def test_plans_train_like_the_unsharded_model(world_size: int, ranks_per_host: int, tmp_path: Path) -> None:
    cases = [
        Case(
            name=f"{name}-{optimizer}",
            tables=tables,
            plan=make_plan(tables, world_size, ranks_per_host),
            optimizer=optimizer,
        )
        for name, tables, make_plan, optimizer in TRAININGS
    ]
    differences = run_cases(cases, world_size=world_size, ranks_per_host=ranks_per_host, folder=tmp_path)
    assert list(differences) == [case.name for case in cases]
    for name, difference in differences.items():
        assert_equal_training(name, difference)


def assert_equal_training(name: str, difference: Difference) -> None:
    """Every shard where the plan says, every weight equal, and every table moved."""
    print(name, f"loss {difference.losses:.1e} dense {difference.dense:.1e}", max(difference.tables.values()))
    assert difference.misplaced == [], name
    assert difference.largest < TOLERANCE, (name, difference)
    assert min(difference.moves.values()) > LEAST_MOVE, (name, difference.moves)
