"""Files of learned models: what is written is read again, and whatever else is refused with its reason."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cost_models.errors import InvalidModelFile
from cost_models.learned.document.file import (
    MAX_FILE_BYTES,
    document_digest,
    model_bytes,
    parse_model,
)
from tests.support.cost_models.launches import document
from tests.support.cost_models.shard_work import plain_hardware, shard_work


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file whose document was changed, with the digest that it then has."""
    pytest.importorskip("torch")
    found: Any = copy.deepcopy(document())
    change(found)
    found["digest"] = document_digest(found)
    return model_bytes(found)


def test_a_model_that_was_written_and_read_predicts_the_same() -> None:
    pytest.importorskip("torch")
    first = parse_model(model_bytes(document()))
    second = parse_model(model_bytes(json.loads(model_bytes(document()))))
    work = shard_work(num_ranks=4, ranks_per_host=4, batch_outputs=2048.0, lookups=np.array([1e4, 1e5]))
    seconds = [model.predict(work, plain_hardware()).seconds for model in (first, second)]
    np.testing.assert_array_equal(*seconds)
    assert first.version == second.version == str(document()["digest"])[7:19]
    assert first.device == "a made-up machine"
    assert first.trained_on["launches"] == 600


def change_weight(found: dict[str, Any]) -> None:
    found["compute"]["networks"][0]["shard_out"][0][0] = -1.0


def ragged(found: dict[str, Any]) -> None:
    found["compute"]["networks"][0]["shard_out"][0].append(1.0)


def text_for_number(found: dict[str, Any]) -> None:
    found["compute"]["networks"][0]["shard_bias"][0] = "1.0"


def one_too_many(found: dict[str, Any]) -> None:
    found["compute"]["networks"][0]["shard_bias"].append(1.0)


def too_large(found: dict[str, Any]) -> None:
    found["compute"]["feature_mean"][0] = 1e300


def no_scale(found: dict[str, Any]) -> None:
    found["compute"]["feature_scale"][0] = 0.0


def foreign_feature(found: dict[str, Any]) -> None:
    found["compute"]["features"][0] = "os.system"


def negative_physics(found: dict[str, Any]) -> None:
    found["compute"]["physics"]["seconds"][0][0] = -1e-9


def backward_range(found: dict[str, Any]) -> None:
    found["compute"]["ranges"]["lookups"] = [5.0, 4.0]


def missing_range(found: dict[str, Any]) -> None:
    del found["compute"]["ranges"]["lookups"]


def no_interval(found: dict[str, Any]) -> None:
    found["compute"]["intervals"] = []


def no_coverage(found: dict[str, Any]) -> None:
    found["compute"]["intervals"][0]["coverage"] = 1.5


def whole_number_beyond_floats(found: dict[str, Any]) -> None:
    found["compute"]["intervals"][0]["coverage"] = 10**400


def endless_interval(found: dict[str, Any]) -> None:
    found["compute"]["intervals"][0]["quantiles"][0] = 1e18


def half_rank(found: dict[str, Any]) -> None:
    found["compute"]["contention"] = [1.5, 4]


def extra_member(found: dict[str, Any]) -> None:
    found["compute"]["code"] = "print(1)"


def many_networks(found: dict[str, Any]) -> None:
    found["compute"]["networks"] *= 20


def nothing_learned(found: dict[str, Any]) -> None:
    found["compute"] = None


def control_character(found: dict[str, Any]) -> None:
    found["name"] = "a\x1b[2Jb"


def another_version(found: dict[str, Any]) -> None:
    found["format_version"] = 1


def another_format(found: dict[str, Any]) -> None:
    found["format"] = "pickle"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (change_weight, "shard_out >= 0"),
        (ragged, r"compute.networks\[0\].shard_out: expected rows of equal length"),
        (text_for_number, r"compute.networks\[0\].shard_bias: expected numbers"),
        (one_too_many, r"shard_bias of shape \(4,\), not \(5,\)"),
        (too_large, "compute.feature_mean: expected finite numbers"),
        (no_scale, "feature_scale > 0"),
        (foreign_feature, "expected different features|Expected different features"),
        (negative_physics, "none of them negative"),
        (backward_range, "low <= high"),
        (missing_range, "Expected ranges of"),
        (no_interval, "Expected 1 intervals"),
        (no_coverage, "0 < coverage < 1"),
        (whole_number_beyond_floats, "expected a finite number"),
        (endless_interval, "quantiles from 0 to"),
        (half_rank, "compute.contention: expected whole numbers"),
        (extra_member, "compute: has members in addition to"),
        (many_networks, "at most 16 networks"),
        (nothing_learned, "a fitted compute model"),
        (control_character, "name: expected a printable text"),
        (another_version, "format_version: expected 2"),
        (another_format, 'format: expected "shardplan-cost-model"'),
    ],
)
def test_what_does_not_belong_is_refused(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    with pytest.raises(InvalidModelFile, match=reason):
        parse_model(changed(change))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON"),
        (b"\x80\x04\x95", "is not JSON"),
        (b"\xff\xfe{}", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected an object"),
        (b"{}", "lacks format"),
        (b'{"a": NaN}', "has NaN, which is no number"),
        (b'{"a": 1, "a": 2}', "one name twice"),
        (b" " * (MAX_FILE_BYTES + 1), "more than 4194304"),
    ],
)
def test_what_is_no_model_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidModelFile, match=reason):
        parse_model(content)


def test_a_number_that_became_infinite_is_refused() -> None:
    content = model_bytes(document(40)).replace(b'"feature_mean":[', b'"feature_mean":[1e999', 1)
    with pytest.raises(InvalidModelFile, match="cannot write"):
        parse_model(content)


def test_a_file_that_was_edited_is_refused() -> None:
    found: Any = copy.deepcopy(document(40))
    found["name"] = "another"
    with pytest.raises(InvalidModelFile, match="digest: does not match"):
        parse_model(json.dumps(found).encode())


def test_only_so_much_is_read() -> None:
    with pytest.raises(InvalidModelFile, match="more than"):
        parse_model(bytes(MAX_FILE_BYTES + 1))
