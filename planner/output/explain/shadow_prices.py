"""What more memory or faster links would buy.

Two methods, and each number says which one it comes from:

- *relaxation*: the dual price of bytes. The relaxation's value is convex in the memory of the cluster, so that
  price times bytes is the most by which the lower bound over the cuts that fit now can fall;
- *re-evaluation*: this very plan under changed hardware numbers. Another plan may suit the changed hardware
  better, so that it is the least that the change buys.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import CostModel, ShardSeconds
from cost_models.vocabulary import Evidence, Phase, Tier
from planner.domain.formats.units import GIGABYTE
from planner.options.enumerate import Family
from planner.orchestration.placement.listed_plan import ListedPlan
from planner.output.explain.bottlenecks import exposed_seconds
from planner.pricing.price_options import FamilyColumns
from planner.pricing.price_work import price_work
from planner.solver.evaluate import rank_seconds
from planner.solver.problem import RelaxationHint, SolverProblem

MORE_BYTES = GIGABYTE
FASTER = 1.1

#: Rates that no other tier is read or written at.
OWN_RATES = {
    Tier.SCM: ("scm_bytes_per_second", "scm_write_bytes_per_second"),
    Tier.SSD: ("ssd_reads_per_second", "ssd_bytes_per_second", "ssd_write_bytes_per_second"),
}

RELAXATION, RE_EVALUATION = "relaxation", "re_evaluation"
AT_MOST, AT_LEAST = "at_most", "at_least"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowPrice:
    """What one change of the hardware would save."""

    resource: str  # "hbm_bytes", "inter_host_bytes_per_second"
    change: str  # in words
    saved_seconds: float | None  # of the objective; ``None`` if it is not known
    direction: str  # AT_MOST or AT_LEAST
    method: str  # RELAXATION or RE_EVALUATION
    evidence: Evidence | None  # the weakest number that it rests on; ``None`` if nothing was computed
    note: str
    #: of ``saved_seconds``, what each phase exposes less; the parts of phases that get longer are negative
    phase_seconds: Mapping[Phase, float] = field(default_factory=dict)


def memory_prices(
    priced: SolverProblem, hint: RelaxationHint | None, evidence: Evidence, device: Tier, group: str = "host"
) -> tuple[ShadowPrice, ...]:
    """Return the price of every tier that tables may take bytes of on every rank of a ``group``, the device's first."""
    used = [Tier(tier) for tier in np.flatnonzero(np.any(priced.shape_bytes > 0, axis=0)).tolist()]
    tiers = [device, *(tier for tier in used if tier is not device)]
    return tuple(memory_price(priced, hint, evidence, tier, group) for tier in tiers)


def memory_price(
    priced: SolverProblem, hint: RelaxationHint | None, evidence: Evidence, tier: Tier, group: str = "host"
) -> ShadowPrice:
    """Return what a GB more on every rank of one ``group``, a host or pod, could save, by the relaxation."""
    price = None if hint is None else float(hint.memory_price[tier])
    saved = None if price is None else price * MORE_BYTES * priced.ranks_per_host
    if saved is None:
        note = "the relaxation was not solved: nothing is known"
    elif saved > 0:
        note = (
            "the bound, over the cuts that fit now, falls by no more than that; a plan that packs its ranks badly may"
            " gain more"
        )
    else:
        note = "the lower bound does not depend on it; a plan that packs its ranks badly may still gain"
    return ShadowPrice(
        resource=f"{tier.label}_bytes",
        change=f"1 GB more on every rank of one {group}",
        saved_seconds=saved,
        direction=AT_MOST,
        method=RELAXATION,
        evidence=None if saved is None else evidence,
        note=note,
    )


def hardware_prices(plan: ListedPlan, cost_model: CostModel) -> tuple[ShadowPrice, ...]:
    """Return what 10% more of each rate would save for this placement."""
    hardware, read = plan.problem.cluster.hardware.recorded()
    shapes = np.unique(plan.assignment.piece_shape)
    now = seconds_of_shapes(plan, shapes, cost_model, hardware)
    return tuple(_faster(plan, cost_model, shapes, now, rate, frozenset(read)) for rate in _rates(plan))


