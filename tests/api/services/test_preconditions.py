"""Entity tags as RFC 9110 compares them."""

import pytest

from api.services.errors import ApiError
from api.services.preconditions import failed_condition, matches

ETAG = '"v1-a"'


@pytest.mark.parametrize(
    ("header", "weakly", "strongly"),
    [
        (ETAG, True, True),
        (f'"b", {ETAG}', True, True),
        (f'"b",{ETAG}\t, ,"c"', True, True),
        (f"W/{ETAG}", True, False),
        (f'W/"b", {ETAG}', True, True),
        ("*", True, True),
        (" * ", True, True),
        ('"*"', False, False),
        ('"b"', False, False),
        ('"b,v1-a"', False, False),  # one tag with a comma
        (f'"x{ETAG}y"', None, None),
        ("v1-a", None, None),
        (f"{ETAG} {ETAG}", None, None),
        (f"*, {ETAG}", None, None),
        (f"w/{ETAG}", None, None),
        ('"v1-a', None, None),
        ("", None, None),
        (",", None, None),
    ],
)
def test_lists_of_tags(header: str, weakly: bool | None, strongly: bool | None) -> None:
    assert matches(header, ETAG) is bool(weakly)
    if strongly is None:
        for conditions in ({"if_match": header, "if_none_match": None}, {"if_match": None, "if_none_match": header}):
            for etag in (ETAG, None):
                with pytest.raises(ApiError, match="a list of tags"):
                    failed_condition(etag, **conditions)
        return
    assert failed_condition(ETAG, if_match=header, if_none_match=None) == (None if strongly else "If-Match")
    assert failed_condition(None, if_match=header, if_none_match=None) == "If-Match"
    assert failed_condition(ETAG, if_match=None, if_none_match=header) == ("If-None-Match" if weakly else "missing")
    assert failed_condition(None, if_match=None, if_none_match=header) is None


def test_conditions_together() -> None:
    assert failed_condition(ETAG, if_match=ETAG, if_none_match='"b"') is None
    assert failed_condition(ETAG, if_match=ETAG, if_none_match="*") == "If-None-Match"
    assert failed_condition(ETAG, if_match='"b"', if_none_match="*") == "If-Match"
    assert failed_condition(ETAG, if_match=None, if_none_match=None) == "missing"
    assert failed_condition(None, if_match=None, if_none_match=None) is None


def test_a_weak_tag_of_a_reader_is_compared_without_its_mark() -> None:
    assert matches('"a"', 'W/"a"')
