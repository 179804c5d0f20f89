"""Phases of real training, timed: what is found, what is refused, and that nothing else changes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client.torchrec import spec_from_model
from tests.support.service.live import Live
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import MIXED, hand_plan
from tests.support.torchrec.harness import Case, outcomes, run_cases
from tests.support.torchrec.model import BATCH_SIZE_PER_RANK, MAX_IDS_PER_BAG, NUM_STEPS, TableSpec
from tests.support.torchrec.ranks import Model
from tests.support.torchrec.timings import PLAN_DIGEST

pytestmark = [pytest.mark.torchrec, thorough]

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
#: Tables whose exchanges are one collective in each phase, as the service learns from.
WHOLE = tuple(
    TableSpec(name=f"whole{index}", rows=60, columns=16, features=(f"w{index}",), scheme="table_wise")
    for index in range(4)
)


def case(name: str, tables: tuple[TableSpec, ...], timed: dict[str, object] | None = None) -> Case:
    plan = hand_plan(tables, RANKS, RANKS)
    return Case(name=name, tables=tables, plan=plan, optimizer="rowwise_adagrad", timed=timed)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service."""
    with Live.of(tmp_path_factory.mktemp("service")) as live:
        yield live


@pytest.fixture(scope="module")
def served_plan(service: Live) -> dict[str, object]:
    """A plan of the service for tables that are all placed whole."""
    spec = spec_from_model(
        Model(list(WHOLE)),
        batch_size_per_rank=BATCH_SIZE_PER_RANK,
        hardware={"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": RANKS},
        default_pooling_factor=MAX_IDS_PER_BAG / 2,
        optimizer="rowwise_adagrad",
        constraints={t.name: {"sharding_types": [t.scheme], "compute_kernels": [t.kernel]} for t in WHOLE},
    )
    solve = service.solve({**spec, "solver": {"partitioner": "greedy"}})
    return service.get(f"/v1/plans/{solve['result']['plan_digest']}").json()


@pytest.fixture(scope="module")
def folder(served_plan: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the ranks of all cases wrote what they found."""
    folder = tmp_path_factory.mktemp("timed")
    timed = {**TIMED, "plan_digest": served_plan["plan_digest"]}
    cases = [
        Case(name="served", tables=WHOLE, plan=served_plan, optimizer="rowwise_adagrad", timed=timed),
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


@thorough
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
        assert sum(outcome["seconds"].values()) < max(outcome["walls"]) - LATE_SECONDS, outcome["seconds"]


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


def test_what_is_unknown_of_replicated_tables_is_left_out(folder: Path) -> None:
    for outcome in outcomes("mixed", RANKS, folder):
        assert set(outcome["seconds"]) == {"input_comm", "forward_compute", "forward_comm"}
        assert set(outcome["not_timed"]) == {"backward_comm", "backward_compute"}
        assert "replicated" in outcome["not_timed"]["backward_comm"]


def test_wrong_use_is_reported_on_every_rank(folder: Path) -> None:
    first, second = (outcome["errors"] for outcome in outcomes("timed", RANKS, folder))
    assert first == second
    no_modules = (
        "NotTimed: the model has no ShardedEmbeddingBagCollection; give what DistributedModelParallel made of it"
    )
    assert first == {
        "sequences": "NotTimed: the model has a ShardedEmbeddingCollection, which is not timed; the plan's prediction"
        " is of all tables",
        "slots": "NotTimed: the model has a ShardedManagedCollisionEmbeddingBagCollection, which is not timed; the"
        " plan's prediction is of all tables",
        "processed": "NotTimed: the model has a ShardedFeatureProcessedEmbeddingBagCollection, which is not timed; the"
        " plan's prediction is of all tables",
        "no modules": no_modules,
        "one rank has none": no_modules,
        "other steps": "NotTimed: all ranks must time the same steps and modules, found "
        "rank 0: warmup_steps=10, steps=5, 2 modules; rank 1: warmup_steps=10, steps=6, 2 modules",
        "no passes": "NotTimed: ranks 0, 1: no step was timed; "
        "a step had 0 forward passes, not one; let each pass be a step of its own",
        "no steps": "NotTimed: ranks 0, 1: no step was timed; the job ran 0 steps, 3 of them to warm up",
        "a step that raised": "0 timed, complete: False, (); hooks: True, closed: 0",
        "numbers": "ValueError: Expected warmup_steps >= 1 and steps >= 1.",
    }


def test_that_rank_0_could_not_post_is_reported_on_every_rank(folder: Path) -> None:
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


def test_the_service_compares_what_was_timed_and_learns_from_it(folder: Path, service: Live) -> None:
    document = outcomes("served", RANKS, folder)[0]["document"]
    answers = [service.post("/v1/measurements", document) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200], answers[0].text
    summary = answers[0].json()
    assert answers[1].json() == summary
    comparison = summary["comparison"]
    assert {one["phase"] for one in comparison["phases"]} == ALL_PHASES
    for one in comparison["phases"]:
        seen = [rank["seconds"][one["phase"]] for rank in document["ranks"]]
        assert (one["num_ranks"], one["observed_seconds"]) == (RANKS, max(seen))
        assert one["ratio"] == one["observed_seconds"] / one["predicted_seconds"]
    assert comparison["left_out"] == []
    assert comparison["assumptions"] == []  # the job says all of itself
    rows = service.get(summary["measurements_url"]).json()["rows"]
    assert {row["kind"] for row in rows} == {"lookup", "collective"}
    # one launch of each rank with a row for each table, and three exchanges with a row for each rank
    assert len(rows) == len(WHOLE) + 3 * RANKS
