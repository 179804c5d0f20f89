"""Hostile bytes: one clear issue, none of the input in it, quickly."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from api.schemas.plan import EvaluationRequest
from api.schemas.spec import SpecDocument
from api.specs.input.json import RejectedDocument, field_names, parse_document, pointer, quoted
from tests.support.service.specs import TINY, raw, tiny
from tests.support.thorough import thorough

#: Bytes that no two JSON readers agree on, or that are no JSON: one issue at the root each.
NOT_JSON = {
    "empty": b"",
    "blank": b" \n",
    "word": b"nul",
    "open": b'{"model": ',
    "utf-16": "{}".encode("utf-16"),
    "utf-16 without mark": "{}".encode("utf-16-le"),
    "utf-32": "{}".encode("utf-32-le"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "latin-1": b'{"name": "caf\xe9"}',
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": -Infinity}',
    "lone surrogate": b'{"name": "\\ud800"}',
    "deep array": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "long integer": b'{"schema_version": ' + b"9" * 5000 + b"}",
    "duplicate key": b'{"name": "a", "name": "b"}',
    "duplicate key deep inside": b'{"model": {"tables": [{"name": "a", "name": "a"}]}}',
    "duplicate key in the second of two objects": b'{"model": {"tables": [{"name": "a"}, {"name": "b", "name": 1}]}}',
    "trailing comma": b'{"name": "a",}',
    "comment": b'{"name": "a"} // no',
    "two documents": b"{}{}",
    "single quotes": b"{'name': 'a'}",
}

#: JSON that breaks a rule: the pointer at which it must be reported.
BROKEN = {
    "1e999": (
        raw(TINY).replace(b'"batch_size_per_rank": 16', b'"batch_size_per_rank": 1e999'),
        "/model/batch_size_per_rank",
    ),
    "float overflow": (
        raw(TINY).replace(b'"pooling_factor": 2.0', b'"pooling_factor": 1e999'),
        "/model/tables/0/pooling_factor",
    ),
    "4000 digits": (
        raw(TINY).replace(b'"num_embeddings": 500', b'"num_embeddings": ' + b"5" * 4000),
        "/model/tables/1/num_embeddings",
    ),
    "2**63": (raw(tiny(model__tables__0__num_embeddings=2**63)), "/model/tables/0/num_embeddings"),
    "zero rows": (raw(tiny(model__tables__0__num_embeddings=0)), "/model/tables/0/num_embeddings"),
    "negative pooling": (raw(tiny(model__tables__0__pooling_factor=-1)), "/model/tables/0/pooling_factor"),
    "true as int": (raw(tiny(model__tables__0__embedding_dim=True)), "/model/tables/0/embedding_dim"),
    "text as int": (raw(tiny(model__batch_size_per_rank="12")), "/model/batch_size_per_rank"),
    "float as int": (raw(tiny(model__batch_size_per_rank=12.5)), "/model/batch_size_per_rank"),
    "NUL in a name": (raw(tiny(name="a\x00b")), "/name"),
    "line break in a name": (raw(tiny(model__tables__0__name="a\r\nSet-Cookie: x")), "/model/tables/0/name"),
    "final line break in a name": (raw(tiny(model__tables__0__name="a\n")), "/model/tables/0/name"),
    "right-to-left name": (raw(tiny(model__tables__0__name="\u202ea")), "/model/tables/0/name"),
    "markup in a name": (raw(tiny(model__tables__0__name="<script>")), "/model/tables/0/name"),
    "formula as a name": (raw(tiny(model__tables__0__name="=cmd")), "/model/tables/0/name"),
    "climbing name": (raw(tiny(model__tables__0__name="../../etc")), "/model/tables/0/name"),
    "long name": (raw(tiny(model__tables__0__name="a" * 10_000)), "/model/tables/0/name"),
    "unknown key": (raw(tiny(model__tabels=[])), "/model/tabels"),
    "unknown key with a slash": (raw(tiny(model__tables__0__constraints={"a/b": 1})), "/model/tables/0/constraints"),
    "no tables": (raw(tiny(model__tables=[])), "/model/tables"),
    "not an object": (b"[]", ""),
    "number as a table": (raw(tiny(model__tables=[1])), "/model/tables/0"),
    "neither features nor shorthand": (raw(tiny(model__tables__0__pooling_factor=None)), "/model/tables/0"),
    "two kinds of access": (
        raw(tiny(model__tables__0__access={"zipf_alpha": 1, "access_cdf": [[1, 1]]})),
        "/model/tables/0/access",
    ),
    "bad point": (
        raw(tiny(model__tables__0__access={"access_cdf": [[0.5, 2.0]]})),
        "/model/tables/0/access/access_cdf/0/1",
    ),
    "text override": (raw(tiny(hardware__overrides={"hbm_bytes": "80"})), "/hardware/overrides/hbm_bytes"),
}


def rejected(body: bytes, model: type = SpecDocument) -> RejectedDocument:
    with pytest.raises(RejectedDocument) as caught:
        parse_document(body, model)
    return caught.value


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_bytes_that_are_not_plain_json_are_one_issue(body: bytes) -> None:
    error = rejected(body)
    assert error.num_issues == 1
    assert error.issues[0].pointer == ""
    assert error.issues[0].code in ("not-json", "duplicate-key")
    assert error.issues[0].hint


@pytest.mark.parametrize(("body", "where"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_rules_are_reported_where_they_are(body: bytes, where: str) -> None:
    error = rejected(body)
    assert where in [issue.pointer for issue in error.issues]
    assert "\x00" not in str(error)
    assert "<script>" not in str(error)
    assert len(str(error)) < 1000


def test_the_tiny_spec_is_accepted() -> None:
    assert parse_document(raw(TINY), SpecDocument).name == "tiny"


def test_integers_are_fine_where_numbers_are_expected() -> None:
    assert (
        parse_document(raw(tiny(model__tables__0__pooling_factor=3)), SpecDocument).model.tables[0].pooling_factor == 3
    )


def test_a_misspelt_field_gets_a_suggestion() -> None:
    (issue,) = rejected(raw(tiny(solver__time_limit_second=3))).issues
    assert (issue.code, issue.pointer) == ("unknown-field", "/solver/time_limit_second")
    assert issue.hint == "did you mean time_limit_seconds?"


def num_calls(work: Callable[[], object]) -> int:
    """Return how many functions are called, compiled ones as well."""
    number = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return number


def test_a_hundred_thousand_errors_are_as_much_work_each_as_a_few_thousand() -> None:
    """Of each table a wrong name, two unknown fields, two missing ones."""
    calls = []
    for num_tables in (1_999, 19_999):
        tables = b",".join([b'{"name": 1, "x": 1, "y": 2}'] * num_tables)
        body = b'{"hardware": {"profile": "x"}, "model": {"batch_size_per_rank": 1, "tables": [' + tables + b"]}}"
        error = rejected(body)
        assert error.num_issues == 5 * num_tables
        assert len(error.issues) == 50
        calls.append(num_calls(partial(rejected, body)))
    assert calls[1] < 11 * calls[0]


@thorough
@pytest.mark.parametrize(
    "inner",
    [
        b'{"name": "a", "features": [' + b",".join([b"{}"] * 2000) + b"]}",
        b'{"name": "a", "access": {"access_cdf": [' + b",".join([b"[]"] * 2000) + b"]}}",
        b'{"name": "a", "constraints": {"ranks": [' + b",".join([b"-1"] * 2000) + b"]}}",
    ],
    ids=["features", "points", "ranks"],
)
def test_lists_inside_tables_cannot_multiply_the_errors(inner: bytes) -> None:
    # 100 tables with 2,000 bad items each: 200,000 findings, if each were one.
    tables = b",".join([inner] * 100)
    error = rejected(b'{"model": {"batch_size_per_rank": 1, "tables": [' + tables + b"]}}")
    assert error.num_issues < 1000


def test_millions_of_unknown_fields_are_one_issue() -> None:
    body = b"{" + b",".join(b'"k%d":1' % number for number in range(300_000)) + b"}"
    error = rejected(body)
    assert error.num_issues == 1
    assert "200000 unknown fields" in error.issues[0].message


def test_an_evaluation_request_has_pointers_below_spec_and_plan() -> None:
    error = rejected(raw({"spec": tiny(name=""), "plan": {"tables": []}}), EvaluationRequest)
    assert {"/spec/name", "/plan/tables", "/plan/world_size"} <= {issue.pointer for issue in error.issues}


def test_pointers_are_escaped() -> None:
    # RFC 6901: "~" is ~0 and "/" is ~1.
    assert pointer(["a/b", 0, "c~d"]) == "/a~1b/0/c~0d"
    assert pointer([]) == ""


def test_quoted_names_are_cut_at_80_characters() -> None:
    assert quoted("a") == '"a"'
    assert quoted("a" * 81) == '"' + "a" * 80 + '..."'


def test_field_names_reach_into_lists() -> None:
    assert {"batch_size_per_rank", "num_poolings", "hbm_bytes_by_rank", "seed"} <= field_names(SpecDocument)
