"""Every fix of an answer without a plan, made in the spec as it was sent, gives a spec with a plan."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from api.specs.parse import parse_spec
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.plan.plan import PlanResult
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.kernels.warm_up import warm
from tests.support.service.specs import raw
from tests.support.thorough import thorough

#: Counted work ends all; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=10.0)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile ahead: the clock of the first diagnosis would end it."""
    warm()


def table(name: str, *, rows: int = 10_000_000, **changes: object) -> dict[str, object]:
    """A table of 2.56 GB."""
    return {"name": name, "num_embeddings": rows, "embedding_dim": 64, "pooling_factor": 4.0, **changes}


def spec(*tables: Mapping[str, object], hbm_bytes: float = 3e9, **constraints: object) -> dict[str, Any]:
    """A spec without what it may leave out, on hosts without memory for tables."""
    document: dict[str, Any] = {
        "model": {"batch_size_per_rank": 256, "tables": list(tables)},
        "hardware": {
            "profile": "dgx-h100-80g",
            "ranks_per_host": 4,
            "overrides": {"hbm_bytes": hbm_bytes, "ddr_bytes": 0},
        },
    }
    return document | ({"constraints": constraints} if constraints else {})


def solved(document: Mapping[str, object]) -> PlanResult:
    request = parse_spec(raw(document))
    return plan(request.problem, cost_model=request.cost_model, partitioner=Greedy(), limits=LIMITS)


def changed(document: Mapping[str, object], changes: Sequence[SpecChange]) -> dict[str, object]:
    """Make the changes of a fix, one after the other, as somebody with an editor would."""
    result: Any = json.loads(json.dumps(document))  # where equal parts are not the same part
    for change in changes:
        *parents, last = change.pointer.removeprefix("/").split("/")
        place = result
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            assert change.value is None
            del place[int(last)]
        elif change.value is None:
            del place[last]
        else:
            place[last] = list(change.value) if isinstance(change.value, tuple) else change.value
    return result


WHOLE = {"sharding_types": ["table_wise"]}
SPECS = {
    "memory": (
        spec(*[table(f"t{i}") for i in range(5)], hbm_bytes=3.5e9),
        {"reservation", "memory", "ranks", "data_type"},
    ),
    "schemes": (spec(table("a", constraints=WHOLE), table("b", rows=10), hbm_bytes=2e9), {"constraint", "memory"}),
    "width": (
        spec(table("a", constraints={"sharding_types": ["column_wise"], "min_partition": 32}), hbm_bytes=1.2e9),
        {"constraint", "memory", "data_type"},
    ),
    "types": (
        spec(*[table(f"t{i}", constraints={"data_types": ["fp32"]}) for i in range(5)], hbm_bytes=3.5e9),
        {"constraint", "reservation", "memory"},
    ),
    "groups": (
        spec(*[table(name) for name in "abcd"], same_rank=[["a", "b"], ["c", "d"]], reserved_hbm_fraction=0.0),
        {"constraint", "memory"},
    ),
    "apart": (
        spec(*[table(f"t{i}", rows=1000) for i in range(6)], apart=[["t0", "t1"], [f"t{i}" for i in range(6)]]),
        {"constraint", "ranks"},
    ),
    "unequal ranks": (
        {
            **spec(table("a", constraints=WHOLE)),
            "hardware": {
                "profile": "dgx-h100-80g",
                "num_hosts": 2,
                "ranks_per_host": 1,
                "overrides": {"hbm_bytes_by_rank": [2.5e9, 2e9], "ddr_bytes": 0},
            },
        },
        {"constraint", "memory"},
    ),
    "optimizer": (
        spec(table("a", optimizer="adam", constraints=WHOLE), hbm_bytes=4e9),
        {"constraint", "memory", "optimizer"},
    ),
    "everything": (
        spec(table("a", constraints=WHOLE), table("b", constraints=WHOLE), hbm_bytes=2e9, reserved_hbm_fraction=0.3),
        {"constraint"},
    ),
}


@thorough
@pytest.mark.parametrize("name", SPECS)
def test_every_fix_gives_a_spec_with_a_plan(name: str) -> None:
    document, kinds = SPECS[name]
    result = solved(document)
    assert result.plan is None
    assert result.diagnosis is not None
    assert {fix.kind for fix in result.diagnosis.fixes} >= kinds
    for fix in result.diagnosis.fixes:
        assert solved(changed(document, fix.changes)).plan is not None, fix.message


@thorough
@pytest.mark.parametrize("name", SPECS)
def test_what_is_blamed_is_in_the_spec(name: str) -> None:
    document, _ = SPECS[name]
    diagnosis = solved(document).diagnosis
    assert diagnosis is not None
    if diagnosis.conflict is not None:
        for constraint in diagnosis.conflict.constraints:
            if constraint.pointer != "/constraints/reserved_hbm_fraction":  # has a default
                assert changed(document, [SpecChange(pointer=constraint.pointer, value=None)]) != document
