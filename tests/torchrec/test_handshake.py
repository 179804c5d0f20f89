"""All ranks come to the same verdict, whatever is odd on one of them, and none waits for another."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from api.client import plan_digest
from tests.support.thorough import thorough
from tests.support.torchrec.hand_plans import MIXED, hand_plan
from tests.support.torchrec.harness import outcomes, run_cases
from tests.support.torchrec.model import TableSpec
from tests.support.torchrec.shakes import Shake

pytestmark = pytest.mark.torchrec

TABLE = TableSpec(name="plain", rows=77, columns=8, features=("a",), scheme="row_wise")
OTHER = TableSpec(name="other", rows=20, columns=8, features=("b",), scheme="table_wise")
TABLES = (TABLE, OTHER)
ELSEWHERE = "sha256:" + "e" * 64
PATH = "sparse_arch.plain"
CLUSTERS = ((2, 2), (4, 2))  # ranks, ranks per host


def moved(plan: dict[str, object]) -> dict[str, object]:
    """The same tables, one of them on another rank."""
    plan = json.loads(json.dumps(plan))
    plan["tables"][1]["shards"][0]["rank"] = 0
    return plan | {"plan_digest": plan_digest(plan)}


def unlike(tables: tuple[TableSpec, ...]) -> dict[str, object]:
    """A rank whose model has these tables."""
    return {"tables": [asdict(table) for table in tables]}


def spec_of(features: tuple[str, ...]) -> dict[str, object]:
    """A spec in which ``plain`` has these features."""
    tables = [{"name": "plain", "features": [{"name": name} for name in features]}, {"name": "other"}]
    return {"model": {"tables": tables}}


def with_ledger(plan: dict[str, object], margin_bytes: int) -> dict[str, object]:
    """The plan with what every rank needs: 2,000 bytes for tables, and dense weights, which are there already."""
    reserved = {"hbm": {"margin": margin_bytes, "dense_parameters": 16}}
    ranks = [{"rank": rank, "bytes": {"hbm": 2000}, "reserved_bytes": reserved} for rank in range(plan["world_size"])]
    return plan | {"ranks": ranks}


def refusals(ranks: int, ranks_per_host: int) -> list[tuple[Shake, str, tuple[str, ...]]]:
    """Handshakes, their verdict, and every reason."""
    plan = hand_plan(TABLES, ranks, ranks_per_host)
    other = moved(plan)
    changed = {**plan, "tables": other["tables"]}  # its digest is that of the content before
    last = ranks - 1
    smaller = (replace(TABLE, rows=76), OTHER)
    return [
        (
            Shake(name="changed_plan", tables=TABLES, plan=changed),
            "refuse",
            (f"every rank: the plan says {plan['plan_digest']}, its content has the digest {other['plan_digest']}",),
        ),
        (
            Shake(name="unexpected_plan", tables=TABLES, plan=plan, settings={"expected_digest": ELSEWHERE}),
            "refuse",
            (f"every rank: the plan's content has the digest {plan['plan_digest']}, the job expects {ELSEWHERE}",),
        ),
        (
            Shake(name="no_plan_at_all", tables=TABLES, plan="<html>"),
            "refuse",
            ("every rank: the plan is not valid JSON: Expecting value: line 1 column 1 (char 0)",),
        ),
        (
            Shake(name="other_bytes", tables=TABLES, plan=plan, from_files=True, odd={1: {"plan": other}}),
            "refuse",
            (f"rank 1: has the plan {other['plan_digest']}, rank 0 has {plan['plan_digest']}",),
        ),
        (
            Shake(name="other_model", tables=TABLES, plan=plan, odd={1: unlike(smaller)}),
            "refuse",
            (
                'rank 1: table "plain": num_embeddings is 76 in its model, 77 in that of rank 0',
                'rank 1: table "plain": rows is 77 in the plan, 76 in the model',
            ),
        ),
        (
            Shake(
                name="other_features",
                tables=TABLES,
                plan=plan,
                odd={last: unlike((replace(TABLE, features=("a", "c")), OTHER))},
            ),
            "refuse",
            (f"rank {last}: table \"plain\": feature_names is ('a', 'c') in its model, ('a',) in that of rank 0",),
        ),
        (
            Shake(name="other_hosts", tables=TABLES, plan=plan, odd={1: {"environment": {"LOCAL_WORLD_SIZE": "1"}}}),
            "refuse",
            (
                f"rank 1: the number of ranks per host (LOCAL_WORLD_SIZE) is 1, on rank 0 it is {ranks_per_host}",
                f"rank 1: the plan is for {ranks_per_host} ranks per host, the job has 1 (LOCAL_WORLD_SIZE)",
            ),
        ),
        (
            Shake(
                name="pod_on_one_rank",
                tables=TABLES,
                plan=plan,
                odd={1: {"environment": {"TORCHREC_RESOLVED_POD_SIZE": "1"}}},
            ),
            "refuse",
            (
                f"rank 1: the number of ranks of a pod (TORCHREC_RESOLVED_POD_SIZE) is {ranks_per_host},"
                " on rank 0 it is None",
            ),
        ),
        (
            Shake(
                name="other_expectation",
                tables=TABLES,
                plan=plan,
                settings={"expected_digest": plan["plan_digest"]},
                odd={1: {"settings": {"expected_digest": None}}},
            ),
            "refuse",
            (f"rank 1: the expected digest is None, on rank 0 it is {plan['plan_digest']}",),
        ),
        (
            Shake(name="a_rank_raises", tables=TABLES, plan=plan, odd={1: {"raises": "memory"}}),
            "refuse",
            ("rank 1: RuntimeError: the driver is gone",),
        ),
        (
            Shake(name="no_model_on_rank_0", tables=TABLES, plan=plan, odd={0: {"raises": "model"}}),
            "refuse",
            ("rank 0: AttributeError: 'NoneType' object has no attribute 'named_children'",),
        ),
        (
            Shake(name="two_other_models", tables=TABLES, plan=plan, odd={0: {"raises": "model"}, 1: unlike(smaller)}),
            "refuse",
            (
                "rank 0: AttributeError: 'NoneType' object has no attribute 'named_children'",
                'rank 1: table "plain": rows is 77 in the plan, 76 in the model',
            ),
        ),
        (
            Shake(name="dropped_table", tables=TABLES, plan=hand_plan([TABLE], ranks, ranks_per_host)),
            "replan",
            (f'every rank: table "other" of module "{PATH}" is not in the plan',),
        ),
        (
            Shake(name="surplus_table", tables=[TABLE], plan=plan),
            "replan",
            ('every rank: table "other" of the plan is not in the model',),
        ),
        (
            Shake(name="other_world", tables=TABLES, plan=hand_plan(TABLES, 8, ranks_per_host)),
            "replan",
            (f"every rank: the plan is for a world size of 8, the job has {ranks}",),
        ),
        (
            Shake(name="full_device", tables=TABLES, plan=plan, odd={last: {"free_bytes": 1000}}),
            "replan",
            (
                # other: 20 rows x 8 columns x 4 B = 640 B; plain: 77 rows in blocks of 39 and 38, or 20, 20, 20, 17
                f"rank {last}: the plan needs {'1.9 kB' if ranks == 2 else '1.2 kB'} of device memory"
                f" ({'1.9 kB' if ranks == 2 else '1.2 kB'} for tables, 0 B reserved for the rest),"
                f" 1.0 kB of 1.0 kB are free (device {last})",
            ),
        ),
        (
            Shake(name="other_spec", tables=TABLES, plan=plan, settings={"spec": spec_of(("a", "b"))}),
            "replan",
            ("every rank: table \"plain\": feature_names is ('a', 'b') in the spec, ('a',) in the model",),
        ),
    ]


def pods(ranks: int) -> list[tuple[Shake, str, tuple[str, ...]]]:
    """Two hosts that TorchRec was told to take for one, and sharding groups of half the ranks."""
    plan = hand_plan(TABLES, ranks, 2)
    pod = {"environment": {"TORCHREC_RESOLVED_POD_SIZE": "2"}}
    return [
        (
            Shake(name="pods", tables=TABLES, plan=plan, odd=dict.fromkeys(range(ranks), pod)),
            "refuse",
            (
                "TORCHREC_RESOLVED_POD_SIZE makes TorchRec use groups of 4 ranks, the job has 2 per host"
                " (LOCAL_WORLD_SIZE), and the plan is for groups of a host; unset it, or plan with"
                " hardware.pod_size 4",
            ),
        ),
        (
            Shake(name="surplus_shards", tables=TABLES, plan=plan, settings={"sharding_group_size": 2}),
            "replan",
            (
                "ranks 2, 3 of the plan have no place in sharding groups of 2 ranks, so that their shards of"
                ' "plain", "other" would be left out; plan for 2 ranks',
                "every rank: the plan is for a world size of 4, the job has 2",
            ),
        ),
    ]


@thorough
@pytest.mark.parametrize(("ranks", "ranks_per_host"), CLUSTERS)
def test_all_ranks_agree(ranks: int, ranks_per_host: int, tmp_path: Path) -> None:
    plan = hand_plan(TABLES, ranks, ranks_per_host)
    old = hand_plan([TABLE], ranks, ranks_per_host)
    expected = refusals(ranks, ranks_per_host) + (pods(ranks) if ranks == 4 else [])
    good = [
        Shake(name="good", tables=TABLES, plan=plan, settings={"expected_digest": plan["plan_digest"]}),
        Shake(name="good_files", tables=TABLES, plan=plan, from_files=True, settings={"spec": spec_of(("a",))}),
        Shake(name="mixed", tables=MIXED, plan=hand_plan(MIXED, ranks, ranks_per_host)),
        Shake(name="group", tables=TABLES, plan=hand_plan(TABLES, 2, 2), settings={"sharding_group_size": 2}),
        Shake(name="replanned", tables=TABLES, plan=old, new_plan=plan, settings={"expected_digest": digest_of(old)}),
    ]
    replans = [
        Shake(name="replanned_in_vain", tables=TABLES, plan=old, new_plan=old),
        Shake(name="no_new_plan", tables=TABLES, plan=old, new_plan="the solver sleeps"),
        Shake(name="not_asked", tables=TABLES, plan="<html>", new_plan=plan),
    ]
    unavailable = {
        "unreachable": (Shake(name="unreachable", tables=TABLES, plan=None), "OSError: no route to the planner"),
        "text": (
            Shake(name="text", tables=TABLES, plan=plan, odd={0: {"raises": "type"}}),
            "TypeError: Expected bytes, found str.",
        ),
    }
    ledger = with_ledger(plan, margin_bytes=3000)
    narrow = Shake(name="narrow", tables=TABLES, plan=ledger, odd={1: {"free_bytes": 4999}})
    shakes = [*(shake for shake, _, _ in expected), *good, *replans, *(s for s, _ in unavailable.values()), narrow]
    run_cases([], world_size=ranks, ranks_per_host=ranks_per_host, folder=tmp_path, shakes=shakes)
    found = {shake.name: outcomes(shake.name, ranks, tmp_path) for shake in shakes}

    for shake, verdict, reasons in expected:
        for outcome in found[shake.name]:
            assert outcome["verdict"] == outcome["rejected_as"] == verdict, (shake.name, outcome)
            assert tuple(outcome["reasons"]) == reasons, shake.name
            assert outcome["error"] == f"PlanRejected: {'; '.join(reasons)}"
    for shake in good:
        for outcome in found[shake.name]:
            assert (outcome["verdict"], outcome["reasons"]) == ("go", []), (shake.name, outcome)
            assert PATH in outcome["modules"]
            assert outcome["replanned"] == (shake.name == "replanned")
    lost = f'every rank: table "other" of module "{PATH}" is not in the plan'
    for rank, outcome in enumerate(found["replanned"]):
        assert outcome.get("asked") == ([lost] if rank == 0 else None)
    for outcome in found["replanned_in_vain"]:
        assert (outcome["verdict"], outcome["replanned"], outcome["reasons"]) == ("replan", True, [lost])
    for outcome in found["no_new_plan"]:
        assert outcome == {
            "error": f"PlanUnavailable: rank 0 could not get a new plan, which is needed ({lost}):"
            " TimeoutError: the solver sleeps"
        }
    assert all(outcome["verdict"] == "refuse" and "asked" not in outcome for outcome in found["not_asked"])
    for name, (_, text) in unavailable.items():
        assert found[name] == [{"error": f"PlanUnavailable: rank 0 could not load the plan: {text}"}] * ranks
    for outcome in found["narrow"]:
        assert outcome["verdict"] == "go"
        assert outcome["warnings"] == [
            "rank 1: the plan needs 2.0 kB of device memory (2.0 kB for tables, 0 B reserved for the rest),"
            " 5.0 kB of 5.0 kB are free (device 1), which leaves less than the plan's margin of 3.0 kB"
        ]


@thorough
def test_a_rank_that_dies_leaves_no_one_waiting(tmp_path: Path) -> None:
    shake = Shake(name="death", tables=TABLES, plan=hand_plan(TABLES, 2, 2), odd={1: {"raises": "death"}})
    with pytest.raises(AssertionError, match=r"0\.error[^$]*Connection (closed|reset) by peer"):
        run_cases([], world_size=2, ranks_per_host=2, folder=tmp_path, shakes=[shake])


def digest_of(plan: dict[str, object]) -> str:
    """The digest that a plan says it has."""
    return str(plan["plan_digest"])
