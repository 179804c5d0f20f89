"""``channels``, ``promote`` and ``rollback``: moves that say from where to where, and ask on a terminal."""

from pathlib import Path

import pytest

from api.cli.remote import move_channel
from tests.support.cli.run import Run
from tests.support.service.live import Live
from tests.support.service.specs import tiny

SERVER = ("--server", "http://planner")
CHANNEL = "ads/ranker/prod"


@pytest.fixture
def digests(service: Live) -> list[str]:
    """Three plans of the service."""
    solves = [service.solve(tiny(model__batch_size_per_rank=size)) for size in (16, 32, 64)]
    return [solve["result"]["plan_digest"] for solve in solves]


def test_a_channel_is_made_moved_and_moved_back(run: Run, digests: list[str]) -> None:
    first, second, third = digests
    made = run("promote", CHANNEL, first, *SERVER)
    assert (made.code, made.document["version"]) == (0, 1)
    assert f"{CHANNEL}: made, version 1" in made.err
    moved = run("promote", CHANNEL, second.removeprefix("sha256:"), *SERVER)
    assert moved.document["plan_digest"] == second
    assert "moved from version 1 to version 2" in moved.err
    assert moved.err.index(f"from {first}") < moved.err.index(f"to   {second}")
    assert run("promote", CHANNEL, third, *SERVER).document["version"] == 3
    back = run("rollback", CHANNEL, *SERVER)
    assert back.document["plan_digest"] == second
    assert f"from {third}" in back.err
    further = run("rollback", CHANNEL, *SERVER)
    assert further.document["plan_digest"] == first  # and not the third again
    chosen = run("rollback", CHANNEL, "--version", "3", *SERVER)
    assert (chosen.document["plan_digest"], chosen.document["version"]) == (third, 6)
    versions = run("channels", "history", CHANNEL, *SERVER).document["versions"]
    assert [one["plan_digest"] for one in versions] == [third, first, second, third, second, first]


def test_channels_are_listed_and_shown_in_words(run: Run, digests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for digest in digests[:2]:
        run("promote", CHANNEL, digest, *SERVER)
    run("rollback", CHANNEL, *SERVER)
    assert [one["name"] for one in run("channels", *SERVER).document["channels"]] == [CHANNEL]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    texts = [run("channels", *words, *SERVER).err for words in ((), ("show", CHANNEL), ("history", CHANNEL))]
    assert CHANNEL in texts[0]
    assert digests[0] in texts[1]
    assert "back to 1" in texts[2]
    assert [line for text in texts for line in text.splitlines() if len(line) > 80] == []


def test_a_move_is_asked_for_on_a_terminal(run: Run, digests: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = digests
    run("promote", CHANNEL, first, *SERVER)
    answers, asked = [False, True], []

    def confirm(question: str, **_: object) -> bool:
        asked.append(question)
        return answers.pop(0)

    monkeypatch.setattr(move_channel.typer, "confirm", confirm)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    refused = run("promote", CHANNEL, second, *SERVER)
    assert (refused.code, refused.out) == (1, "")
    assert "nothing is changed" in refused.err
    assert run("channels", "show", CHANNEL, *SERVER).document["plan_digest"] == first
    assert run("promote", CHANNEL, second, *SERVER).document["plan_digest"] == second
    assert run("rollback", CHANNEL, "--yes", *SERVER).document["plan_digest"] == first
    assert len(asked) == 2


def test_the_same_plan_changes_nothing(run: Run, digests: list[str], tmp_path: Path, service: Live) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(service.get(f"/v1/plans/{digests[0]}").content)
    assert run("promote", CHANNEL, path, *SERVER).document["version"] == 1
    again = run("promote", CHANNEL, path, *SERVER)
    assert (again.code, again.document["version"]) == (0, 1)
    assert "nothing is changed" in again.err


def test_plans_by_world_size_move_together_and_are_named(run: Run, digests: list[str], service: Live) -> None:
    first, *_ = digests
    alone = service.solve(tiny(hardware__ranks_per_host=1))["result"]["plan_digest"]
    url, members = f"/v1/channels/{CHANNEL}", {"1": alone, "2": first}
    made = service.put(url, {"plan_digest": first, "plan_digests": members}, headers={"If-None-Match": "*"})
    assert made.status_code == 201, made.text
    moved = run("promote", CHANNEL, first, *SERVER)  # one plan for jobs of any size, which is a change
    assert (moved.document["version"], moved.document["plan_digests"]) == (2, {})
    assert f"from {first}, and plans for 1, 2 ranks" in moved.err
    back = run("rollback", CHANNEL, *SERVER)
    assert back.document["plan_digests"] == members
    assert "to   " + first + ", and plans for 1, 2 ranks" in back.err


def test_what_is_not_there_is_refused_with_the_way_out(run: Run, digests: list[str]) -> None:
    unknown = run("promote", CHANNEL, "0" * 64, *SERVER)
    assert unknown.code == 1
    assert "shardplan plan SPEC.json --server http://planner" in unknown.err
    assert "neither a file nor a digest" in run("promote", CHANNEL, "latest", *SERVER).err
    assert "there is no channel" in run("rollback", CHANNEL, *SERVER).err
    run("promote", CHANNEL, digests[0], *SERVER)
    assert "no earlier version" in run("rollback", CHANNEL, *SERVER).err
    assert "no version 9" in run("rollback", CHANNEL, "--version", "9", *SERVER).err
    assert run("channels", "show", "a//b", *SERVER).code == 1


def test_an_empty_variable_of_the_server_is_unset(run: Run, service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_SERVER", "")
    monkeypatch.setenv("SHARDPLAN_TOKEN", "")
    assert run("channels").document == {"channels": []}
    monkeypatch.setenv("SHARDPLAN_SERVER", "planner:8080")
    assert "write http://planner:8080" in run("channels").err


def test_studies_are_listed_shown_and_cancelled(run: Run, service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = [{"field": "model.batch_size_per_rank", "values": [16, 32]}]
    study = service.post("/v1/studies", {"kind": "sweep", "spec": tiny(), "axes": axes}).json()
    (listed,) = run("studies", *SERVER).document["studies"]
    assert listed["id"] == study["id"]
    assert service.get(f"/v1/studies/{study['id']}?wait=60").json()["state"] == "succeeded"
    shown = run("studies", "show", study["id"], *SERVER).document
    assert [point["state"] for point in shown["points"]] == ["planned", "planned"]
    assert run("studies", "cancel", study["id"], *SERVER).document["state"] == "succeeded"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "2 of 2" in run("studies", *SERVER).err
    words = run("studies", "show", study["id"], *SERVER).err
    assert "2 of 2 points have ended" in words
    assert "samples/s" in words
    assert listed["id"] in words
