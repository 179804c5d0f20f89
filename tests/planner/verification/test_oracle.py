"""Every figure of random plans beside an implementation of docs/cost-models.md in plain loops."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from api.specs.input.json import RejectedDocument
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.domain.plan.placement import Placement
from planner.domain.problem.hash_table import HASH_TABLE_MODES
from planner.verification.plan_from_placement import plan_of_placement
from tests.support.oracle.differences import differ, figures
from tests.support.oracle.random_jobs import random_job
from tests.support.planning.long_plans import to_document
from tests.support.planning.random_placements import random_placement
from tests.support.thorough import THOROUGH

CHUNKS, CHUNK, PLANS_PER_JOB = 40, 70, 4  # some jobs are refused or have no plan: 10,000 plans are left
_NUM_FIRST = 90 if THOROUGH else 30  # jobs of the first test


def legal_jobs(numbers: range) -> Iterator[tuple[int, dict[str, Any], SolveRequest]]:
    """Yield the jobs that no rule refuses, with their numbers."""
    for number in numbers:
        spec = random_job(number)
        try:
            yield number, spec, parse_spec(json.dumps(spec).encode())
        except RejectedDocument:
            continue


def plans_of(number: int, request: SolveRequest, count: int) -> Iterator[Placement]:
    """Yield random plans of a job, half of them with nothing that keeps caches apart; none if a table has no option."""
    rng = np.random.default_rng((number, 4))
    for _ in range(count):
        try:
            placement = random_placement(rng, request.problem)
        except ValueError:
            return
        if rng.random() < 0.5:
            tables = tuple(replace(one, cache_reserved_bytes=None) for one in placement.tables)
            placement = replace(placement, tables=tables)
        yield placement


def is_ill_conditioned(spec: dict[str, Any], plan: dict[str, Any]) -> bool:
    """Whether caches, hot rows or blocks rest on the fit of a histogram, which rounding moves by up to 1e-7.

    The likelihood is flat, and the steps of its ascent are as long as a quotient of small differences says.
    """
    accesses = {table["name"]: table.get("access") or {} for table in spec["model"]["tables"]}
    return any(
        "reuse_histogram" in accesses[table["name"]]
        and (
            table["cache_load_factor"] is not None
            or len({shard["tier"] for shard in table["shards"]}) > 1
            or accesses[table["name"]].get("ids") == "frequency_sorted"
        )
        for table in plan["tables"]
    )


def compared(numbers: range, plans_per_job: int) -> tuple[int, int]:
    """Compare some plans of every job; return how many plans and figures these were."""
    num_plans = num_figures = 0
    for number, spec, request in legal_jobs(numbers):
        for placement in plans_of(number, request, plans_per_job):
            plan = plan_of_placement(request.problem, placement, request.cost_model)
            document: Any = to_document(plan, name="", spec_digest="", hardware_profile="")
            tolerance = 1e-6 if is_ill_conditioned(spec, document) else 1e-9
            for name, product, oracle in figures(spec, document, plan.evaluation):
                assert not differ(product, oracle, tolerance), (number, name, product, oracle)
                num_figures += 1
            num_plans += 1
    return num_plans, num_figures


def test_jobs_have_hash_tables_of_every_mode() -> None:
    """And every kernel that finds rows by key."""
    tables = [table for number in range(100) for table in random_job(number)["model"]["tables"]]
    modes = {(table.get("hash_table") or {}).get("mode") for table in tables}
    named = {kernel for table in tables for kernel in table.get("constraints", {}).get("compute_kernels", ())}
    assert modes >= HASH_TABLE_MODES.keys()
    assert named & {"hash", "hash_caching", "hash_hybrid", "hash_host"}


def test_figures_are_those_of_the_page() -> None:
    num_plans, num_figures = compared(range(_NUM_FIRST), 1)
    assert num_plans > 0.85 * _NUM_FIRST
    assert num_figures > 110 * _NUM_FIRST


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", range(1, CHUNKS + 1))
def test_figures_of_ten_thousand_plans_are_those_of_the_page(chunk: int) -> None:
    num_plans, _ = compared(range(chunk * CHUNK, (chunk + 1) * CHUNK), PLANS_PER_JOB)
    assert num_plans > 200
