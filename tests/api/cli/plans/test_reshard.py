"""``shardplan reshard``: the map of two plans, and what one rank reads."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.client import UnexpectedAnswer, rank_reads
from tests.support.cli.run import Run
from tests.support.service.specs import tiny

#: A step on four ranks, and on two; the plan of the first is that of the checkpoint.
OPTIONS = ("--quiet", "--form", "compact")


@pytest.fixture
def files(run: Run, tmp_path: Path) -> dict[str, Path]:
    found = {name: tmp_path / f"{name}.json" for name in ("spec", "old", "new", "map")}
    found["spec"].write_text(json.dumps(tiny(solver__partitioner="greedy")))
    assert run("plan", found["spec"], "--ranks-per-host", 4, "-o", found["old"], *OPTIONS).code == 0
    given = ("--checkpoint-plan", found["old"])
    assert run("plan", found["spec"], "--ranks-per-host", 2, *given, "-o", found["new"], *OPTIONS).code == 0
    return found


def test_the_map_says_what_every_rank_reads(run: Run, files: dict[str, Path]) -> None:
    done = run(
        "reshard",
        files["old"],
        files["new"],
        "-o",
        files["map"],
        "--spec",
        files["spec"],
        "--set",
        "hardware.ranks_per_host=2",
    )
    assert done.code == 0, done.err
    assert "2 tables of 2 from 4 ranks on 2" in done.err
    document = json.loads(files["map"].read_bytes())
    old, new = (json.loads(files[name].read_bytes()) for name in ("old", "new"))
    assert document["old_plan_digest"] == old["plan_digest"]
    assert document["new_plan_digest"] == new["plan_digest"]
    assert {table["state"] for table in document["tables"]} == {"read"}
    assert document["weight_bytes"] >= 4 * (1000 * 8 + 500 * 16)
    reads = 0
    for rank in range(2):
        answer = run("reshard", files["old"], files["new"], "--rank", rank)
        assert answer.code == 0
        listed: list[dict[str, Any]] = json.loads(answer.out)["tables"]
        mine = [(table["name"], read) for table in listed for read in table["reads"]]
        theirs = list(rank_reads(document, rank))
        assert [(name, read["old_rank"], read["row_offset"]) for name, read in mine] == [
            (name, read.old_rank, read.row_offset) for name, read in theirs
        ]
        reads += len(mine)
    assert document["num_reads"] == reads > 0


def test_without_the_spec_state_is_unknown(run: Run, files: dict[str, Path]) -> None:
    done = run("reshard", files["old"], files["new"])
    assert done.code == 0
    assert json.loads(done.out)["state_bytes"] is None
    assert "give the spec of the new plan" in done.err


def test_bad_input_is_named(run: Run, files: dict[str, Path]) -> None:
    other = run("reshard", files["old"], files["new"], "--rank", 2)
    assert (other.code, "has ranks 0 to 1, and no rank 2" in other.err) == (1, True)
    swapped = run("reshard", files["spec"], files["new"])
    assert (swapped.code, "is a spec, and a plan is asked for" in swapped.err) == (1, True)
    over = run("reshard", files["old"], files["new"], "-o", files["old"])
    assert over.code == 1
    spec = json.loads(files["spec"].read_bytes())
    spec["model"]["tables"][0]["num_embeddings"] += 1
    other_spec = files["spec"].with_name("other.json")
    other_spec.write_text(json.dumps(spec))
    unlike = run("reshard", files["old"], files["new"], "--spec", other_spec)
    assert (unlike.code, "has no table of the name and shape of" in unlike.err) == (1, True)
    plan = json.loads(files["old"].read_bytes())
    del plan["tables"][0]["data_type"]
    files["old"].write_text(json.dumps(plan))
    untyped = run("reshard", files["old"], files["new"])
    assert (untyped.code, untyped.out) == (1, "")


def test_the_client_refuses_what_is_no_map() -> None:
    with pytest.raises(UnexpectedAnswer, match="no reshard map"):
        next(rank_reads({"rank": 0}, 0))
    with pytest.raises(UnexpectedAnswer, match="no rank 5"):
        next(rank_reads({"tables": [], "new_world_size": 2}, 5))
