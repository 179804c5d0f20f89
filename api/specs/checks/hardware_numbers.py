"""Whether the hardware of a spec has every number that its prices need, before anything is solved.

A few tables stand for all: what a price needs depends on schemes and kernels, not on sizes. One pricing of them names
every number that is missing.
"""

from dataclasses import replace

from api.specs.issues import IssueCollector
from cost_models.errors import CostModelError, MissingHardwareNumber
from cost_models.protocol import CostModel
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.enumerate import enumerate_families
from planner.pricing.price_options import price
from planner.pricing.step.whole_step import dense_all_reduce


def check_hardware_numbers(problem: Problem, cost_model: CostModel, issues: IssueCollector) -> None:
    """Report each number that prices of the problem need and its hardware lacks.

    Raises
    ------
    cost_models.errors.UnsupportedWork
        The model cannot price a scheme or kernel that the problem allows.
    """
    sample = _subset(problem, _one_of_each_kind(problem))
    without_families = enumerate_families(sample).scheme_issues
    priced = [index for index in range(len(sample.tables)) if index not in without_families]
    if not priced:  # infeasible, which needs no number
        return
    sample = _subset(sample, priced)
    hardware, missing = sample.cluster.hardware.collecting_missing()
    sample = replace(sample, cluster=replace(sample.cluster, hardware=hardware))
    price(sample, enumerate_families(sample), cost_model)
    if problem.dense.is_timed:
        dense_all_reduce(sample, hardware)
    for error in missing.values():
        issues.add(cost_model_issue(error, ""))


def cost_model_issue(error: CostModelError, base: str) -> Issue:
    """Return why a cost model cannot price a spec, at the field of the spec that can be changed."""
    where = f"/hardware/overrides/{error.name}" if isinstance(error, MissingHardwareNumber) else "/cost_model"
    return Issue(code=error.code, pointer=base + where, message=str(error), hint=error.hint)


def _one_of_each_kind(problem: Problem) -> list[int]:
    """Return one table of each kind, the least constrained and largest."""
    together, apart = _members(problem.same_rank), _members(problem.apart)
    chosen: dict[object, tuple[tuple[bool, int], int]] = {}
    for index, table in enumerate(problem.tables):
        kind, breadth = (*_kind(table), index in together, index in apart), _breadth(table)
        if kind not in chosen or breadth > chosen[kind][0]:
            chosen[kind] = breadth, index
    return [index for _, index in chosen.values()]


def _subset(problem: Problem, indices: list[int]) -> Problem:
    """Return the problem with some of its tables; a table of a group becomes a group of its own."""
    together, apart = _members(problem.same_rank), _members(problem.apart)
    return replace(
        problem,
        tables=tuple(problem.tables[index] for index in indices),
        same_rank=tuple(frozenset({place}) for place, index in enumerate(indices) if index in together),
        apart=tuple(frozenset({place}) for place, index in enumerate(indices) if index in apart),
    )


def _members(groups: tuple[frozenset[int], ...]) -> frozenset[int]:
    return frozenset[int]().union(*groups)


def _kind(table: Table) -> tuple[object, ...]:
    constraints, pinned = table.constraints, table.constraints.pinned
    how = None if pinned is None else (pinned.sharding_type, pinned.compute_kernel)
    is_hash_table = table.hash_table is not None
    return (table.pooling, is_hash_table, constraints.sharding_types, constraints.compute_kernels, how)


def _breadth(table: Table) -> tuple[bool, int]:
    """How likely a table has every option of its kind."""
    constraints = table.constraints
    return (constraints.ranks is None and constraints.hosts is None, table.num_embeddings * table.embedding_dim)
