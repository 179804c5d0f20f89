"""Why a plan is as it is: what it waits for, what more hardware would buy, and what else its tables could be.

Everything is computed from the problem and the placement; no search is run.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from cost_models.protocol import CostModel
from cost_models.vocabulary import Evidence, Scheme, Tier
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.storage import Storage
from planner.errors import InvalidProblem
from planner.orchestration.family_sets.kind_sets import whole_set
from planner.orchestration.placement.listed_plan import ListedPlan, find_plan
from planner.output.explain.alternatives import Alternative, Alternatives
from planner.output.explain.bottlenecks import BindingPhase, binding_phases, seconds_on_binding_ranks
from planner.output.explain.memory_peak import MemoryPeak, memory_peak
from planner.output.explain.reasons import reason
from planner.output.explain.shadow_prices import ShadowPrice, hardware_prices, memory_prices, seconds_of_shapes
from planner.output.explain.tier_use import Binding, TierUse, binding, binding_rate, tier_uses
from planner.pricing.placed_work import linearise_around
from planner.pricing.price_options import drop_unusable, prune
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.pricing.step.starts import starts_of_placement
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import touched_ranks
from planner.solver.problem import SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify

DEFAULT_TABLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReason:
    """Why one table is cut as it is."""

    name: str
    scheme: Scheme
    storage: Storage
    columns: tuple[int, ...]  # of each piece
    binding_seconds: float  # on the slowest ranks of the exposed phases
    reason: str
    alternatives: tuple[tuple[Alternative, tuple[int, ...]], ...]  # each with the table's ranks


#: Added to the name of a model that prices whole ranks: single shards have a price near the plan alone.
_ADDITIVELY = ", additively near this plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that is computed about one plan."""

    objective: str
    objective_seconds: float
    #: of the objective, the same for every placement: the messages of a request, the starts of averages over replicas
    fixed_seconds: float
    bound_seconds: float  # of the relaxation here; a solve may have proven more
    cost_model: str  # "roofline@2"
    device_tier: Tier  # where rows lie that no kernel keeps elsewhere
    binding: Binding
    tiers: tuple[TierUse, ...]  # in the order of Tier
    memory: MemoryPeak | None  # of the rank that holds most at once; None where requests are served
    phases: tuple[BindingPhase, ...]
    shadow_prices: tuple[ShadowPrice, ...]
    num_tables: int
    tables: tuple[TableReason, ...]  # those that weigh most on the binding ranks, heaviest first

    def to_document(self) -> dict[str, object]:
        """Return the explanation as JSON."""
        return {
            "objective": {
                "name": self.objective,
                "seconds": self.objective_seconds,
                "relaxation_seconds": self.bound_seconds,
            },
            "cost_model": self.cost_model,
            "binding": {"rate": self.binding.rate, "tiers": [tier.label for tier in self.binding.tiers]},
            "tiers": [_tier_document(use) for use in self.tiers],
            "memory": None if self.memory is None else self.memory.to_document(),
            "phases": [
                {**_phase_document(phase), "rate": binding_rate(self.shadow_prices, phase.phase)}
                for phase in self.phases
            ],
            "shadow_prices": [_price_document(price) for price in self.shadow_prices],
            "num_tables": self.num_tables,
            "tables": [_table_document(table, self.fixed_seconds, self.device_tier) for table in self.tables],
        }


def explain(
    problem: Problem, placement: Placement, cost_model: CostModel, *, max_tables: int = DEFAULT_TABLES
) -> Explanation:
    """Explain a plan, wherever it comes from.

    Parameters
    ----------
    problem, placement, cost_model
        The plan, what it is a plan of, and what its seconds mean.
    max_tables
        How many tables are explained: those that weigh most on the binding ranks.

    Raises
    ------
    InvalidProblem
        If the plan breaks a rule: what must not be used is not explained.
    UnsupportedRequest
        If a table is cut in a way that is not listed for it.
    """
    problem = problem.of_plan(placement.world_size, placement.kv_cache_bytes, use_index_dedup=placement.use_index_dedup)
    if issues := verify(problem, placement):
        raise InvalidProblem(issues)
    asked, cost_model = cost_model, linearise_around(problem, placement, cost_model)
    plan = find_plan(problem, placement, cost_model)
    priced, tier = plan.priced, problem.cluster.device_tier
    found = Alternatives(plan)
    relaxed = _relaxed(priced)
    bound = lower_bound(relaxed, known_seconds=found.objective_seconds)
    fixed_seconds = seconds_without_shards(problem, found.objective_seconds)
    evidence = _evidence(plan, placement, cost_model)
    phases = binding_phases(priced, found.seconds, evidence, bound.hint, relaxed.charged_seconds)
    weakest = max((phase.evidence for phase in phases), default=Evidence.MEASURED)
    prices = (
        *memory_prices(priced, bound.hint, weakest, tier, plan.problem.cluster.group_noun),
        *hardware_prices(plan, cost_model),
    )
    evaluation = score(problem, placement, asked)
    uses = tier_uses(evaluation, problem.cluster.hardware)
    weight = seconds_on_binding_ranks(priced, plan.assignment, found.seconds)
    heaviest = np.argsort(-weight, kind="stable")[:max_tables].tolist()
    return Explanation(
        objective=problem.objective,
        objective_seconds=found.objective_seconds + fixed_seconds,
        fixed_seconds=fixed_seconds,
        bound_seconds=bound.seconds + fixed_seconds,
        cost_model=f"{cost_model.name}@{cost_model.version}" + ("" if asked is cost_model else _ADDITIVELY),
        device_tier=tier,
        binding=binding(prices, uses),
        tiers=uses,
        memory=memory_peak(evaluation),
        phases=phases,
        shadow_prices=prices,
        num_tables=priced.num_tables,
        tables=tuple(_table_reason(plan, found, table, float(weight[table])) for table in heaviest),
    )


