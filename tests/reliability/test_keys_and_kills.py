"""One key, many requests at once, and a server that is killed among them: it happens once."""

import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.contracts.race import race
from tests.support.service.problems import assert_problem
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import thorough

_NUM_ROUNDS, _NUM_REQUESTS, _SEED = 3, 64, 16
#: Far from all, so that the server dies among them.
_MOST_ANSWERED = 16


@dataclass(slots=True)
class Answers:
    """What came back of requests with one key."""

    statuses: list[int] = field(default_factory=list)
    made: set[str] = field(default_factory=set)


def at_once(server: Server, number: int, answers: Answers) -> None:
    """Send many requests with one key; every eighth is another one, which the key must not make next to the first."""
    headers = {"Idempotency-Key": f"key-{number}"}

    def submit(index: int) -> None:
        spec = tiny(name=f"of-{number}", model__tables__0__num_embeddings=5000 + number + 1000 * (index % 8 == 0))
        try:
            answer = server.client.post("/v1/solves?fresh=true", json=spec, headers=headers)
        except httpx.TransportError:
            return
        if answer.status_code == 409:
            assert_problem(answer, 409, "key-in-flight")
            assert answer.headers["retry-after"]
        elif answer.status_code == 422:
            assert_problem(answer, 422, "key-reused")
        else:
            assert answer.status_code in (200, 202), answer.text
            answers.made.add(answer.headers["location"])
        answers.statuses.append(answer.status_code)

    assert race(_NUM_REQUESTS, submit) == [None] * _NUM_REQUESTS


@thorough
def test_a_key_happens_once_whenever_the_server_dies(root: Path, tmp_path: Path) -> None:
    draw, before = random.Random(_SEED), []
    for number in range(_NUM_ROUNDS):
        server, answers = Server(root, tmp_path).wait_until_ready(), Answers()
        num_answered = draw.randrange(_MOST_ANSWERED)

        def kill(server: Server = server, answers: Answers = answers, num_answered: int = num_answered) -> None:
            until = time.monotonic() + 30
            while len(answers.statuses) < num_answered and time.monotonic() < until:
                time.sleep(0.001)
            server.process.send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        at_once(server, number, answers)
        killer.join()
        server.stop(signal.SIGKILL)
        assert num_answered <= len(answers.statuses) < _NUM_REQUESTS
        assert len(answers.made) <= 1
        before.append(answers.made)
    server = Server(root, tmp_path).wait_until_ready()
    try:
        for number, made in enumerate(before):
            after = Answers()
            at_once(server, number, after)
            (location,) = after.made
            assert made <= {location}
            assert server.client.get(f"{location}?wait=60").json()["state"] == "succeeded"
        assert len(server.client.get("/v1/solves?page_size=500").json()["solves"]) == _NUM_ROUNDS
    finally:
        server.stop()
