"""What is said about plans that nothing can price."""

from dataclasses import replace

import pytest

from api.convert import parse_evaluation
from api.report import evaluation_of
from cost_models.errors import UnsupportedWork
from planner.errors import UnsupportedRequest
from tests.api.specs import raw, tiny


class PricesNothing:
    """A cost model without any formula."""

    name, version, ledger = "nothing", "1", "exact"

    def predict(self, _work: object, _hardware: object) -> object:
        raise UnsupportedWork(self.name, "kernel fused")


def body(kernel: str) -> bytes:
    """Table a (1000 x 8) and table b (500 x 16), each whole on a rank of its own."""
    tables = [
        {
            "name": name,
            "sharding_type": "table_wise",
            "compute_kernel": kernel,
            "shards": [{"rank": rank, "row_offset": 0, "num_rows": rows, "column_offset": 0, "num_columns": columns}],
        }
        for rank, (name, rows, columns) in enumerate((("a", 1000, 8), ("b", 500, 16)))
    ]
    return raw({"spec": tiny(), "plan": {"world_size": 2, "ranks_per_host": 2, "tables": tables}})


def test_a_kernel_that_this_version_does_not_run_is_a_broken_rule_without_a_price() -> None:
    evaluation = evaluation_of(*parse_evaluation(body("fused_uvm")))
    assert evaluation.valid is False
    assert evaluation.score is None
    assert {violation.code for violation in evaluation.violations} == {"kernel"}


def test_a_valid_plan_that_the_model_cannot_price_is_refused_with_the_field_to_change() -> None:
    request, placement = parse_evaluation(body("fused"))
    with pytest.raises(UnsupportedRequest) as caught:
        evaluation_of(replace(request, cost_model=PricesNothing()), placement)
    assert (caught.value.issue.code, caught.value.issue.pointer) == ("unsupported-work", "/spec/cost_model")
    assert caught.value.issue.hint


def test_a_score_has_the_ledger_of_every_rank() -> None:
    score = evaluation_of(*parse_evaluation(body("fused"))).score
    assert score is not None
    for rank in score.ranks:
        assert sum(rank.ledger_bytes.values()) == pytest.approx(rank.bytes["hbm"], abs=len(rank.ledger_bytes))
    # Table a has 1000 rows x 8 columns x 4 B of weights, table b 500 x 16 x 4 B.
    assert [rank.ledger_bytes["weights"] for rank in score.ranks] == [32_000, 32_000]
