"""Deduplicated ids in a spec: who can do it, what becomes of the setting, what is said where repeats are unknown."""

from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from tests.support.service.specs import raw

SEQUENCE: dict[str, Any] = {
    "name": "clicked",
    "num_embeddings": 1000,
    "embedding_dim": 64,
    "pooling": "none",
    "pooling_factor": 20,
    "access": {"zipf_alpha": 1.05, "ids": "hashed"},
}
BAGS = {"name": "item", "num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 1}


def spec(setting: str | None = "auto", *tables: dict[str, Any], **changes: Any) -> bytes:
    model: dict[str, Any] = {"batch_size_per_rank": 64, "tables": list(tables) or [SEQUENCE, BAGS]}
    if setting is not None:
        model["use_index_dedup"] = setting
    return raw({"model": model, "hardware": {"profile": "dgx-h100-80g"}, **changes})


def issues(content: bytes) -> dict[str, tuple[str, str]]:
    with pytest.raises(RejectedDocument) as refused:
        parse_spec(content)
    return {issue.pointer: (issue.message, issue.hint) for issue in refused.value.issues}


def test_settings_become_those_of_the_problem() -> None:
    found = [parse_spec(spec(setting)).problem.use_index_dedup for setting in (None, "off", "on", "auto")]
    assert found == [False, False, True, None]


def test_a_spec_that_says_nothing_keeps_its_digest_and_its_assumptions() -> None:
    plain, off, on, auto = (parse_spec(spec(setting)) for setting in (None, "off", "on", "auto"))
    assert plain.spec_digest == off.spec_digest
    assert len({one.spec_digest for one in (plain, on, auto)}) == 3
    assert plain.assumptions == off.assumptions
    assert "use_index_dedup" not in str(plain.spec)


def test_all_that_rules_it_out_is_listed_at_once() -> None:
    goals = [{"name": "step_time"}, {"name": "fullest_rank", "tolerance": 0.1}]
    found = issues(spec("on", runtime="torcheasyrec", cost_model="torchrec", objectives=goals))
    assert found.keys() == {"/runtime", "/cost_model", "/objectives"}
    assert found["/runtime"][0] == "the runtime torcheasyrec does not deduplicate ids"
    assert found["/runtime"][1].startswith("use a runtime that does: torchrec or dynamicemb")
    assert found["/cost_model"][1] == "use the cost model roofline, or set model.use_index_dedup to off"


@pytest.mark.parametrize("setting", ["on", "auto"])
def test_processors_do_not_deduplicate(setting: str) -> None:
    found = issues(spec(setting, hardware={"profile": "cpu-2s-genoa-200g"}))
    message, hint = found["/model/use_index_dedup"]
    assert message == "FBGEMM deduplicates ids on GPUs alone, and cpu-2s-genoa-200g has none"
    assert hint == "set it to off, or plan for hardware with GPUs"


def test_there_must_be_sequences() -> None:
    message, hint = issues(spec("auto", BAGS))["/model/use_index_dedup"]
    assert message == "ids of sequences are deduplicated, and no table has the pooling none"
    assert hint == "set it to off: the sum of a bag needs every id of it"


def test_requests_exchange_no_ids() -> None:
    serving = {"samples_per_request": 10}
    model = {"use_index_dedup": "on", "pipeline": "none", "tables": [{**SEQUENCE, "optimizer": "none"}]}
    content = {
        "model": model,
        "hardware": {"profile": "inference-6card-m2"},
        "objective": "request_latency",
        "cost_model": "serving",
        "serving": serving,
    }
    assert "a host that serves exchanges none" in issues(raw(content))["/model/use_index_dedup"][0]


def test_one_of_two_choices_is_stated() -> None:
    def on_groups(setting: str, size: object) -> bytes:
        hardware = {"profile": "dgx-h100-80g", "replica_groups": {"sharding_group_size": size}}
        return spec(setting, {**SEQUENCE, "optimizer": "sgd"}, hardware=hardware)

    where = "/hardware/replica_groups/sharding_group_size"
    assert issues(on_groups("auto", "auto"))[where][1] == "give one size, or set model.use_index_dedup to on or off"
    for setting, size in (("auto", 4), ("on", "auto"), ("off", [2, 4])):
        parse_spec(on_groups(setting, size))


def test_other_words_are_refused() -> None:
    assert "/model/use_index_dedup" in issues(spec("yes"))


def repeats(request: SolveRequest) -> list[str]:
    return [warning.message for warning in request.warnings if warning.code == "repeats-unknown"]


def test_unknown_repeats_are_warned_of() -> None:
    unknown = {key: value for key, value in SEQUENCE.items() if key != "access"}
    (message,) = repeats(parse_spec(spec("auto", {**unknown, "name": "seen"}, SEQUENCE, BAGS)))
    assert message.startswith('nothing says how often ids repeat in "seen":')
    assert repeats(parse_spec(spec("on"))) == []
    assert repeats(parse_spec(spec("off", unknown))) == []
