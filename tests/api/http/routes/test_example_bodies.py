"""Examples that the service hands out: each is accepted where the list says."""

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem


def test_every_example_can_be_posted_as_it_is(live: Live) -> None:
    listed = live.get("/v1/examples").json()["examples"]
    assert {example["path"] for example in listed} == {"/v1/solves", "/v1/measurements", "/v1/cost-models"}
    for example in listed:
        body = live.get(example["url"])
        assert body.headers["content-type"] == "application/json"
        answer = live.request(
            example["method"], example["path"], content=body.content, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code in (200, 201, 202), answer.text
        if example["path"] == "/v1/solves":
            assert live.get(f"{answer.headers['location']}?wait=30").json()["state"] == "succeeded"


def test_examples_are_those_of_the_openapi_document(live: Live) -> None:
    paths = live.get("/openapi.json").json()["paths"]
    for example in live.get("/v1/examples").json()["examples"]:
        content = paths[example["path"]]["post"]["requestBody"]["content"]["application/json"]
        assert content["examples"][example["summary"]]["value"] == live.get(example["url"]).json()


def test_examples_are_sent_once(live: Live) -> None:
    for url in ("/v1/examples", "/v1/examples/three-tables"):
        etag = live.get(url).headers["etag"]
        assert live.get(url, headers={"If-None-Match": etag}).status_code == 304
        assert live.request("HEAD", url).headers["etag"] == etag
    assert_problem(live.get("/v1/examples/nothing"), 404, "not-found")
