"""Any executor that takes a plan as it stands: shards as rectangles, several of a table on a rank, rows by heat.

It is asked for less than TorchRec: pooling is right however tables are cut, rows may be cut in two between tiers after
they were renumbered by heat. What holds everywhere (exact cover, ranks, memory, tiers) is checked by
:mod:`planner.verify`.
"""

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.placement import Placement
from planner.domain.problem import Problem
from planner.domain.table import Table
from planner.errors import Issue

_RUNS = (Kernel.FUSED, Kernel.FUSED_UVM_CACHING, Kernel.FUSED_UVM, Kernel.KEY_VALUE)


class Generic:
    """No rules of its own."""

    name = "generic"
    max_columns = 2**14
    row_schemes: frozenset[Scheme] = frozenset()
    splits_rows_by_heat = True

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """``dense`` replicates; the others run every other scheme."""
        if scheme is Scheme.DATA_PARALLEL:
            return tuple(offered & {Kernel.DENSE})
        return tuple(kernel for kernel in _RUNS if kernel in offered)

    def refusal(self, table: Table, scheme: Scheme) -> str | None:
        """Nothing is refused."""
        return None

    def needs_row_wise_module(self, table: Table, scheme: Scheme) -> bool:
        """Pools are divided where they are complete."""
        return False

    def check(self, problem: Problem, placement: Placement) -> list[Issue]:
        """Nothing but what every runtime needs."""
        return []