def seconds_of_shapes(plan: ListedPlan, shapes: Ints, cost_model: CostModel, hardware: Hardware) -> ShardSeconds:
    """Price some shapes of a plan's problem on any hardware, one row each."""
    listed = [plan.families.families[index] for index in plan.priced.shape_family[shapes].tolist()]
    columns = FamilyColumns.of(listed)
    work = columns.work(plan.problem, slice(None), plan.priced.shape_columns[shapes])
    return price_work(plan.problem, work, table=columns.table, cost_model=cost_model, hardware=hardware)


def _exposed(plan: ListedPlan, shapes: Ints, seconds: ShardSeconds) -> Floats:
    """Return what the objective has of every phase where some shapes take other seconds, shape (P,)."""
    changed = plan.priced.shape_seconds.copy()
    changed[shapes] = seconds.seconds
    return exposed_seconds(plan.priced, rank_seconds(replace(plan.priced, shape_seconds=changed), plan.assignment))


def _rates(plan: ListedPlan) -> Iterator[str]:
    """Yield the rates that people ask for, in the order of a step."""
    device = plan.problem.cluster.device_tier
    yield f"{device.label}_bytes_per_second"
    tiers = {one.storage.tier(device) for one in _chosen(plan)} - {device}
    if tiers:
        yield "host_link_bytes_per_second"
    if tiers - {Tier.SCM}:
        yield "ddr_bytes_per_second"
    for tier in sorted(tiers):
        yield from OWN_RATES.get(tier, ())
    yield "intra_host_bytes_per_second"
    yield "inter_host_bytes_per_second"


def _chosen(plan: ListedPlan) -> Iterator[Family]:
    """Yield the families that the plan has."""
    for family in np.unique(plan.priced.shape_family[plan.assignment.piece_shape]).tolist():
        yield plan.families.families[int(plan.priced.family_source[family])]


def _faster(
    plan: ListedPlan, cost_model: CostModel, shapes: Ints, now: ShardSeconds, rate: str, read: frozenset[str]
) -> ShadowPrice:
    """Evaluate the plan with a rate that is FASTER times as high."""
    hardware = plan.problem.cluster.hardware
    laws = _laws(hardware, rate)
    saved, evidence = None, None
    by_phase: Mapping[Phase, float] = {}
    if not hardware.has(rate) and not laws:
        note = f"{hardware.profile} has no such number"
    elif not ({rate} | laws) & read:
        saved, note = 0.0, "nothing: no time of this plan depends on it"
    else:
        then = seconds_of_shapes(plan, shapes, cost_model, _scaled(hardware, rate))
        shorter = _exposed(plan, shapes, now) - _exposed(plan, shapes, then)
        saved = float(np.sum(shorter))
        by_phase = {Phase(phase): float(shorter[phase]) for phase in np.flatnonzero(shorter).tolist()}
        evidence = Evidence(int(np.max(then.evidence[then.seconds != now.seconds], initial=0)))
        note = "for this placement; a plan made for it may gain more"
    return ShadowPrice(
        resource=rate,
        change=f"{FASTER - 1:.0%} more",
        saved_seconds=saved,
        direction=AT_LEAST,
        method=RE_EVALUATION,
        evidence=evidence,
        note=note,
        phase_seconds=by_phase,
    )


def _laws(hardware: Hardware, rate: str) -> set[str]:
    """Return the names of the laws that rest on the links of a rate."""
    if rate.startswith("intra_host"):
        return {f"{name}_law" for name in hardware.domain_laws}
    return {f"{name}_hosts_law" for name in hardware.hosts_laws} if rate.startswith("inter_host") else set()


def _scaled(hardware: Hardware, rate: str) -> Hardware:
    """Return hardware with a rate, and the laws of its links, FASTER times as fast."""
    numbers, inside, over = dict(hardware.numbers), dict(hardware.domain_laws), dict(hardware.hosts_laws)
    if rate in numbers:
        numbers[rate] = replace(numbers[rate], value=numbers[rate].value * FASTER)
    if rate.startswith("intra_host"):
        inside = {name: law.faster(FASTER) for name, law in inside.items()}
    if rate.startswith("inter_host"):
        over = {name: law.faster(FASTER) for name, law in over.items()}
    return replace(hardware, numbers=numbers, domain_laws=inside, hosts_laws=over)
