"""Encodings, conditions and preferences as callers write them."""

import pytest

from api.http.protocol.headers import choose_encoding, preferred_wait
from api.services.preconditions import matches


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", "identity"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("zstd;q=0,gzip; q=0.0", "identity"),
        ("*", "zstd"),
        ("*;q=0", "identity"),
        ("br", "identity"),
        ("GZIP", "gzip"),
        ("zstd;q=nonsense", "identity"),
        ("zstd;q=nan", "identity"),
    ],
)
def test_encodings(header: str, chosen: str) -> None:
    assert choose_encoding(header) == chosen


@pytest.mark.parametrize(
    ("header", "found"),
    [('"a"', True), ('"b", "a"', True), ('W/"a"', True), ("*", True), ("", False), ('"b"', False), ("a", False)],
)
def test_etags(header: str, found: bool) -> None:
    assert matches(header, '"a"') is found


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=10", 10),
        ("respond-async, wait=5", 5),
        ('wait="7"', 7),
        ("Wait = 3", 3),
        ("", None),
        ("wait=soon", None),
        ("wait=-1", None),
        ("await=3", None),
        ("wait=99999999999", None),
        ("wait=61", 60),
    ],
)
def test_preferences(header: str, seconds: int | None) -> None:
    assert preferred_wait(header, 60.0) == seconds
