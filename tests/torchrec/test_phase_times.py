"""Phases of real training, timed: what is found, what is refused, and that nothing else changes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from tests.torchrec.hand_plans import MIXED, hand_plan
from tests.torchrec.harness import Case, outcomes, run_cases
from tests.torchrec.model import NUM_STEPS, TableSpec
from tests.torchrec.timings import PLAN_DIGEST

pytestmark = [pytest.mark.torchrec, pytest.mark.slow]

RANKS = 2
TIMED = {"warmup_steps": 1, "steps": 2}
LATE_SECONDS = 0.4
ALL_PHASES = {"input_comm", "forward_compute", "forward_comm", "backward_comm", "backward_compute"}
#: Rank 1 holds all of "whole"; rank 0 has no lookup of that kind.
TABLES = (
    TableSpec(name="whole", rows=50, columns=16, features=("a", "b"), scheme="table_wise"),
    TableSpec(name="rows", rows=77, columns=12, features=("c",), scheme="row_wise"),
    TableSpec(name="other", rows=40, columns=8, features=("d",), scheme="table_wise", module_path="sparse_arch.other"),
)


def case(name: str, tables: tuple[TableSpec, ...], timed: dict[str, object] | None = None) -> Case:
    plan = hand_plan(tables, RANKS, RANKS)
    return Case(name=name, tables=tables, plan=plan, optimizer="rowwise_adagrad", timed=timed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the ranks of all cases wrote what they found."""
    folder = tmp_path_factory.mktemp("timed")
    cases = [
        case("plain", TABLES),
        case("timed", TABLES, TIMED),
        case("late", TABLES, {**TIMED, "late_seconds": LATE_SECONDS}),
        case("mixed_plain", MIXED),
        case("mixed", MIXED, TIMED),
    ]
    run_cases(
        cases,
        world_size=RANKS,
        ranks_per_host=RANKS,
        folder=folder,
        pipelines={"pipeline_plain": False, "pipeline": True},
    )
    return folder


def test_every_phase_of_every_rank_has_its_time(folder: Path) -> None:
    found = outcomes("timed", RANKS, folder)
    assert found[0]["document"] == found[1]["document"]
    document = found[0]["document"]
    assert (document["plan_digest"], document["steps"]) == (PLAN_DIGEST, TIMED["steps"])
    assert (document["implementation"], document["communication"]) == ("fbgemm_tbe", "gloo")
    assert document["library"].startswith("fbgemm_gpu ")
    assert [one["rank"] for one in document["ranks"]] == [0, 1]
    for one, outcome in zip(document["ranks"], found, strict=True):
        assert one["seconds"] == outcome["seconds"]
        assert set(one["seconds"]) == ALL_PHASES
        assert all(seconds > 0 for seconds in one["seconds"].values())
        assert outcome["not_timed"] == {}


@pytest.mark.parametrize("name", ["timed", "late", "mixed"])
def test_phases_are_within_their_steps(name: str, folder: Path) -> None:
    for outcome in outcomes(name, RANKS, folder):
        assert sum(outcome["seconds"].values()) < sum(outcome["walls"][1 : 1 + TIMED["steps"]])


def test_waiting_for_a_late_rank_is_no_part_of_a_phase(folder: Path) -> None:
    early, late = outcomes("late", RANKS, folder)
    for outcome in (early, late):
        assert min(outcome["walls"]) > 2 * LATE_SECONDS  # nobody goes on without the late rank
        assert max(outcome["seconds"].values()) < LATE_SECONDS / 2, outcome["seconds"]


@pytest.mark.parametrize(("name", "plain"), [("timed", "plain"), ("late", "plain"), ("mixed", "mixed_plain")])
def test_training_gives_the_same_numbers(name: str, plain: str, folder: Path) -> None:
    for rank in range(RANKS):
        found, expected = (dict(np.load(folder / f"{one}.{rank}.npz")) for one in (name, plain))
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert np.array_equal(found[key], value), key


@pytest.mark.parametrize("name", ["timed", "mixed"])
def test_hooks_are_there_in_timed_steps_alone(name: str, folder: Path) -> None:
    for outcome in outcomes(name, RANKS, folder):
        assert len(outcome["hooks"]) == NUM_STEPS
        assert [number > 0 for number in outcome["hooks"]] == [False, True, True, False]
        assert outcome["hooks_after"] == 0


def test_what_cannot_be_told_of_replicated_tables_is_left_out(folder: Path) -> None:
    for outcome in outcomes("mixed", RANKS, folder):
        assert set(outcome["seconds"]) == {"input_comm", "forward_compute", "forward_comm"}
        assert set(outcome["not_timed"]) == {"backward_comm", "backward_compute"}
        assert "replicated" in outcome["not_timed"]["backward_comm"]


def test_wrong_use_is_told_on_every_rank(folder: Path) -> None:
    first, second = (outcome["errors"] for outcome in outcomes("timed", RANKS, folder))
    assert first == second
    no_modules = (
        "NotTimed: the model has no ShardedEmbeddingBagCollection; give what DistributedModelParallel made of it"
    )
    assert first == {
        "no modules": no_modules,
        "one rank has none": no_modules,
        "other steps": "NotTimed: all ranks must time the same steps and modules, found "
        "rank 0: warmup_steps=10, steps=5, 2 modules; rank 1: warmup_steps=10, steps=6, 2 modules",
        "no passes": "NotTimed: ranks 0, 1: no step was timed; "
        "a step had 0 forward passes, not one; let each pass be a step of its own",
        "no steps": "NotTimed: ranks 0, 1: no step was timed; the job ran 0 steps, 3 of them to warm up",
        "numbers": "ValueError: Expected warmup_steps >= 1 and steps >= 1.",
    }


def test_that_rank_0_could_not_post_is_told_on_every_rank(folder: Path) -> None:
    for outcome in outcomes("timed", RANKS, folder):
        assert outcome["unreachable"].startswith(
            "NotPosted: rank 0 could not post the times: no answer from http://127"
        )
        assert outcome["no_client"] == "NotPosted: rank 0 could not post the times: no client was given"


def test_in_a_pipeline_all_but_the_exchange_of_ids_is_timed(folder: Path) -> None:
    plain = outcomes("pipeline_plain", RANKS, folder)
    for outcome, expected in zip(outcomes("pipeline", RANKS, folder), plain, strict=True):
        assert outcome["losses"] == expected["losses"]
        assert outcome["hooks"] == 0
        assert set(outcome["not_timed"]) == {"input_comm"}
        for one in outcome["document"]["ranks"]:
            assert set(one["seconds"]) == ALL_PHASES - {"input_comm"}
            assert all(seconds > 0 for seconds in one["seconds"].values())
