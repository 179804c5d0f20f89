"""A plan lists the hardware numbers that it rests on, and no others."""

from planner.domain.plan.plan import Assumption
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.verification.provenance import used_assumptions, versions
from tests.support.planning.builders import TORCHREC, make_cluster, make_problem, make_table


def number(name: str, evidence: str = "measured") -> Assumption:
    return Assumption(subject=name, value="1", evidence=evidence)


def test_unused_numbers_are_left_out() -> None:
    given = (
        number("hardware.hbm_bytes"),
        number("hardware.ssd_bytes"),
        number("hardware.num_hosts", "default"),
        number("model.pipeline", "default"),
    )
    preserved = [item.subject for item in used_assumptions(given, frozenset({"hbm_bytes"}))]
    assert preserved == ["hardware.hbm_bytes", "hardware.num_hosts", "model.pipeline"]


def test_a_plan_knows_what_was_read() -> None:
    """TorchRec's model on one host: memory and both link rates, nothing of DDR or the host link."""
    assumptions = tuple(number(f"hardware.{name}") for name in make_cluster().hardware.numbers)
    result = plan(
        make_problem(make_table()),
        cost_model=TORCHREC,
        partitioner=Greedy(),
        limits=SolveLimits(time_limit_seconds=1),
        assumptions=assumptions,
    )
    assert result.plan is not None
    preserved = {item.subject.removeprefix("hardware.") for item in result.plan.assumptions}
    assert {"hbm_bytes", "hbm_bytes_per_second", "intra_host_bytes_per_second"} <= preserved
    assert preserved.isdisjoint({"ddr_bytes", "ddr_bytes_per_second", "host_link_bytes_per_second"})


def test_versions_name_what_can_change_a_plan() -> None:
    assert set(versions()) == {"shardplan", "ortools", "numpy"}
