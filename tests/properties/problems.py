"""Tiny planning problems made up by hypothesis, and their optima."""

import math
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from cost_models.protocol import CostModel
from cost_models.vocabulary import HOST_KERNELS, Scheme
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import OBJECTIVES, PIPELINES, Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.options.compatible_families import compatible_family_sets
from planner.options.enumerate import enumerate_families
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price, prune, restrict
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.problem import Reason
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

#: Counted work ends the search; the clock is far away, so that a busy machine changes nothing.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=3.0, relative_gap=0.0)
#: CP-SAT's ticks are 2**-27 of the dearest plan; optima of these problems agree far better than this.
TOLERANCE = 1e-5


@st.composite
def tables(draw: st.DrawFn, name: str, num_hosts: int, world_size: int) -> Table:
    """A table; most of them may go anywhere.

    Each states its narrowest cut: where none is stated, a table that fits nowhere is cut finer,
    so that little memory may list more options than plenty.
    """
    few_schemes = st.lists(st.sampled_from(Scheme), min_size=1, max_size=3).map(frozenset)
    constraints = TableConstraints(
        sharding_types=draw(st.none() | st.none() | few_schemes),
        ranks=draw(st.sampled_from((None, None, None, frozenset({0, world_size - 1})))),
        hosts=draw(st.sampled_from((None, None, None, frozenset({num_hosts - 1})))),
        min_partition=draw(st.sampled_from((4, 16, 32))),
    )
    return make_table(
        name,
        draw(st.integers(1, 4000)),
        draw(st.sampled_from((4, 32, 64, 100, 128))),
        pooling_factor=draw(st.sampled_from((0.0, 0.5, 3.0, 40.0))),
        pooling=draw(st.sampled_from(("sum", "sum", "mean", "none"))),
        data_type=draw(st.sampled_from(("fp32", "fp16"))),
        optimizer=draw(st.sampled_from(("sgd", "rowwise_adagrad", "adam"))),
        module_path=draw(st.sampled_from(("a", "b"))),
        constraints=constraints,
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """One to three tables on two to four ranks, with memory between too little and plenty."""
    num_hosts, ranks_per_host = draw(st.sampled_from(((1, 2), (1, 3), (2, 1), (2, 2))))
    world_size = num_hosts * ranks_per_host
    number = draw(st.integers(1, 3))
    made = tuple(draw(tables(f"t{i}", num_hosts, world_size)) for i in range(number))
    group = (frozenset({0, number - 1}),) if number > 1 else ()
    joint = draw(st.sampled_from(({}, {}, {"same_rank": group}, {"apart": group})))
    held = sum(table.weight_bytes for table in made) / world_size
    hosts = [draw(st.sampled_from((1.0, 1.0, 2.0))) for _ in range(num_hosts)]
    room = (held * draw(st.floats(0.7, 4.0)) + 64 * 1024) * 2
    sizes = tuple(math.floor(room * size) for size in hosts for _ in range(ranks_per_host))
    return make_problem(
        *made,
        cluster=replace(make_cluster(num_hosts, ranks_per_host), hbm_bytes_by_rank=sizes),
        objective=draw(st.sampled_from(OBJECTIVES)),
        pipeline=draw(st.sampled_from(PIPELINES)),
        dense=Dense(forward_seconds=draw(st.sampled_from((None, 1e-6, 1e-3)))),
        **joint,
    )


@st.composite
def tiered_problems(draw: st.DrawFn) -> Problem:
    """One or two tables on two ranks whose own memory holds a part of them, and whose hosts hold all."""
    wanted = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE, Scheme.ROW_WISE}),
        cache_load_factors=draw(st.sampled_from(((0.1, 0.5), (0.02, 0.2, 0.7)))),
    )
    made = tuple(
        make_table(
            f"t{i}",
            draw(st.integers(500, 4000)),
            64,
            pooling_factor=draw(st.sampled_from((0.5, 3.0, 40.0))),
            optimizer=draw(st.sampled_from(("sgd", "rowwise_adagrad", "adam"))),
            access=draw(st.sampled_from((None, ZipfAccess(alpha=1.05)))),
            constraints=wanted,
        )
        for i in range(draw(st.integers(1, 2)))
    )
    held = sum(table.weight_bytes for table in made)
    room = math.floor(held * draw(st.floats(0.1, 1.0)) + 192 * 1024)  # ids and outputs stay with the accelerator
    return make_problem(*made, cluster=make_cluster(1, 2, hbm_bytes=room), kernels=HOST_KERNELS)


def optimum(problem: Problem, cost_model: CostModel = ROOFLINE) -> float:
    """The best objective over the listed cuts, infinite where none of them fits.

    Problems that take too long are passed over.
    """
    families = enumerate_families(problem)
    if families.scheme_issues:
        return math.inf
    priced = price(problem, families, cost_model)
    best = math.inf
    for mask in compatible_family_sets(problem, families).masks:
        mode = prune(restrict(priced, mask))
        if len(set(mode.family_table.tolist())) < mode.num_tables:
            continue
        outcome = CpSat().solve(mode, LIMITS)
        assume(outcome.reason in (Reason.OPTIMAL, Reason.INFEASIBLE))
        if outcome.assignment is not None:
            assert verify(problem, to_placement(problem, families, mode, outcome.assignment)) == ()
            best = min(best, objective_of(mode, outcome.assignment))
    return best


def is_at_most(value: float, other: float) -> bool:
    """Whether an optimum is not above another one; infinity is above everything else."""
    return value <= other * (1 + TOLERANCE)
