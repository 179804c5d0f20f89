"""What the rules prevent: TorchRec trains these plans without an error, to other weights."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client import PlanRejected, plan_digest
from api.client.torchrec import to_sharding_plan
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import hand_plan, table_document
from tests.support.torchrec.harness import TOLERANCE, Case, outcomes, run_cases
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.ranks import Model
from tests.support.torchrec.shakes import Shake

pytestmark = pytest.mark.torchrec

PLAIN = TableSpec(name="plain", rows=77, columns=8, features=("a",), scheme="row_wise")
OTHER = TableSpec(name="other", rows=20, columns=8, features=("b",), scheme="table_wise", pooling="mean")
Wrong = tuple[list[TableSpec], dict[str, object]]


def uneven_rows() -> Wrong:
    """77 rows as 38 and 39: TorchRec sends ids by blocks of ceil(77 / 2) = 39."""
    plan = hand_plan([PLAIN], 2, 2)
    plan["tables"] = [table_document(PLAIN, [(0, 0, 38, 0, 8), (1, 38, 39, 0, 8)])]
    return [PLAIN], plan | {"plan_digest": plan_digest(plan)}


def mean_rows_on_shared_ranks() -> Wrong:
    """A MEAN table cut by rows next to a whole one, which is then divided twice."""
    tables = [replace(PLAIN, pooling="mean"), OTHER]
    return tables, hand_plan(tables, 2, 2)


def mean_grid() -> Wrong:
    """A grid of a MEAN table adds means of partial bags."""
    tables = [replace(PLAIN, pooling="mean", scheme="grid_shard", columns=16)]
    return tables, hand_plan(tables, 2, 2)


def shard_without_rows() -> Wrong:
    """One row over two ranks leaves rank 1 none: the fused backward pass updates the next table as if it were this one.

    Four columns are fewer than those of the next table; with more the updates go past its end, which may crash.
    """
    tables = [TableSpec(name="tiny", rows=1, columns=4, features=("b",), scheme="row_wise"), PLAIN]
    return tables, hand_plan(tables, 2, 2)


def wrong_module_path() -> Wrong:
    """TorchRec finds no plan under the model's path, shards nothing, and puts the whole table on every rank."""
    plan = hand_plan([replace(PLAIN, module_path="sparse_arch.other")], 2, 2)
    return [PLAIN], plan


def dropped_tables() -> Wrong:
    """A plan that lost all tables of a module: that module is not sharded, and nothing says so."""
    lost = replace(PLAIN, name="lost", module_path="sparse_arch.other")
    return [PLAIN, lost], hand_plan([PLAIN], 2, 2)


#: What makes the plan, what the client says of it, and its verdict.
WRONG: dict[str, tuple[Callable[[], Wrong], str, str]] = {
    "uneven_rows": (uneven_rows, "blocks of 39 rows", "refuse"),
    "mean_rows_on_shared_ranks": (mean_rows_on_shared_ranks, "divide the outputs", "refuse"),
    "mean_grid": (mean_grid, "means of partial bags", "refuse"),
    "shard_without_rows": (shard_without_rows, 'table "tiny": a shard is empty', "refuse"),
    "wrong_module_path": (
        wrong_module_path,
        'table "plain": module_path is sparse_arch.other in the plan, sparse_arch.plain in the model',
        "replan",
    ),
    "dropped_tables": (dropped_tables, 'table "lost" of module "sparse_arch.other" is not in the plan', "replan"),
}
#: TorchRec puts these tables whole on every rank, where the fused optimizer does not reach them.
UNCUT = {"wrong_module_path": "plain/0/0", "dropped_tables": "lost/0/0"}


@thorough
def test_wrong_plans_train_to_other_weights_and_every_rank_refuses_alike(tmp_path: Path) -> None:
    cases = []
    shakes = []
    for name, (make, _, _) in WRONG.items():
        tables, plan = make()
        cases.append(Case(name=name, tables=tables, plan=plan, optimizer="sgd", unchecked=True, fused_only=True))
        shakes.append(Shake(name=f"shake_{name}", tables=tables, plan=plan))
    differences = run_cases(cases, world_size=2, ranks_per_host=2, folder=tmp_path, shakes=shakes)
    for name, difference in differences.items():
        if name in UNCUT:
            assert set(difference.uncut) == {f"rank {rank}: {UNCUT[name]}" for rank in range(2)}, (name, difference)
            assert min(difference.uncut.values()) > 10 * TOLERANCE, (name, difference)
        else:
            assert difference.largest > 10 * TOLERANCE, (name, difference)
    for name, (_, message, verdict) in WRONG.items():
        first, second = outcomes(f"shake_{name}", 2, tmp_path)
        assert first == second
        assert (first["verdict"], first["rejected_as"]) == (verdict, verdict)
        assert message in first["error"], first
        assert "modules" not in first


@pytest.mark.parametrize("name", WRONG)
def test_the_client_refuses_them_without_other_ranks(name: str) -> None:
    make, message, verdict = WRONG[name]
    tables, plan = make()
    with pytest.raises(PlanRejected) as caught:
        to_sharding_plan(plan, module=Model(tables), device="cpu", world_size=2, ranks_per_host=2)
    assert message in str(caught.value)
    assert caught.value.verdict == verdict
