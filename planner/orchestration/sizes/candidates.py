"""What is known of each size of something: a bound on its plans, its best plan, or why it has none."""

import math
import time
from dataclasses import dataclass

from cost_models.protocol import CostModel
from planner.domain.formats.units import format_bytes
from planner.domain.plan.plan import Plan, PlanResult
from planner.domain.plan.replicas import SizeState
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.orchestration.answers.finish_plan import charged_seconds
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.pricing.memory.ledger import capacity_bytes
from planner.pricing.price_options import prune
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.bounds.chain import quick_bound
from planner.solver.machine import return_free_memory
from planner.solver.problem import Reason


@dataclass(slots=True, kw_only=True)
class Candidate:
    """A size, the problem once it is decided, and what is known of its plans."""

    size: float
    problem: Problem
    bound_seconds: float = 0.0  # of all its plans; infinite where it has none
    state: SizeState = "not_searched"
    plan: Plan | None = None
    limit: str | None = None  # what ended the search for its plan
    detail: str = ""
    found_at_seconds: float | None = None  # monotonic clock

    @property
    def seconds(self) -> float:
        """What its best plan costs; infinite before there is one."""
        return math.inf if self.plan is None else charged_seconds(self.plan)

    def weigh(self) -> None:
        """Note where the weights alone are more than a group holds, which takes no list of options.

        Tables of several groups lie in the memory of devices: no other kernel is kept alike.
        """
        problem, tier = self.problem, self.problem.cluster.device_tier
        if not problem.is_replicated:
            return
        need = sum(map(_least_weight_bytes, problem.tables))
        have = float(capacity_bytes(problem)[:, tier].sum())
        if need > have:
            self._rule_out(
                f"the tables need at least {format_bytes(need)} of {tier.label}, and a sharding group of"
                f" {problem.world_size} ranks has {format_bytes(have)}"
            )

    def look(self, cost_model: CostModel) -> None:
        """Raise the bound by what needs no search, and note where the tables cannot fit."""
        listed = list_and_price(self.problem, cost_model)
        if isinstance(listed, Infeasibility):
            # Where tables may lie in host memory, too, the search decides.
            if listed.proven and self.problem.is_replicated:
                self._rule_out("; ".join(short.message for short in listed.shortfalls))
            return
        bound = quick_bound(prune(listed[1]))
        self.bound_seconds = bound + seconds_without_shards(self.problem, bound)
        return_free_memory()

    def take(self, result: PlanResult) -> None:
        """Take the plan and the bound of a search, where they are better than what is known."""
        if result.plan is None:
            if self.plan is None:
                self.detail, self.limit = result.detail, result.limit
            if result.reason == Reason.INFEASIBLE:
                self._rule_out(result.detail or "; ".join(short.message for short in result.shortfalls))
            return
        self.state = "planned"
        self.bound_seconds = max(self.bound_seconds, result.lower_bound_seconds)
        if charged_seconds(result.plan) < self.seconds:
            self.plan, self.found_at_seconds = result.plan, time.monotonic()
            self.limit = result.limit
        self.bound_seconds = min(self.bound_seconds, self.seconds)

    def raise_bound(self, shard_seconds: float) -> None:
        """Raise the bound to plans whose shards take so long, and what else they take."""
        if self.state != "infeasible":
            bound = shard_seconds + seconds_without_shards(self.problem, shard_seconds)
            self.bound_seconds = min(max(self.bound_seconds, bound), self.seconds)

    def is_close(self, seconds: float, gap: float) -> bool:
        """Whether none of its plans is better than ``seconds`` by more than the gap."""
        return self.bound_seconds * (1 + gap) >= seconds

    @property
    def known_bound_seconds(self) -> float:
        """A number that no plan of this size is better than; 0 where nothing is known, or it has no plan."""
        return self.bound_seconds if math.isfinite(self.bound_seconds) else 0.0

    def _rule_out(self, why: str) -> None:
        self.state, self.bound_seconds, self.detail = "infeasible", math.inf, why


def _least_weight_bytes(table: Table) -> float:
    """Return the weights of one copy of a table, in the narrowest type that it may have."""
    names = table.constraints.data_types or (table.data_type.name,)
    return table.num_embeddings * min(DATA_TYPES[name].row_bytes(table.embedding_dim) for name in names)
