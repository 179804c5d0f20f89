"""What the rules prevent: TorchRec trains these plans without an error, to other weights."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client import PlanRejected, plan_digest
from api.client.torchrec import to_sharding_plan
from tests.torchrec.hand_plans import hand_plan, table_document
from tests.torchrec.harness import TOLERANCE, Case, Refusal, run_cases
from tests.torchrec.model import TableSpec
from tests.torchrec.ranks import Model

pytestmark = [pytest.mark.torchrec, pytest.mark.slow]

PLAIN = TableSpec(name="plain", rows=77, columns=8, features=("a",), scheme="row_wise")
OTHER = TableSpec(name="other", rows=20, columns=8, features=("b",), scheme="table_wise", pooling="mean")


def uneven_rows() -> tuple[list[TableSpec], dict[str, object]]:
    """77 rows as 38 and 39: TorchRec sends ids by blocks of ceil(77 / 2) = 39."""
    plan = hand_plan([PLAIN], 2, 2)
    plan["tables"] = [table_document(PLAIN, [(0, 0, 38, 0, 8), (1, 38, 39, 0, 8)])]
    return [PLAIN], plan | {"plan_digest": plan_digest(plan)}


def mean_rows_beside_others() -> tuple[list[TableSpec], dict[str, object]]:
    """A MEAN table cut by rows beside a whole one, which is then divided twice."""
    tables = [replace(PLAIN, pooling="mean"), OTHER]
    return tables, hand_plan(tables, 2, 2)


def mean_grid() -> tuple[list[TableSpec], dict[str, object]]:
    """A grid of a MEAN table adds means of partial bags."""
    tables = [replace(PLAIN, pooling="mean", scheme="grid_shard", columns=16)]
    return tables, hand_plan(tables, 2, 2)


WRONG: dict[str, tuple[Callable[[], tuple[list[TableSpec], dict[str, object]]], str]] = {
    "uneven_rows": (uneven_rows, "blocks of 39 rows"),
    "mean_rows_beside_others": (mean_rows_beside_others, "divide the outputs"),
    "mean_grid": (mean_grid, "means of partial bags"),
}


def test_wrong_plans_train_to_other_weights_and_every_rank_refuses_alike(tmp_path: Path) -> None:
    cases = [
        Case(name=name, tables=make()[0], plan=make()[1], optimizer="sgd", unchecked=True)
        for name, (make, _) in WRONG.items()
    ]
    good = hand_plan([PLAIN], 2, 2)
    refusals = [
        Refusal(name="unreachable", tables=[PLAIN], plan=None),
        Refusal(name="other_model_on_1", tables=[PLAIN], plan=good, shrunk_on=1),
        Refusal(name="other_world", tables=[PLAIN], plan=hand_plan([PLAIN], 4, 2)),
        Refusal(name="nothing_wrong", tables=[PLAIN], plan=good),
    ]
    differences = run_cases(cases, world_size=2, ranks_per_host=2, folder=tmp_path, refusals=refusals)
    for name, difference in differences.items():
        assert difference.largest > 10 * TOLERANCE, (name, difference)
    texts = {r.name: [(tmp_path / f"{r.name}.{rank}.txt").read_text() for rank in range(2)] for r in refusals}
    assert all(first == second for first, second in texts.values()), texts
    assert texts["unreachable"][0] == (
        "PlanUnavailable: rank 0 could not load the plan: OSError: no route to the planner"
    )
    assert (
        texts["other_model_on_1"][0] == 'PlanRejected: rank 1: table "plain": rows is 77 in the plan, 76 in the model'
    )
    assert "the plan is for a world size of 4, the job has 2" in texts["other_world"][0]
    assert texts["nothing_wrong"][0] == "no error"


@pytest.mark.parametrize("name", WRONG)
def test_the_client_refuses_them(name: str) -> None:
    make, message = WRONG[name]
    tables, plan = make()
    with pytest.raises(PlanRejected, match=message):
        to_sharding_plan(plan, module=Model(tables), device="cpu", world_size=2, ranks_per_host=2)
