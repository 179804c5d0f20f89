"""What a message repeats of the input: refused numbers, never texts; and where bytes stop being JSON."""

import json
from collections.abc import Mapping

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_spec
from planner.errors import Issue
from tests.support.service.specs import raw, tiny


def refused(content: bytes) -> Issue:
    with pytest.raises(RejectedDocument) as error:
        parse_spec(content)
    return error.value.issues[0]


def spec(section: str, **fields: object) -> dict[str, object]:
    document = tiny()
    inner = document[section]
    assert isinstance(inner, Mapping)
    return {**document, section: {**inner, **fields}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (spec("model", batch_size_per_rank=0), "0 is below the least value"),
        (spec("model", batch_size_per_rank=-3), "-3 is below the least value"),
        (spec("model", batch_size_per_rank=1.5), "expected a whole number, not 1.5"),
        (spec("hardware", num_hosts=10**9), "1000000000 is above the largest value"),
        (spec("hardware", overrides={"hbm_bytes": -80e9}), "-80000000000 is below the least value"),
        (spec("hardware", overrides={"hbm_bytes_per_second": 0.25}), "0.25 is a rate below 1 bytes per second"),
        (spec("model", tables=[]), "too few items (0)"),
        ({**tiny(), "schema_version": 2}, "2 is not one of the values that are taken"),
        ({**tiny(), "constraints": {"reserved_hbm_fraction": 1}}, "1 is not below the limit"),
    ],
)
def test_refused_numbers_are_repeated(document: dict[str, object], message: str) -> None:
    assert refused(raw(document)).message == message


def test_a_table_is_found_behind_others_that_are_wrong() -> None:
    table = {"name": "a", "num_embeddings": 100, "embedding_dim": 8, "pooling_factor": 1}
    tables = [{**table, "num_embeddings": -1}, {**table, "name": "b", "embedding_dim": -2}]
    with pytest.raises(RejectedDocument) as error:
        parse_spec(raw(spec("model", tables=tables)))
    assert [(one.pointer, one.message) for one in error.value.issues] == [
        ("/model/tables/0/num_embeddings", "-1 is below the least value"),
        ("/model/tables/1/embedding_dim", "-2 is below the least value"),
    ]


def test_numbers_of_an_evaluation_are_repeated() -> None:
    document = {"spec": spec("model", batch_size_per_rank=-7), "plan": {"tables": []}}
    with pytest.raises(RejectedDocument) as error:
        parse_evaluation(raw(document))
    assert "-7 is below the least value" in [one.message for one in error.value.issues]


def test_texts_are_compared_and_not_repeated() -> None:
    issue = refused(raw({**tiny(), "runtime": "torch_recs3cr3t"}))
    assert "s3cr3t" not in issue.message + issue.hint
    assert issue.hint.startswith("did you mean torchrec? use 'torchrec', 'generic'")
    assert refused(raw(spec("model", batch_size_per_rank="-3"))).message == "expected a whole number"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_constant_that_is_no_json_is_found(constant: str) -> None:
    text = f'{{"name": "NaN and -Infinity, \\" NaN",\n  "model": {{"batch": {constant}, "more": NaN}}}}'
    issue = refused(text.encode())
    assert issue.message == f"{constant} is not JSON (line 2, column 22)"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"name": "a",\n "name": "b"}', '"name" stands twice in one object (line 2, column 2)'),
        (
            '{"a": {"b": 1}, "b": {"a": [{"b": "b"}]},\n\n  "a"\n: 2}',
            '"a" stands twice in one object (line 3, column 3)',
        ),
        (
            r'{"model": [{"x\"}": "{", "name": 1, "n\u0061me": 2}]}',
            '"name" stands twice in one object (line 1, column 37)',
        ),
        ('{"<b>": 1, "<b>": 2}', "a key stands twice in one object (line 1, column 12)"),
        ('{"a": 1, "b": {"c": 1, "c": 2}, "a": ', '"c" stands twice in one object (line 1, column 24)'),
    ],
)
def test_a_key_that_stands_twice_is_found(text: str, place: str) -> None:
    """Where it stands again, whatever strings, escapes and further objects are in between."""
    issue = refused(text.encode())
    assert (issue.code, issue.pointer, issue.message) == ("duplicate-key", "", place)


def test_a_number_of_too_many_digits_is_found() -> None:
    text = f'{{"a": "{"1" * 5000}", "b": 0.{"1" * 5000},\n"c": -{"1" * 5000}}}'
    assert refused(text.encode()).message == "the document holds a number with too many digits (line 2, column 6)"


def test_a_number_beyond_all_limits_is_not_repeated() -> None:
    text = json.dumps(spec("model", batch_size_per_rank=0)).replace(
        '"batch_size_per_rank": 0', f'"batch_size_per_rank": 1{"0" * 40}'
    )
    assert refused(text.encode()).message == "above the largest value"
