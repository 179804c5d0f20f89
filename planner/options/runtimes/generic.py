"""Any executor that takes a plan as it stands: shards as rectangles, several of a table on a rank, rows by heat.

It is asked for less than TorchRec: pooling is right however tables are cut, rows may be cut in two between tiers after
they were renumbered by heat, and what is read from the host may lie in storage-class memory as well as in host memory:
both are an address space of a processor. What holds everywhere (exact cover, ranks, memory, tiers) is checked by
:mod:`planner.verification.verify`.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.errors import Issue

_RUNS = (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM, Kernel.KEY_VALUE)


class Generic:
    """No rules of its own."""

    name = "generic"
    max_columns = 2**14
    row_schemes: frozenset[Scheme] = frozenset()
    splits_off_hot_rows = True
    supports_scm = True
    device_families: frozenset[str] | None = None

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` replicates; the others run every other scheme, ``key_value`` without state per weight."""
        if scheme is Scheme.DATA_PARALLEL:
            return tuple(offered & {Kernel.DENSE})
        stateless = table.optimizer.states_per_element == 0
        return tuple(kernel for kernel in _RUNS if kernel in offered and (stateless or kernel is not Kernel.KEY_VALUE))

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Nothing is refused."""
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Pools are divided where they are complete."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Kernels that run the scheme; the rest is what every runtime needs."""
        tables = {table.name: table for table in problem.tables}
        issues = []
        for index, placed in enumerate(placement.tables):
            fitting = self.kernels(tables[placed.name], placed.sharding_type, frozenset(Kernel))
            if placed.compute_kernel not in fitting:
                names = ", ".join(kernel.label for kernel in fitting)
                message = f"{placed.sharding_type.label} runs with {names}, not {placed.compute_kernel.label}"
                issues.append(
                    Issue(code="kernel", pointer=f"/tables/{index}", message=f'table "{placed.name}": {message}')
                )
        return issues