def _relaxed(priced: SolverProblem) -> SolverProblem:
    """Return what the quick bound is of: all families, and the starts that every plan has."""
    if not priced.num_kinds:
        return prune(priced)
    kinds = whole_set(drop_unusable(priced))
    return prune(priced) if kinds is None else kinds.priced


def _evidence(
    plan: ListedPlan, placement: Placement, cost_model: CostModel
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """Weakest evidence code of each phase of the plan, shape (P,)."""
    shapes = np.unique(plan.assignment.piece_shape)
    hardware = plan.problem.cluster.hardware
    predicted = seconds_of_shapes(plan, shapes, cost_model, hardware)
    starts = starts_of_placement(plan.problem, placement, cost_model, hardware)
    weakest: np.ndarray[tuple[int], np.dtype[np.int8]] = np.maximum(
        np.max(predicted.evidence, axis=0, initial=0), starts.evidence_by_phase
    )
    return weakest


def _table_reason(plan: ListedPlan, found: Alternatives, table: int, binding_seconds: float) -> TableReason:
    priced, assignment = plan.priced, plan.assignment
    shapes = assignment.piece_shape[priced.shape_table[assignment.piece_shape] == table]
    family = plan.families.families[int(priced.family_source[priced.shape_family[shapes[0]]])]
    columns = tuple(priced.shape_columns[shapes].tolist())
    alternatives = found.of_table(table)
    return TableReason(
        name=plan.problem.tables[table].name,
        scheme=family.scheme,
        storage=family.storage,
        columns=columns,
        binding_seconds=binding_seconds,
        reason=reason(
            family.scheme,
            family.storage,
            columns,
            alternatives,
            objective_seconds=found.objective_seconds,
            is_pinned=bool(priced.table_is_pinned[table]),
            group=plan.problem.cluster.group_noun,
            is_given_cut=bool(priced.table_has_fixed_cut[table]),
        ),
        alternatives=tuple(
            (one, tuple(np.flatnonzero(touched_ranks(priced, one.assignment)[table]).tolist())) for one in alternatives
        ),
    )


def _phase_document(phase: BindingPhase) -> Mapping[str, object]:
    values = asdict(phase)
    name = values.pop("phase").label
    return {"name": name, **values, "ranks": list(phase.ranks), "evidence": phase.evidence.label}


def _tier_document(use: TierUse) -> Mapping[str, object]:
    return {**asdict(use), "tier": use.tier.label}


def _price_document(price: ShadowPrice) -> Mapping[str, object]:
    return {
        **asdict(price),
        "evidence": None if price.evidence is None else price.evidence.label,
        "phase_seconds": {phase.label: seconds for phase, seconds in price.phase_seconds.items()},
    }


def _cut_document(cut: TableReason | Alternative, device_tier: Tier) -> Mapping[str, object]:
    storage = cut.storage
    return {
        "sharding_type": cut.scheme.label,
        "compute_kernel": storage.kernel.label,
        "tier": storage.tier(device_tier).label,
        "cache_load_factor": storage.cache_load_factor,
        "hot_row_fraction": storage.hot_row_share or None,
        "data_type": storage.data_type.name,
        "columns": list(cut.columns),
    }


def _table_document(table: TableReason, fixed_seconds: float, device_tier: Tier) -> Mapping[str, object]:
    return {
        "name": table.name,
        **_cut_document(table, device_tier),
        "binding_seconds": table.binding_seconds,
        "reason": table.reason,
        "alternatives": [
            {
                **_cut_document(one, device_tier),
                "ranks": list(ranks),
                "objective_seconds": one.objective_seconds + fixed_seconds,
                "change_seconds": one.change_seconds,
                "excess_bytes": one.excess_bytes,
                "is_best_of_kind": one.is_best,
                "opened_start_seconds": one.opened_seconds,
                "closed_start_seconds": one.closed_seconds,
            }
            for one, ranks in table.alternatives
        ],
    }
