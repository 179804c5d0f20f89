"""Plans on the launcher's disk."""

import os
import threading
from pathlib import Path

import httpx
import pytest

from api.client import DigestMismatch, PlannerClient, ProblemError, UnexpectedAnswer, fetch, read
from api.client.plan_file import atomic_file, write_atomically
from tests.support.client.plans import tiny_bytes, tiny_plan

ETAG = '"e1"'


class Channel:
    """A service with one channel."""

    def __init__(self) -> None:
        self.content = tiny_bytes()
        self.etag: str | None = ETAG
        self.status = 200
        self.answers: list[int] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        same = self.etag is not None and request.headers.get("If-None-Match") == self.etag
        status = 304 if same and self.status == 200 else self.status
        self.answers.append(status)
        headers = {} if self.etag is None else {"ETag": self.etag}
        return httpx.Response(status, content=self.content if status == 200 else b"", headers=headers)


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def client(channel: Channel) -> PlannerClient:
    return PlannerClient("http://planner", transport=httpx.MockTransport(channel))


def test_first_fetch_writes_and_second_keeps(channel: Channel, client: PlannerClient, tmp_path: Path) -> None:
    path = tmp_path / "new" / "plan.json"
    first, second = fetch(client, "prod", path), fetch(client, "prod", path)
    assert (first.changed, second.changed) == (True, False)
    assert channel.answers == [200, 304]
    assert path.read_bytes() == tiny_bytes()
    assert first.document == second.document == tiny_plan()
    assert len(repr(first)) < len(str(path)) + 200  # a log is no place for a plan
    assert sorted(p.name for p in path.parent.iterdir()) == ["plan.json", "plan.json.etag"]


def test_a_moved_channel_replaces_the_file(channel: Channel, client: PlannerClient, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    fetch(client, "prod", path)
    channel.etag, channel.content = '"e2"', tiny_bytes().replace(b'"tiny"', b'"next"')
    assert fetch(client, "prod", path).changed
    assert b'"next"' in path.read_bytes()


@pytest.mark.parametrize("damage", [b"", b"{}", tiny_bytes()[:-1], tiny_bytes() + b"\n"])
def test_a_damaged_file_is_fetched_again(
    channel: Channel, client: PlannerClient, tmp_path: Path, damage: bytes
) -> None:
    path = tmp_path / "plan.json"
    fetch(client, "prod", path)
    path.write_bytes(damage)
    assert fetch(client, "prod", path).changed
    assert channel.answers == [200, 200]
    assert path.read_bytes() == tiny_bytes()


@pytest.mark.parametrize("note", [b"", b"[]", b'{"etag": 3, "sha256": "x"}'])
def test_a_damaged_note_is_fetched_again(channel: Channel, client: PlannerClient, tmp_path: Path, note: bytes) -> None:
    path = tmp_path / "plan.json"
    fetch(client, "prod", path)
    (tmp_path / "plan.json.etag").write_bytes(note)
    assert fetch(client, "prod", path).changed
    assert channel.answers == [200, 200]


def test_trouble_leaves_the_file_as_it_was(channel: Channel, client: PlannerClient, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    fetch(client, "prod", path)
    channel.status = 404
    with pytest.raises(ProblemError):
        fetch(client, "prod", path)
    channel.status, channel.etag, channel.content = 200, '"e2"', b"<html>"
    with pytest.raises(UnexpectedAnswer):
        fetch(client, "prod", path)
    assert path.read_bytes() == tiny_bytes()


def test_without_an_etag_nothing_is_noted(channel: Channel, client: PlannerClient, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    channel.etag = None
    assert fetch(client, "prod", path).changed
    assert fetch(client, "prod", path).changed
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_a_write_that_fails_leaves_nothing_behind(client: PlannerClient, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.mkdir()
    with pytest.raises(OSError, match=r"plan\.json"):
        fetch(client, "prod", path)
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_read_checks_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(tiny_bytes())
    assert read(path).digest == tiny_plan()["plan_digest"]
    path.write_bytes(tiny_bytes().replace(b'"rank":1', b'"rank":0', 1))
    with pytest.raises(DigestMismatch, match=r"plan\.json says"):
        read(path)


def test_a_private_file_needs_no_change_of_its_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some mounts refuse ``chmod``; backups are private."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refuse)
    path = tmp_path / "private"
    with atomic_file(path) as file:
        file.write(b"content")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"content", 0o600)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, [b"one", b"two"])
    assert pipe.is_fifo()
    reader.join()
    assert received == [b"onetwo"]
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_and_leads_to_the_new_content(tmp_path: Path) -> None:
    plan, link = tmp_path / "plan.json", tmp_path / "current.json"
    plan.write_bytes(b"old")
    link.symlink_to(plan)
    write_atomically(link, [b"new"])
    assert link.is_symlink()
    assert plan.read_bytes() == b"new"
