"""The memory of ranks as TorchRec's planner printed it, against the same ledger computed from the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from api.specs.plans.document import GivenPlan
from cost_models.vocabulary import Tier
from planner.domain.formats.units import format_bytes
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.pricing.placed_work import PlacedWork


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComparison:
    """How far the ledger is from the print-out, on the rank where it is furthest."""

    num_ranks: int
    rank: int
    difference_bytes: float  # the ledger's less the printed
    printed_bytes: float
    rounding_bytes: float
    counts_empty_bags: bool

    @property
    def agrees(self) -> bool:
        """Whether every rank has what was printed, as far as its digits go."""
        return abs(self.difference_bytes) <= self.rounding_bytes

    def text(self) -> str:
        """Return a sentence for people."""
        rule = "an output row for empty bags, too" if self.counts_empty_bags else "no output row for empty bags"
        return (
            f"HBM of {self.num_ranks} ranks against the print-out, by TorchRec's ledger ({rule}): at most"
            f" {format_bytes(abs(self.difference_bytes))} {'less' if self.difference_bytes < 0 else 'more'}"
            f" (rank {self.rank}, printed {format_bytes(self.printed_bytes)}); digits are rounded by up to"
            f" {format_bytes(self.rounding_bytes)}"
        )


def compared_memory(problem: Problem, plan: GivenPlan) -> MemoryComparison | None:
    """Return the comparison of a printed plan; ``None`` if no memory was printed, or it is of another cluster.

    Releases of TorchRec differ: until 1.6 a bag without ids has an output row, from 1.7 on it has none. Where the
    print-out does not say of which release it is, the rule that comes closer is taken.
    """
    printed = plan.printed_memory
    if printed is None or len(printed.hbm_bytes) != problem.world_size:
        return None
    placed = PlacedWork.of(problem, plan.placement)
    rules = (True, False) if printed.counts_empty_bags is None else (printed.counts_empty_bags,)
    found = []
    for counts_empty_bags in rules:
        work = placed.work
        if counts_empty_bags:
            work = replace(work, expected_outputs=work.batch_outputs)
        difference = replace(placed, work=work).torchrec_bytes(problem)[:, Tier.HBM] - printed.hbm_bytes
        rank = int(np.argmax(np.abs(difference)))
        found.append(
            MemoryComparison(
                num_ranks=problem.world_size,
                rank=rank,
                difference_bytes=float(difference[rank]),
                printed_bytes=printed.hbm_bytes[rank],
                rounding_bytes=printed.rounding_bytes,
                counts_empty_bags=counts_empty_bags,
            )
        )
    return min(found, key=lambda one: abs(one.difference_bytes))


def other_memory(problem: Problem, plan: GivenPlan) -> Iterator[Issue]:
    """Yield a warning where some rank's memory is not what was printed."""
    comparison = compared_memory(problem, plan)
    if comparison is not None and not comparison.agrees:
        yield Issue(
            code="print-out-memory",
            pointer="",
            message=comparison.text(),
            hint="give the spec what the planner had: batch size, pooling factors, data types, optimizer, pipeline",
            severity="warning",
        )
