"""The client against a scripted service."""

import email.utils
import json
import time
from collections.abc import Callable, Sequence

import httpx
import pytest

from api.client import (
    ClientError,
    DigestMismatch,
    NoPlan,
    PlannerClient,
    ProblemError,
    RetryPolicy,
    SolveTimeout,
    UnexpectedAnswer,
    Unreachable,
)
from tests.support.client.plans import tiny_bytes, tiny_plan

DIGEST = str(tiny_plan()["plan_digest"])
Answer = httpx.Response | Exception


class Script:
    """Answers one request after the other from a list, and keeps what was asked and slept."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.sleeps: list[float] = []
        self.now = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    def client(self, attempts: int = 3) -> PlannerClient:
        return PlannerClient(
            "http://planner",
            transport=httpx.MockTransport(self),
            retry=RetryPolicy(attempts=attempts, first_delay_seconds=1.0, max_delay_seconds=20.0),
            sleep=self.sleep,
            clock=lambda: self.now,
        )


def solve_answer(state: str, status: int = 200, digest: str | None = None) -> httpx.Response:
    result = None if digest is None else {"plan_digest": digest, "termination": {"reason": "FEASIBLE"}}
    return httpx.Response(status, json={"id": "s1", "state": state, "result": result})


def plan_answer(content: bytes | None = None, **headers: str) -> httpx.Response:
    sent = {"ETag": '"e1"', "X-Plan-Digest": DIGEST} | {k.replace("_", "-"): v for k, v in headers.items()}
    return httpx.Response(200, content=tiny_bytes() if content is None else content, headers=sent)


def problem(status: int, **fields: object) -> httpx.Response:
    return httpx.Response(status, content=json.dumps(fields), headers={"Content-Type": "application/problem+json"})


def test_submit_asks_the_service_to_wait() -> None:
    script = Script(solve_answer("succeeded", digest=DIGEST))
    document = script.client().submit({"name": "n"}, wait_seconds=500)
    assert document["state"] == "succeeded"
    (request,) = script.requests
    assert (request.method, request.url.path) == ("POST", "/v1/solves")
    assert request.headers["Prefer"] == "wait=60"
    assert request.headers["Content-Type"] == "application/json"
    assert request.extensions["timeout"]["read"] == 90.0  # 30 s for the network, 60 s asked of the service
    assert request.content == b'{"name":"n"}'


def test_submit_without_waiting_sends_no_preference() -> None:
    script = Script(solve_answer("queued", 202))
    assert script.client().submit({})["state"] == "queued"
    assert "Prefer" not in script.requests[0].headers


def test_solve_polls_until_the_end() -> None:
    script = Script(solve_answer("queued", 202), solve_answer("running"), solve_answer("succeeded", digest=DIGEST))
    document = script.client().solve({}, wait_seconds=100)
    assert document["result"]["plan_digest"] == DIGEST
    assert [str(r.url) for r in script.requests[1:]] == [
        "http://planner/v1/solves/s1?wait=60",
        "http://planner/v1/solves/s1?wait=60",
    ]
    assert script.sleeps == [1.0]  # an answer that came at once is not asked again at once


def test_solve_gives_up_at_its_deadline() -> None:
    script = Script(*[solve_answer("running") for _ in range(5)])
    with pytest.raises(SolveTimeout, match="still running after 3 s") as caught:
        script.client().solve({}, wait_seconds=3)
    assert caught.value.solve["id"] == "s1"
    assert sum(script.sleeps) == 3.0


def test_plan_of_fetches_by_digest() -> None:
    script = Script(plan_answer())
    plan = script.client().plan_of({"id": "s1", "result": {"plan_digest": DIGEST}})
    assert plan.document == tiny_plan()
    assert script.requests[0].url.path == f"/v1/plans/{DIGEST}"


def test_plan_of_a_solve_without_a_plan_says_why() -> None:
    solve = {"id": "s1", "state": "succeeded", "result": {"termination": {"reason": "INFEASIBLE"}}}
    with pytest.raises(NoPlan, match="ended as succeeded without a plan: INFEASIBLE"):
        Script().client().plan_of(solve)


def test_plan_of_a_solve_without_a_plan_passes_on_what_helps() -> None:
    fixes = [{"message": 'allow column_wise for table "user"'}, {"message": "use 4 hosts"}]
    shortfall = {"message": "HBM is short by 3 GiB", "hint": "allow uvm kernels"}
    result = {
        "termination": {"reason": "INFEASIBLE"},
        "shortfalls": [shortfall],
        "diagnosis": {"fixes": fixes},
    }
    with pytest.raises(NoPlan) as caught:
        Script().client().plan_of({"id": "s1", "state": "succeeded", "result": result})
    assert str(caught.value) == (
        "solve s1 ended as succeeded without a plan: INFEASIBLE; HBM is short by 3 GiB (allow uvm kernels);"
        ' what would give a plan: allow column_wise for table "user"; what would give a plan: use 4 hosts'
    )
    failure = {"code": "out-of-memory", "message": "the solver ran out of memory", "hint": "raise the limit"}
    with pytest.raises(NoPlan, match=r"no reason; the solver ran out of memory \(raise the limit\)$"):
        Script().client().plan_of({"id": "s2", "state": "failed", "result": None, "error": failure})


def test_validate_returns_the_report() -> None:
    script = Script(httpx.Response(200, json={"valid": True, "warnings": []}))
    assert script.client().validate({"name": "n"}) == {"valid": True, "warnings": []}
    assert script.requests[0].url.path == "/v1/specs:validate"


def test_channel_fetch_and_unchanged_channel() -> None:
    script = Script(plan_answer(), httpx.Response(304, headers={"ETag": '"e1"'}))
    with script.client() as client:
        plan = client.fetch_channel("ads/ranker/prod")
        assert plan is not None
        assert (plan.content, plan.digest, plan.etag) == (tiny_bytes(), DIGEST, '"e1"')
        assert len(repr(plan)) < 200  # a log is no place for a plan
        assert client.fetch_channel("ads/ranker/prod", etag=plan.etag) is None
    assert [r.url.path for r in script.requests] == ["/v1/channels/ads/ranker/prod/plan"] * 2
    assert [r.headers.get("If-None-Match") for r in script.requests] == [None, '"e1"']


@pytest.mark.parametrize("name", ["", "a//b", "/a", "a/../b", "."])
def test_names_that_are_no_channels(name: str) -> None:
    with pytest.raises(ValueError, match="Expected a channel name"):
        Script().client().fetch_channel(name)


def test_the_digest_is_recomputed() -> None:
    moved = tiny_plan()
    moved["tables"][0]["shards"][0]["rank"] = 0
    script = Script(plan_answer(json.dumps(moved).encode()))
    with pytest.raises(DigestMismatch, match="header X-Plan-Digest says"):
        script.client().fetch_channel("prod")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (plan_answer(X_Plan_Digest="sha256:" + "0" * 64), "the header X-Plan-Digest says sha256:000"),
        (plan_answer(tiny_bytes().replace(DIGEST.encode(), b"sha256:1")), "the plan says sha256:1"),
    ],
)
def test_a_plan_that_claims_another_digest(answer: httpx.Response, message: str) -> None:
    with pytest.raises(DigestMismatch, match=message):
        Script(answer).client().fetch_channel("prod")


def test_a_good_plan_under_the_wrong_address() -> None:
    with pytest.raises(DigestMismatch, match="the request says sha256:abc"):
        Script(plan_answer()).client().get_plan("sha256:abc")


def test_answers_that_are_not_the_services() -> None:
    with pytest.raises(UnexpectedAnswer, match="the plan is not valid JSON"):
        Script(plan_answer(b"<html>login</html>")).client().fetch_channel("prod")
    with pytest.raises(UnexpectedAnswer, match="not the document of a solve"):
        Script(httpx.Response(200, json={"ok": True})).client().submit({})
    with pytest.raises(UnexpectedAnswer, match="no ETag was sent"):
        Script(httpx.Response(304)).client().fetch_channel("prod")


def test_problem_documents_become_errors() -> None:
    errors = [{"pointer": f"/model/tables/{i}", "message": "zero rows"} for i in range(20)]
    script = Script(problem(422, title="Invalid spec", detail="20 errors", retryable=False, errors=errors))
    with pytest.raises(ProblemError) as caught:
        script.client().submit({})
    assert caught.value.status == 422
    assert len(caught.value.errors) == 20
    assert str(caught.value).startswith("422 Invalid spec: 20 errors; /model/tables/0: zero rows; ")
    assert str(caught.value).endswith("and 13 more")  # 21 lines, 8 shown
    assert len(script.requests) == 1  # a refusal is not asked again


def test_hints_of_the_service_are_passed_on() -> None:
    errors = [
        {"pointer": "/hardware/profile", "message": "no such profile", "hint": "did you mean dgx-h100-80g?"},
        {"pointer": "/name", "message": "too long", "hint": ""},
    ]
    script = Script(problem(422, title="The document breaks rules", errors=errors))
    with pytest.raises(ProblemError) as caught:
        script.client().submit({})
    assert str(caught.value) == (
        "422 The document breaks rules; /hardware/profile: no such profile (did you mean dgx-h100-80g?);"
        " /name: too long"
    )


def test_an_error_without_a_problem_document() -> None:
    with pytest.raises(ProblemError, match="404 Not Found") as caught:
        Script(httpx.Response(404, content=b"nginx")).client().get_plan(DIGEST)
    assert caught.value.errors == ()


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        httpx.Response(503),
        httpx.Response(502),
        httpx.Response(429),
    ],
)
def test_passing_trouble_is_tried_again(failure: Answer) -> None:
    script = Script(failure, failure, plan_answer())
    assert script.client().get_plan(DIGEST).digest == DIGEST
    first, second = script.sleeps
    assert 0.5 <= first <= 1.0
    assert 1.0 <= second <= 2.0


def test_retry_after_is_honoured_and_capped() -> None:
    date = email.utils.formatdate(time.time() + 10, usegmt=True)
    waits: tuple[str | bytes, ...] = ("7", "3600", date, b"\xb2")  # a power of two is no number of seconds
    script = Script(*[httpx.Response(503, headers=[("Retry-After", wait)]) for wait in waits], plan_answer())
    assert script.client(attempts=5).get_plan(DIGEST).digest == DIGEST
    assert script.sleeps[:2] == [7.0, 20.0]
    assert 8.0 <= script.sleeps[2] <= 10.0
    assert 4.0 <= script.sleeps[3] <= 8.0  # not understood: backoff before attempt 5


@pytest.mark.parametrize(
    ("failures", "error", "message"),
    [
        ([httpx.ConnectError("refused")] * 3, Unreachable, "after 3 attempts: ConnectError: refused"),
        ([problem(503, title="Queue full", retryable=True)] * 3, ProblemError, "503 Queue full"),
    ],
)
def test_trouble_that_stays(failures: Sequence[Answer], error: type[ClientError], message: str) -> None:
    script = Script(*failures)
    with pytest.raises(error, match=message):
        script.client().get_plan(DIGEST)
    assert len(script.requests) == 3
    assert len(script.sleeps) == 2


def test_a_url_that_is_none_fails_at_once() -> None:
    with PlannerClient("planner:8080", sleep=lambda seconds: None) as client, pytest.raises(Unreachable):
        client.get_plan(DIGEST)


def test_promote_creates_or_moves_on_condition() -> None:
    script = Script(httpx.Response(201, json={"name": "prod"}), httpx.Response(200, json={"name": "prod"}))
    client = script.client()
    client.promote("prod", DIGEST)
    client.promote("prod", DIGEST, if_match='"c1"')
    first, second = script.requests
    assert (first.method, first.url.path) == ("PUT", "/v1/channels/prod")
    assert json.loads(first.content) == {"plan_digest": DIGEST}
    assert (first.headers["If-None-Match"], first.headers.get("If-Match")) == ("*", None)
    assert (second.headers.get("If-None-Match"), second.headers["If-Match"]) == (None, '"c1"')


def test_promote_whose_first_answer_was_lost_has_succeeded() -> None:
    script = Script(
        httpx.ReadTimeout("lost"), problem(412, title="Moved"), httpx.Response(200, json={"plan_digest": DIGEST})
    )
    assert script.client().promote("prod", DIGEST, if_match='"c1"')["plan_digest"] == DIGEST


def test_promote_that_lost_the_race_says_so() -> None:
    script = Script(problem(412, title="Moved"), httpx.Response(200, json={"plan_digest": "sha256:other"}))
    with pytest.raises(ProblemError, match="412 Moved"):
        script.client().promote("prod", DIGEST, if_match='"c1"')


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RetryPolicy(attempts=0), "attempts >= 1"),
        (lambda: RetryPolicy(first_delay_seconds=2, max_delay_seconds=1), "0 <= first_delay_seconds"),
    ],
)
def test_retry_policies_that_make_no_sense(make: Callable[[], RetryPolicy], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_measurements_are_posted_until_they_are_answered() -> None:
    summary = {"measurements_digest": "sha256:" + "1" * 64}
    script = Script(httpx.ConnectError("refused"), httpx.Response(201, json=summary))
    assert script.client().post_measurements({"steps": 3, "plan_digest": DIGEST}) == summary
    for request in script.requests:
        assert (request.method, request.url.path) == ("POST", "/v1/measurements")
        assert json.loads(request.content) == {"steps": 3, "plan_digest": DIGEST}
