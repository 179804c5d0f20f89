"""What no change of names, order or hosts may do to the best plan, and what memory may not."""

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Feature, Table
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason
from tests.properties.problems import is_at_most, optimum, problems
from tests.support.planning.builders import ROOFLINE
from tests.support.thorough import THOROUGH, thorough

CAREFUL = settings(max_examples=30 if THOROUGH else 12, derandomize=True, deadline=None, database=None)


def same(first: float, second: float) -> bool:
    """Whether two optima agree."""
    return is_at_most(first, second) and is_at_most(second, first)


@CAREFUL
@given(problems(), st.floats(1.0, 3.0))
def test_more_memory_never_raises_the_optimum(problem: Problem, times: float) -> None:
    sizes = problem.cluster.hbm_bytes_by_rank
    assert sizes is not None
    more = replace(problem.cluster, hbm_bytes_by_rank=tuple(math.ceil(size * times) for size in sizes))
    assert is_at_most(optimum(replace(problem, cluster=more)), optimum(problem))


@thorough
@CAREFUL
@given(problems(), st.permutations(("x", "long name with spaces", "é/~0")))
def test_names_do_not_matter(problem: Problem, names: Sequence[str]) -> None:
    paths = {"a": "z.second", "b": "first"}
    renamed = tuple(
        replace(
            table,
            name=names[i],
            module_path=paths[table.module_path],
            features=(Feature(name="f", pooling_factor=table.features[0].pooling_factor),),
        )
        for i, table in enumerate(problem.tables)
    )
    assert same(optimum(problem), optimum(replace(problem, tables=renamed)))


@CAREFUL
@given(problems(), st.data())
def test_the_order_of_tables_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.tables))))  # new position -> old
    where = {old: new for new, old in enumerate(order)}
    moved = replace(
        problem,
        tables=tuple(problem.tables[old] for old in order),
        same_rank=tuple(frozenset(where[t] for t in group) for group in problem.same_rank),
        apart=tuple(frozenset(where[t] for t in group) for group in problem.apart),
    )
    assert same(optimum(problem), optimum(moved))


@thorough
@CAREFUL
@given(problems())
def test_hosts_may_change_places(problem: Problem) -> None:
    """The last host becomes the first, with its memory and with what tables say of its ranks."""
    local, world = problem.cluster.ranks_per_host, problem.world_size
    sizes = problem.cluster.hbm_bytes_by_rank
    assert sizes is not None

    def turned(table: Table) -> Table:
        wanted = table.constraints
        ranks = None if wanted.ranks is None else frozenset((rank + local) % world for rank in wanted.ranks)
        hosts = wanted.hosts and frozenset((host + 1) % problem.cluster.num_hosts for host in wanted.hosts)
        return replace(table, constraints=replace(wanted, ranks=ranks, hosts=hosts))

    moved = replace(
        problem,
        tables=tuple(turned(table) for table in problem.tables),
        cluster=replace(problem.cluster, hbm_bytes_by_rank=(*sizes[-local:], *sizes[:-local])),
    )
    assert same(optimum(problem), optimum(moved))


@thorough
@CAREFUL
@given(problems())
def test_a_choice_more_never_raises_the_optimum(problem: Problem) -> None:
    """Lifting what is said of the first table leaves all plans of before."""
    first, *others = problem.tables
    freed = replace(first, constraints=replace(first.constraints, sharding_types=None, ranks=None, hosts=None))
    assert is_at_most(optimum(replace(problem, tables=(freed, *others))), optimum(problem))


@thorough
@CAREFUL
@given(problems())
def test_the_default_search_finds_it(problem: Problem) -> None:
    """All the way from the problem to the plan; other cuts than the listed ones may be better still."""
    limits = SolveLimits(time_limit_seconds=0.5, relative_gap=0.0)
    result = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits)
    assert result.reason != Reason.INFEASIBLE or result.shortfalls, "a proof says what is short"
    found = math.inf if result.plan is None else result.plan.evaluation.objective_seconds
    best = optimum(problem)
    assert is_at_most(found, best * 1.02)
    assert result.reason != Reason.INFEASIBLE or best == math.inf
    assert result.lower_bound_seconds <= found
