"""Hash tables that dynamicemb puts into one operator, and what those must not differ in.

TorchRec groups the tables of a rank that agree in module, pooling, data type and optimizer, and compares their
``DynamicEmbTableOptions``, of which only some fields count: whether the table is a cache, and how scores are made
(``dynamicemb_config.py``, ``get_grouped_key``). Of a group ``BatchedDynamicEmbeddingTablesV2`` makes one storage
(``_create_cache_storage``): it adds up the values of its tables and the memory of the device that each asks for, and
gives every table the same share. Buckets are those of the first table (``create_table_state``). Tables that differ in
either would silently have other sizes than planned.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue
from planner.options.runtimes.base import OperatorIssue

DEFAULT_BUCKET_SIZE = 128
#: Share of the values in the device's memory, where a table names none: that of the public benchmark.
LOAD_FACTOR = 0.1
KernelsOf = Callable[[Table, Scheme, frozenset[Kernel]], tuple[Kernel, ...]]


class _Operator(NamedTuple):
    """What tables of one operator agree in."""

    module_path: str
    pooling: str
    data_type: str
    optimizer: str
    eviction: str
    is_cache: bool


class _Layout(NamedTuple):
    """Where the values of a table lie."""

    kernel: Kernel
    share: float | None  # of the values in the device's memory

    @property
    def words(self) -> str:
        """For people."""
        return self.kernel.label if self.share is None else f"{self.kernel.label} with cache_load_factor {self.share:g}"


def bucket_size_of(table: Table) -> int:
    """Return the slots of a bucket of a hash table."""
    size = None if table.hash_table is None else table.hash_table.bucket_size
    return DEFAULT_BUCKET_SIZE if size is None else size


def load_factors(table: Table) -> tuple[float, ...]:
    """Return the shares of its values that a hash table may have in the device's memory."""
    return table.constraints.cache_load_factors or (LOAD_FACTOR,)


def table_operator_issues(tables: Mapping[str, Table], kernels_of: KernelsOf) -> Iterator[OperatorIssue]:
    """Yield what tables of a spec, by pointer, might differ in though one operator may hold them."""
    yield from _differences(
        (where, table, _layouts(table, kernels_of)) for where, table in tables.items() if table.hash_table is not None
    )


def placed_operator_issues(problem: Problem, placement: Placement) -> list[Issue]:
    """Return what tables of a plan differ in though one operator holds them."""
    tables = {table.name: table for table in problem.tables}
    placed = (
        (f"/tables/{index}", tables[one.name], [_Layout(one.compute_kernel, one.cache_load_factor)])
        for index, one in enumerate(placement.tables)
        if one.name in tables and tables[one.name].hash_table is not None and one.compute_kernel.facts.is_hashed
    )
    return [
        Issue(code="operator", pointer=found.where, message=f'table "{found.name}" {found.message}', hint=found.hint)
        for found in _differences(placed)
    ]


def _layouts(table: Table, kernels_of: KernelsOf) -> list[_Layout]:
    """Return where the values of a table may lie."""
    pinned, shares = table.constraints.pinned, load_factors(table)
    if pinned is not None:
        return [_Layout(pinned.compute_kernel, pinned.cache_load_factor)]
    kernels = kernels_of(table, Scheme.ROW_WISE, table.constraints.compute_kernels or frozenset(Kernel))
    return [_Layout(kernel, share) for kernel in kernels for share in (shares if kernel.facts.is_cached else (None,))]


def _differences(found: Iterator[tuple[str, Table, list[_Layout]]]) -> Iterator[OperatorIssue]:
    """Yield tables that differ from the first one of an operator that may hold both."""
    operators: dict[_Operator, list[tuple[str, Table, list[_Layout]]]] = defaultdict(list)
    for where, table, layouts in found:
        assert table.hash_table is not None
        alike = (
            table.module_path,
            table.pooling,
            table.data_type.name,
            table.optimizer.name,
            table.hash_table.eviction,
        )
        for is_cache in (False, True):
            some = [one for one in layouts if (one.kernel is Kernel.HASH_CACHING) is is_cache]
            if some:
                operators[_Operator(*alike, is_cache)].append((where, table, some))
    is_reported: set[tuple[str, str]] = set()
    for members in operators.values():
        _, first, of_first = members[0]
        for where, table, layouts in members[1:]:
            for issue in _of_two(where, table, layouts, first, of_first):
                if (issue.where, issue.field) not in is_reported:
                    is_reported.add((issue.where, issue.field))
                    yield issue


def _of_two(
    where: str, table: Table, layouts: list[_Layout], first: Table, of_first: list[_Layout]
) -> Iterator[OperatorIssue]:
    if (size := bucket_size_of(table)) != (other := bucket_size_of(first)):
        yield OperatorIssue(
            where,
            table.name,
            "hash_table/bucket_size",
            f'has buckets of {size} slots, and "{first.name}" of the same operator of {other}: dynamicemb gives both'
            " those of the first",
            f"use bucket_size {other}, or another module_path",
        )
    if len(every := {*layouts, *of_first}) > 1:
        may = " or ".join(one.words for one in sorted(every, key=lambda one: (one.kernel, one.share or 0.0)))
        yield OperatorIssue(
            where,
            table.name,
            "constraints",
            f'and "{first.name}" of the same operator may be {may}: dynamicemb gives both one share of its memory',
            "name one compute_kernel besides hash_caching and one cache_load_factor for both, or another module_path",
        )
