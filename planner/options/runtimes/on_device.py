"""What runtimes share that train pooled tables of fp32 weights, all rows in the memory of the accelerator."""

from abc import abstractmethod
from collections.abc import Collection

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.table import Table
from planner.options.runtimes.base import Runtime, TableIssue
from planner.options.runtimes.geometry import UnheldGeometry


class OnDeviceRuntime(Runtime):
    """Runs ``dense`` for copies whose gradients are all-reduced, and ``fused`` for everything else."""

    #: ``custom`` is whatever the user describes; exports reject rows that do not lie in hbm.
    device_families: frozenset[str] | None = frozenset({"gpu", "custom"})
    data_types: Collection[str] = frozenset({"fp32"})
    #: Of those that specs can name, what it trains with the memory that is planned.
    optimizers: tuple[str, ...]
    takes_id_weights: bool = False
    #: Beginnings of sentences that say why it trains pooled tables alone, and fp32 weights alone.
    pooling_reason: str
    fp32_reason: str = "it keeps weights as fp32, not as"

    def kernels(self, table: Table, scheme: Scheme, offered: frozenset[Kernel]) -> tuple[Kernel, ...]:
        """One for each scheme."""
        runs = _kernel_of(scheme)
        return (runs,) if runs in offered else ()

    def scheme_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a scheme of a table is not run, or why it is not an option."""
        return self.untrained(table) or self.cut_issue(table, scheme)

    def table_issue(self, table: Table, placed: TablePlacement, placement: Placement) -> TableIssue | None:
        """Check a finished table: its kernel, its training, its shards."""
        if wrong_kernel := self.kernel_issue(placed):
            return "kernel", wrong_kernel
        if untrained := self.untrained(table):
            return "untrained", f"the runtime {self.name} cannot run this table: {untrained}"
        try:
            return self.geometry_issue(table, placed, placement.world_size)
        except UnheldGeometry as error:
            return "geometry", str(error)

    def kernel_issue(self, placed: TablePlacement) -> str | None:
        """Return what is wrong with the kernel of a placed table."""
        scheme, kernel, runs = placed.sharding_type, placed.compute_kernel, _kernel_of(placed.sharding_type)
        return None if kernel is runs else f"{scheme.label} runs with {runs.label}, not {kernel.label}"

    def untrained(self, table: Table) -> str | None:
        """Return why a table is not trained, wherever its shards are."""
        if not table.is_pooled:
            return f"{self.pooling_reason}: use sum or mean pooling"
        if table.is_weighted and not self.takes_id_weights:
            return "its lookups take no weights of ids"
        if table.data_type.name != "fp32":
            return f"{self.fp32_reason} {table.data_type.name}"
        if table.optimizer.name not in (optimizers := self.trains_with(table)):
            *others, last = optimizers
            return f"it trains with {', '.join(others)} or {last}, not with {table.optimizer.name}"
        return None

    def trains_with(self, table: Table) -> tuple[str, ...]:
        """Return the optimizers that a table may have."""
        del table
        return self.optimizers

    @abstractmethod
    def cut_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why a table that is trained is not cut so."""

    @abstractmethod
    def geometry_issue(self, table: Table, placed: TablePlacement, num_ranks: int) -> TableIssue | None:
        """Return or raise as ``UnheldGeometry`` what is wrong with the shards of a table that is trained."""


def _kernel_of(scheme: Scheme) -> Kernel:
    return Kernel.DENSE if scheme.is_replicated else Kernel.FUSED


def check_stored(
    placed: TablePlacement,
    *,
    kernels: Collection[Kernel] = (Kernel.DENSE, Kernel.FUSED),
    hbm_rule: str,
    pooling_rule: str,
    fp32_rule: str,
) -> None:
    """Reject for export what no runtime of this kind does, wherever the shards are; rules are words of the messages.

    Raises
    ------
    UnheldGeometry
        Rows lie outside of the accelerator, are not pooled, or are of another type than fp32.
    """
    tiers = {Tier(tier).label for tier in placed.shards.tier.tolist()}
    if placed.compute_kernel not in kernels or tiers != {"hbm"}:
        raise UnheldGeometry(
            f"its rows lie in {' and '.join(sorted(tiers))} ({placed.compute_kernel.label}); {hbm_rule}"
        )
    if placed.pooling == "none":
        raise UnheldGeometry(f"it is looked up without pooling; {pooling_rule}")
    if placed.data_type not in ("", "fp32"):
        raise UnheldGeometry(f"its weights are {placed.data_type}; {fp32_rule}")
