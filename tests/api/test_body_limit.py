"""Bodies that are too large, compressed or of another kind are refused before they are read."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.live import Live, settings_for
from tests.api.problems import assert_problem
from tests.api.specs import TINY, raw

JSON = {"Content-Type": "application/json"}
LIMIT = 64 * 1024


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> object:
    with Live.of(tmp_path_factory.mktemp("small"), max_body_bytes=LIMIT) as live:
        yield live


class Chunks:
    """A body in chunks of 16 KiB that counts how much of it was taken."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes, self.taken = num_bytes, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.taken < self.num_bytes:
            self.taken += 16_384
            yield b" " * 16_384


def test_a_body_at_the_limit_is_read_and_one_byte_more_is_not(small: Live) -> None:
    at_limit = raw(TINY).ljust(LIMIT)
    assert small.request("POST", "/v1/specs:validate", content=at_limit, headers=JSON).status_code == 200
    refused = small.request("POST", "/v1/specs:validate", content=at_limit + b" ", headers=JSON)
    assert str(LIMIT) in assert_problem(refused, 413, "body-too-large")["detail"]
    assert small.num_solves() == 0


def test_a_body_without_a_length_is_refused_as_it_crosses(small: Live) -> None:
    refused = small.request("POST", "/v1/solves", content=Chunks(10 * LIMIT), headers=JSON)
    assert_problem(refused, 413, "body-too-large")
    assert small.num_solves() == 0


@pytest.mark.parametrize("length", ["99999999999999999999999999", str(LIMIT + 1)])
def test_a_length_beyond_the_limit_is_refused_unread(small: Live, length: str) -> None:
    body = Chunks(16_384)
    refused = small.request("POST", "/v1/solves", content=body, headers={**JSON, "Content-Length": length})
    assert_problem(refused, 413, "body-too-large")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "zstd"},
    ],
)
def test_bodies_of_another_kind(small: Live, headers: dict[str, str]) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    assert_problem(small.request("POST", "/v1/solves", content=bomb, headers=headers), 415, "unsupported-media-type")


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON; charset=UTF-8"])
def test_json_is_json(small: Live, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    assert small.request("POST", "/v1/specs:validate", content=raw(TINY), headers=headers).status_code == 200


def test_a_missing_body_is_an_empty_document(small: Live) -> None:
    problem = assert_problem(small.post("/v1/solves"), 422, "invalid-problem")
    assert problem["errors"][0]["message"] == "the body is empty"


def test_the_default_limit_is_32_mebibytes(tmp_path: Path) -> None:
    assert settings_for(tmp_path).max_body_bytes == 33_554_432
