"""What changed from one plan to another, as values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter

from planner.domain.formats.compact_form import shards_of
from planner.domain.plan.change_limits import PricedPhase, PricedPlan, change_limits, phase_factors
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.explain.shard_groups import rank_loads
from planner.output.explain.text.fullest_ranks import fullest_ranks, tiers_in_order

_PLACE = itemgetter("rank", "row_offset", "num_rows", "column_offset", "num_columns", "tier")
OBJECTIVES = ("step_time", "max_rank_time", "request_latency")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A number of plan A and of plan B."""

    before: float
    after: float

    @property
    def relative_change(self) -> float | None:
        """``after / before - 1``; ``None`` if there is nothing to compare with."""
        return self.after / self.before - 1 if self.before > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """Tables that changed and the seconds and bytes of both plans."""

    same_plan: bool
    same_spec: bool
    same_prices: bool
    objectives: Mapping[str, Pair]
    changes: Mapping[str, tuple[float, float]]  # limits of B - A, of objectives of which they are known
    phases: Mapping[str, Pair]
    fullest_rank_bytes: Mapping[str, Pair]  # by tier
    unchanged: int
    changed: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    moved_bytes: int  # of shards of B whose rectangle was not on that rank in A

    def to_document(self) -> dict[str, object]:
        """The difference as JSON."""
        return {
            "same_plan": self.same_plan,
            "same_spec": self.same_spec,
            "same_prices": self.same_prices,
            "objectives": {
                name: {**compared, **self._change(name)} for name, compared in _compared(self.objectives).items()
            },
            "phases": _compared(self.phases),
            "fullest_rank_bytes": _compared(self.fullest_rank_bytes),
            "tables": {
                "unchanged": self.unchanged,
                "changed": list(self.changed),
                "new": list(self.new),
                "gone": list(self.gone),
                "moved_bytes": self.moved_bytes,
            },
        }

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Objectives that differ by less than the cost model knows."""
        return tuple(
            name
            for name, (lower, upper) in self.changes.items()
            if lower <= 0 <= upper and self.objectives[name].before != self.objectives[name].after
        )

    def _change(self, name: str) -> dict[str, float | bool | None]:
        lower, upper = self.changes.get(name, (None, None))
        return {
            "lower_change_seconds": lower,
            "upper_change_seconds": upper,
            "within_interval": None if lower is None else name in self.doubtful,
        }


def difference(a: CompactPlanDocument, b: CompactPlanDocument) -> PlanDifference:
    """Compare two plan documents, A and B, table by table and phase by phase."""
    before = {table["name"]: table for table in a["tables"]}
    after = {table["name"]: table for table in b["tables"]}
    both = [name for name in after if name in before]
    changed = tuple(name for name in both if _is_changed(before[name], after[name]))
    same_prices = a["provenance"]["cost_model"] == b["provenance"]["cost_model"]
    objectives = _objectives(a, b)
    return PlanDifference(
        same_plan=a["plan_digest"] == b["plan_digest"],
        same_spec=a["spec_digest"] == b["spec_digest"],
        same_prices=same_prices,
        objectives=objectives,
        changes=_changes(a, b, objectives) if same_prices else {},
        phases=_phases(a, b),
        fullest_rank_bytes=_fullest(a, b),
        unchanged=len(both) - len(changed),
        changed=changed,
        new=tuple(name for name in after if name not in before),
        gone=tuple(name for name in before if name not in after),
        moved_bytes=sum(_moved_bytes(before[name], after[name]) for name in changed),
    )


def _compared(pairs: Mapping[str, Pair]) -> dict[str, dict[str, float | None]]:
    return {
        name: {"a": pair.before, "b": pair.after, "relative_change": pair.relative_change}
        for name, pair in pairs.items()
    }


def _objectives(a: CompactPlanDocument, b: CompactPlanDocument) -> dict[str, Pair]:
    found = ((name, _objective_seconds(a, name), _objective_seconds(b, name)) for name in OBJECTIVES)
    return {
        name: Pair(before=before, after=after)
        for name, before, after in found
        if before is not None and after is not None
    }


def _changes(
    a: CompactPlanDocument, b: CompactPlanDocument, objectives: Iterable[str]
) -> dict[str, tuple[float, float]]:
    """Return the limits of each change; none where a plan, of an earlier version perhaps, states no limits."""
    found = ((name, _priced(a, name), _priced(b, name)) for name in objectives)
    return {
        name: change_limits(before, after) for name, before, after in found if before is not None and after is not None
    }


def _priced(plan: CompactPlanDocument, objective: str) -> PricedPlan | None:
    """Return the phases of a plan in an objective; ``None`` where they have no limits."""
    counted = [phase for phase in plan["phases"] if phase["counted"]]
    names = [phase["name"] for phase in counted]
    slowest = max(
        (rank["seconds"] for rank in rank_loads(plan)),
        key=lambda seconds: sum(seconds.get(name, 0.0) for name in names),
        default={},
    )
    phases = {}
    for phase in counted:
        factors = phase_factors(phase["seconds"], phase.get("lower_seconds"), phase.get("upper_seconds"))
        if factors is None:
            return None
        exposed = phase["seconds"] - phase["hidden_seconds"]
        seconds = exposed if objective == "step_time" else slowest.get(phase["name"], 0.0)
        phases[phase["name"]] = PricedPhase(seconds, *factors)
    return PricedPlan(
        phases=phases,
        sharding_types=frozenset(table["sharding_type"] for table in plan["tables"]),
        kernels=frozenset(table["compute_kernel"] for table in plan["tables"]),
    )


def _objective_seconds(plan: CompactPlanDocument, name: str) -> float | None:
    """The seconds of an objective, whichever the plan was made for."""
    objective = plan["objective"]
    if objective["name"] == name:
        return objective["seconds"]
    seconds = objective.get(f"{name}_seconds")
    return float(seconds) if isinstance(seconds, float | int) else None


def _phases(a: CompactPlanDocument, b: CompactPlanDocument) -> dict[str, Pair]:
    before, after = ({phase["name"]: phase["seconds"] for phase in plan["phases"]} for plan in (a, b))
    pairs = {name: Pair(before=before.get(name, 0.0), after=after.get(name, 0.0)) for name in {**before, **after}}
    return {name: pair for name, pair in pairs.items() if pair.before or pair.after}


def _fullest(a: CompactPlanDocument, b: CompactPlanDocument) -> dict[str, Pair]:
    before, after = (
        {one.tier: one.used_bytes for one in fullest_ranks([rank["bytes"] for rank in rank_loads(plan)])}
        for plan in (a, b)
    )
    tiers = tiers_in_order({*before, *after})
    return {tier: Pair(before=before.get(tier, 0), after=after.get(tier, 0)) for tier in tiers}


def _is_changed(before: CompactTableDocument, after: CompactTableDocument) -> bool:
    """Whether what determines how a table is trained differs; the bytes of shards do not."""
    first, second = (
        (table["sharding_type"], table["compute_kernel"], table.get("cache_load_factor"), table.get("data_type"))
        for table in (before, after)
    )
    if first != second:
        return True
    return before["shards"] != after["shards"] and _places(before) != _places(after)


def _places(table: CompactTableDocument) -> list[tuple[object, ...]]:
    """The rectangles of a table and their ranks, in order."""
    return [_PLACE(shard) for shard in shards_of(table["shards"])]


def _moved_bytes(before: CompactTableDocument, after: CompactTableDocument) -> int:
    held = set(_places(before))
    return sum(shard["bytes"] for shard in shards_of(after["shards"]) if _PLACE(shard) not in held)
