"""Any executor that takes a plan as it stands: shards as rectangles, several of a table on a rank, rows split by tier.

It has fewer rules than TorchRec. Pooling is right however tables are cut. Rows may be split between two tiers once they
are numbered by how often they are looked up. What is read from the host may lie in storage-class memory as well as in
host memory: both are an address space of a processor. :mod:`planner.verification.verify` checks what holds for every
runtime: exact cover, ranks, memory, tiers.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.table import Table
from planner.options.runtimes.base import Runtime, TableIssue

_RUNS = (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM, Kernel.KEY_VALUE)


class Generic(Runtime):
    """No rules of its own but which kernels run a scheme."""

    name = "generic"
    splits_off_hot_rows = True
    supports_scm = True
    has_pods = True

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` replicates; the others run every other scheme, ``key_value`` without state per weight."""
        if scheme.is_replicated:
            return tuple(offered & {Kernel.DENSE})
        stateless = table.optimizer.states_per_element == 0
        return tuple(kernel for kernel in _RUNS if kernel in offered and (stateless or kernel is not Kernel.KEY_VALUE))

    def table_issue(self, table: Table, placed: TablePlacement, placement: Placement) -> TableIssue | None:
        """Return whether the kernel runs the scheme; every other rule holds for all runtimes."""
        runs = self.kernels(table, placed.sharding_type, frozenset(Kernel))
        if placed.compute_kernel in runs:
            return None
        names = ", ".join(kernel.label for kernel in runs)
        return "kernel", f"{placed.sharding_type.label} runs with {names}, not {placed.compute_kernel.label}"
