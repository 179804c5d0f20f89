"""Plans that outsiders recomputed by hand from documents and papers: the figures that are right."""

import json
from typing import Any

import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_evaluation, parse_spec
from api.specs.references.resolve import Library
from api.specs.references.statistics_document import parse_statistics
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Phase, Scheme, Tier
from planner.access.table_columns import table_columns
from planner.domain.plan.plan import Evaluation
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.paths import SHARED

FILES = SHARED / "cases" / "recomputed"
pytestmark = pytest.mark.skipif(not FILES.exists(), reason=f"needs the recomputed plans in {FILES}")


def content(name: str) -> bytes:
    return (FILES / f"{name}.json").read_bytes()


def document(name: str) -> Any:
    return json.loads(content(name))


def evaluated(name: str) -> Evaluation:
    """The plan of a case, priced without starts; it breaks no rule."""
    body = {"spec": {**document(f"{name}.spec"), "count_starts": False}, "plan": document(f"{name}.plan")}
    request, given = parse_evaluation(json.dumps(body).encode())
    assert verify(request.problem, given.placement) == ()
    return score(request.problem, given.placement, request.cost_model)


def test_every_measured_point_of_a_miss_curve_counts() -> None:
    """A cache of a thousandth misses 0.1 of 5,120 lookups, each of another row: 512 rows of 512 bytes each way."""
    (rank,) = evaluated("mrc").ranks
    (tier,) = (one for one in evaluated("mrc").tiers if one.tier is Tier.DDR)
    assert tier.written_bytes == pytest.approx(0.1 * 5120 * 512)
    assert rank.seconds[Phase.PREFETCH] < 9e-5


def test_one_sample_is_served_by_one_replica() -> None:
    request = parse_spec(content("serving_n1.spec"))
    model, limits = make_cost_model("serving"), SolveLimits(time_limit_seconds=10, seed=0, relative_gap=0.0)
    found = plan(request.problem, cost_model=model, partitioner=Portfolio(), limits=limits).plan
    assert found is not None
    assert [one.sharding_type for one in found.placement.tables] == [Scheme.ROW_WISE]
    assert found.evaluation.objective_seconds == pytest.approx(36.83e-6, rel=1e-3)


def test_block_storage_has_an_index_of_slots_and_buffers_in_host_memory() -> None:
    """0.02 x 250,000,000 rows are 5,000,000 slots: 16 bytes each, and twice a row of 256 bytes and 12 bytes."""
    for rank in evaluated("kv").ranks:
        assert rank.ledger_bytes[Tier.HBM]["cache_index"] == 5_000_000 * 16
        assert rank.ledger_bytes[Tier.DDR]["eviction_buffers"] == 2 * (5_000_000 * (256 + 12) + 4)
        assert rank.ledger_bytes[Tier.DDR]["write_buffers"] == 2**31


def test_rows_that_are_fetched_ahead_are_locked() -> None:
    """A tenth of 100,003 rows in whole sets of 32: 10,016 slots of 20 bytes, of which 4 are the lock."""
    (rank,) = evaluated("lock").ranks
    assert rank.ledger_bytes[Tier.HBM]["cache_index"] == 4 * 100_003 + 10_016 * 20
    assert 10_016 * 4 == 40_064


def test_a_table_of_hugectr_has_fewer_rows_than_2_to_the_31() -> None:
    with pytest.raises(RejectedDocument, match="3000000000 rows are more than 2147483647") as refused:
        parse_spec(content("hugectr_2e31.spec"))
    assert refused.value.issues[0].pointer == "/model/tables/0"


@pytest.mark.parametrize(
    ("table", "rows"),
    [("scan", 131_072), ("burst", 16_244.75), ("const", 1), ("few", 1_000), ("mix", 63_596), ("once", 131_072)],
)
def test_a_step_has_the_distinct_rows_that_were_counted(table: str, rows: float) -> None:
    """Batches of 65,536 samples, as those of the step, made 131,072 lookups; what they saw is exact."""
    known = parse_statistics(content("st3"))
    spec = document("scan.spec")
    spec["model"]["tables"][0]["access"]["statistics"] += f"#{table}"
    problem = parse_spec(
        json.dumps(spec).encode(), Library(find_statistics={known.digest: known.canonical}.get)
    ).problem
    assert table_columns(problem).distinct_of_all_ranks[0] == pytest.approx(rows, rel=1e-12)


def test_empty_bags_are_written_and_exchanged() -> None:
    evaluation = evaluated("pf0")
    assert evaluation.objective_seconds == pytest.approx(47.6e-6, rel=0.02)
    busy = {phase for phase, seconds in evaluation.ranks[0].seconds.items() if seconds > 0}
    assert busy == {Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM, Phase.BACKWARD_COMM}


def test_tiers_follow_from_kernels() -> None:
    assert evaluated("tier").ranks[0].bytes[Tier.SSD] == 100_000 * 64 * 4
