"""What is said about plans that nothing can price."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from api.schemas.evaluation import EvaluationDocument
from api.services.plans.reports import certificate_of, evaluation_of
from api.specs.parse import parse_evaluation, parse_spec
from cost_models.errors import UnsupportedWork
from planner.domain.formats.canonical_json import plan_digest
from planner.errors import UnsupportedRequest
from tests.support.planning.launching_model import LaunchingModel
from tests.support.service.specs import TINY, raw, tiny


class PricesNothing:
    """A cost model without any formula."""

    name, version = "nothing", "1"

    def predict(self, _work: object, _hardware: object) -> object:
        raise UnsupportedWork(self.name, "kernel fused")


def body(kernel: str, **changes: object) -> bytes:
    """Table a (1000 x 8) and table b (500 x 16), each whole in the accelerator memory of a rank of its own."""
    tables = [
        {
            "name": name,
            "sharding_type": "table_wise",
            "compute_kernel": kernel,
            "shards": [
                {
                    "rank": rank,
                    "row_offset": 0,
                    "num_rows": rows,
                    "column_offset": 0,
                    "num_columns": columns,
                    "tier": "hbm",
                }
            ],
        }
        for rank, (name, rows, columns) in enumerate((("a", 1000, 8), ("b", 500, 16)))
    ]
    return raw({"spec": tiny(), "plan": {"world_size": 2, "ranks_per_host": 2, "tables": tables, **changes}})


def test_rows_outside_the_tier_of_their_kernel_are_a_broken_rule_without_a_price() -> None:
    request, placement = parse_evaluation(body("key_value"))
    evaluation = evaluation_of(replace(request, cost_model=PricesNothing()), placement)
    assert evaluation.valid is False
    assert evaluation.score is None
    assert {violation.code for violation in evaluation.violations} == {"tier", "cache"}  # key_value needs a share, too


def test_a_valid_plan_that_the_model_cannot_price_is_refused_with_the_field_to_change() -> None:
    request, placement = parse_evaluation(body("fused"))
    with pytest.raises(UnsupportedRequest) as caught:
        evaluation_of(replace(request, cost_model=PricesNothing()), placement)
    assert (caught.value.issue.code, caught.value.issue.pointer) == ("unsupported-work", "/spec/cost_model")
    assert caught.value.issue.hint


def rated(content: dict[str, object]) -> EvaluationDocument:
    return evaluation_of(*parse_evaluation(raw(content)))


def test_a_false_digest_is_a_broken_rule() -> None:
    content = json.loads(body("fused", schema_version=1, spec_digest=parse_spec(raw(TINY)).spec_digest))
    true = plan_digest(content["plan"])
    content["plan"]["plan_digest"] = true
    assert (rated(content).valid, rated(content).warnings) == (True, [])
    content["plan"]["plan_digest"] = "sha256:" + "0" * 64
    evaluation = rated(content)
    assert (evaluation.valid, evaluation.num_violations) == (False, 1)
    assert (evaluation.violations[0].code, evaluation.violations[0].pointer) == ("digest-mismatch", "/plan/plan_digest")
    assert true in evaluation.violations[0].message
    assert evaluation.score is not None  # its geometry is whole
    del content["plan"]["schema_version"]  # which the digest covers
    assert rated(content).violations[0].code == "digest-mismatch"


def test_a_plan_for_another_spec_gets_a_warning_and_is_rated() -> None:
    other = parse_spec(raw(tiny(model__batch_size_per_rank=17))).spec_digest
    evaluation = rated(json.loads(body("fused", spec_digest=other)))
    assert evaluation.valid is True
    (warning,) = evaluation.warnings
    assert (warning.code, warning.pointer, warning.severity) == ("spec-mismatch", "/plan/spec_digest", "warning")


def test_another_cost_model_to_rate_by_is_no_other_spec() -> None:
    content = body("fused", spec_digest=parse_spec(raw(TINY)).spec_digest)
    evaluation = evaluation_of(*parse_evaluation(content, cost_model="torchrec"))
    assert evaluation.warnings == []
    assert evaluation.score is not None
    assert evaluation.score["cost_model"].startswith("torchrec@")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda tables: tables[0]["shards"][0].update(num_rows=999), "gap"),
        (lambda tables: tables[0]["shards"].append(tables[0]["shards"][0] | {"rank": 1}), "overlap"),
        (lambda tables: tables[0]["shards"][0].update(row_offset=1), "shard-out-of-range"),
        (lambda tables: tables[0].update(sharding_type="data_parallel"), "cover"),
        (lambda tables: tables[0]["shards"][0].update(rank=2), "rank-out-of-range"),
        (lambda tables: tables.pop(), "missing-table"),
        (lambda tables: tables.append(tables[0]), "table-twice"),
    ],
)
def test_shards_that_are_no_partition_have_no_score(change: Callable[[list], object], code: str) -> None:
    content = json.loads(body("fused"))
    change(content["plan"]["tables"])
    evaluation = rated(content)
    assert code in {violation.code for violation in evaluation.violations}
    assert evaluation.score is None


def test_a_score_has_the_ledger_of_every_rank() -> None:
    score = evaluation_of(*parse_evaluation(body("fused"))).score
    assert score is not None
    for rank in score["ranks"]:
        for tier, lines in rank["ledger_bytes"].items():
            assert sum(lines.values()) == pytest.approx(rank["bytes"][tier], abs=len(lines))
    # Table a has 1000 rows x 8 columns x 4 B of weights, table b 500 x 16 x 4 B.
    assert [rank["ledger_bytes"]["hbm"]["weights"] for rank in score["ranks"]] == [32_000, 32_000]


def test_prices_of_whole_ranks_are_refused_where_the_request_names_them() -> None:
    request, placement = parse_evaluation(body("fused"))
    rated = replace(request, cost_model=LaunchingModel(launch_seconds=1e-6))
    with pytest.raises(UnsupportedRequest) as caught:
        certificate_of(rated, placement, spec_base="/spec", plan_base="/plan")
    assert (caught.value.issue.code, caught.value.issue.pointer) == ("no-certificate", "/spec/cost_model")
    assert "roofline" in caught.value.issue.hint


def test_a_plan_with_narrower_pieces_than_are_listed_is_certified() -> None:
    """Its options are then those of such pieces, too."""
    content = json.loads(body("fused"))
    shard = content["plan"]["tables"][1]["shards"][0]
    content["plan"]["tables"][1] |= {
        "sharding_type": "column_wise",
        "shards": [
            {**shard, "num_columns": 12, "rank": 0},
            {**shard, "num_columns": 4, "column_offset": 12, "rank": 0},
        ],
    }
    request, placement = parse_evaluation(raw(content))
    assert evaluation_of(request, placement).valid
    certificate = certificate_of(request, placement, plan_base="/plan")
    assert certificate["plan"][1]["pieces"] == [[12, 0], [4, 0]]


def cut(spec: dict[str, object], widths: list[int]) -> EvaluationDocument:
    """Table a of the spec on two ranks in pieces of these widths, table b whole."""
    offsets = [sum(widths[:index]) for index in range(len(widths))]
    pieces = [
        {"rank": index, "row_offset": 0, "num_rows": 1000, "column_offset": offset, "num_columns": width}
        for index, (offset, width) in enumerate(zip(offsets, widths, strict=True))
    ]
    scheme = "column_wise" if len(widths) > 1 else "table_wise"
    whole = {"rank": 0, "row_offset": 0, "num_rows": 500, "column_offset": 0, "num_columns": 16}
    tables = [
        {"name": "a", "sharding_type": scheme, "compute_kernel": "fused", "shards": pieces},
        {"name": "b", "sharding_type": "table_wise", "compute_kernel": "fused", "shards": [whole]},
    ]
    return rated({"spec": spec, "plan": {"world_size": 2, "ranks_per_host": 2, "tables": tables}})


def test_pieces_below_the_least_width_are_reported_unless_they_were_asked_for() -> None:
    """A whole table of 16 columns is no piece; two of 16 columns are narrow, two of 32 are not."""
    narrow = cut(tiny(model__tables__0__embedding_dim=32), [16, 16])
    (warning,) = [one for one in narrow.warnings if one.code == "narrow-pieces"]
    assert (narrow.valid, warning.pointer) == (True, "/plan/tables/0")
    assert '"a" (16 columns)' in warning.message
    asked = {"embedding_dim": 32, "constraints": {"min_partition": 16}}
    for spec, widths in (
        (tiny(model__tables__0__embedding_dim=64), [32, 32]),
        (tiny(model__tables__0__embedding_dim=16), [16]),
        (tiny(**{f"model__tables__0__{name}": value for name, value in asked.items()}), [16, 16]),
    ):
        evaluation = cut(spec, widths)
        assert evaluation.valid
        assert [one for one in evaluation.warnings if one.code == "narrow-pieces"] == []
