"""Any executor that takes a plan as it stands: shards as rectangles, several of a table on a rank, rows split by tier.

It has fewer rules than TorchRec. Pooling is right however tables are cut. Rows may be split between two tiers once they
are numbered by how often they are looked up. What is read from the host may lie in storage-class memory as well as in
host memory: both are an address space of a processor. :mod:`planner.verification.verify` checks what holds for every
runtime: exact cover, ranks, memory, tiers.
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
        if scheme.is_replicated:
            return tuple(offered & {Kernel.DENSE})
        stateless = table.optimizer.states_per_element == 0
        return tuple(kernel for kernel in _RUNS if kernel in offered and (stateless or kernel is not Kernel.KEY_VALUE))

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Every scheme runs."""
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Pools are divided where they are complete."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Check that the kernel runs the scheme; every other rule holds for all runtimes."""
        tables = {table.name: table for table in problem.tables}
        issues = []
        for index, placed in enumerate(placement.tables):
            runs = self.kernels(tables[placed.name], placed.sharding_type, frozenset(Kernel))
            if placed.compute_kernel not in runs:
                names = ", ".join(kernel.label for kernel in runs)
                message = f"{placed.sharding_type.label} runs with {names}, not {placed.compute_kernel.label}"
                issues.append(
                    Issue(code="kernel", pointer=f"/tables/{index}", message=f'table "{placed.name}": {message}')
                )
        return issues
