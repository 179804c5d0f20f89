"""Keys: their form, their digest, and that they are not shown by accident."""

import hashlib
import re

import pytest

from api.http.auth.keys.format import Key


def test_a_key_has_an_id_and_a_secret_of_256_bits() -> None:
    keys = [Key.new() for _ in range(200)]
    assert all(re.fullmatch(r"shardplan_[0-9a-f]{12}_[0-9A-Za-z]{43}", key.text) for key in keys)
    assert len({key.id for key in keys}) == len({key.secret for key in keys}) == 200
    assert len(set("".join(key.secret for key in keys))) == 62
    assert 62**42 < 2**256 < 62**43


def test_a_key_is_read_back() -> None:
    key = Key.new()
    assert Key.parse(key.text) == key
    assert key.digest == hashlib.sha256(key.secret.encode()).hexdigest()
    assert key.has_digest(key.digest)
    assert not key.has_digest(Key.new().digest)


def test_its_secret_is_not_in_its_description() -> None:
    key = Key.new()
    assert key.secret not in f"{key!r} {key}"


@pytest.mark.parametrize("change", ["", "x", "shardplan_", " {}", "{} ", "{}0", "{}\n", "other{}"])
def test_other_texts_are_no_keys(change: str) -> None:
    assert Key.parse(change.format(Key.new().text)) is None
