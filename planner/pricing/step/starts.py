"""Starts that a plan pays once per step for every kind of sharding that it uses, from its tables alone.

A kind is a sharding type in one module (:mod:`cost_models.collectives.starts`). All ranks take part in its collectives
and wait for each other, so that its starts are the same on every rank, whatever lies there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Bools, Codes, Floats, Ints
from cost_models.collectives.collectives import Network
from cost_models.collectives.starts import Kind, PricesStarts, StartPrices, kind_starts, starts_in_ranks
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import AssignmentModel, CostModel
from cost_models.vocabulary import NUM_PHASES, Evidence, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.step.phases import in_phases_of, num_phases


class ModuleKind(NamedTuple):
    """A sharding type in a module. Pooled tables and sequences are two modules, whatever their path."""

    module_path: str
    is_pooled: bool
    scheme: Scheme


@dataclass(frozen=True, kw_only=True)
class UsedStarts:
    """Starts of the kinds that some tables use; kinds in the order in which they first come."""

    kinds: tuple[ModuleKind, ...]
    seconds: Floats  # (kinds, num_phases)
    evidence: Codes  # (kinds, num_phases)
    in_ranks: Floats  # (num_phases,) that the model's seconds of whole ranks hold already

    @cached_property
    def by_phase(self) -> Floats:
        """What every rank has in addition to its shards, (num_phases,)."""
        total: Floats = np.maximum(self.seconds.sum(axis=0) - self.in_ranks, 0.0)
        return total

    @cached_property
    def evidence_by_phase(self) -> Codes:
        """The weakest number behind each phase, (num_phases,)."""
        weakest: Codes = np.max(self.evidence, axis=0, initial=np.int8(Evidence.MEASURED))
        return weakest


def starts_of_families(
    problem: Problem, tables_and_schemes: Sequence[tuple[int, Scheme]], cost_model: CostModel
) -> tuple[Ints, Floats]:
    """Return the kind of each family, given as table and scheme, and the starts of every kind, (kinds, num_phases).

    Both are empty where nothing is started: then every plan pays the same, nothing.
    """
    prices = _prices(problem, cost_model)
    if prices is None:
        return np.zeros(0, dtype=np.int64), np.zeros((0, num_phases(problem)))
    kinds = [_kind_of(problem.tables[table], scheme) for table, scheme in tables_and_schemes]
    number = {kind: index for index, kind in enumerate(dict.fromkeys(kinds))}
    found = kind_starts(_priced_kinds(problem, number), prices, _network(problem, problem.cluster.hardware))
    if not found.seconds.any():
        return np.zeros(0, dtype=np.int64), np.zeros((0, num_phases(problem)))
    of_families = np.array([number[kind] for kind in kinds], dtype=np.int64)
    return of_families, in_phases_of(problem, found.seconds, 0.0)


def starts_of_placement(
    problem: Problem, placement: Placement, cost_model: CostModel, hardware: Hardware
) -> UsedStarts:
    """Return the starts of a placement, priced on ``hardware``; of no kind where nothing is started."""
    prices = _prices(problem, cost_model)
    if prices is None:
        empty = np.zeros((0, num_phases(problem)))
        return UsedStarts(kinds=(), seconds=empty, evidence=empty.astype(np.int8), in_ranks=empty.sum(axis=0))
    by_name = {table.name: table for table in problem.tables}
    kinds = tuple(dict.fromkeys(_kind_of(by_name[one.name], one.sharding_type) for one in placement.tables))
    priced, network = _priced_kinds(problem, kinds), _network(problem, hardware)
    found = kind_starts(priced, prices, network)
    is_whole = isinstance(cost_model, AssignmentModel)
    in_ranks = starts_in_ranks(priced, prices, network) if is_whole else np.zeros(NUM_PHASES)
    is_paid: Bools = np.any(found.seconds > 0, axis=1)
    return UsedStarts(
        kinds=tuple(kind for kind, paid in zip(kinds, is_paid.tolist(), strict=True) if paid),
        seconds=in_phases_of(problem, found.seconds[is_paid], 0.0),
        evidence=in_phases_of(problem, found.evidence[is_paid], Evidence.MEASURED),
        in_ranks=in_phases_of(problem, in_ranks, 0.0),
    )


def _prices(problem: Problem, cost_model: CostModel) -> StartPrices | None:
    """Return what starts cost; ``None`` where the spec, the runtime or the cost model has none."""
    has_kinds = RUNTIMES[problem.runtime].runs_sharding_types_apart and problem.serving is None
    if not (problem.counts_starts and has_kinds and isinstance(cost_model, PricesStarts)):
        return None
    return cost_model.starts


def _kind_of(table: Table, scheme: Scheme) -> ModuleKind:
    return ModuleKind(table.module_path, table.pooling != "none", scheme)


def _priced_kinds(problem: Problem, kinds: Iterable[ModuleKind]) -> list[Kind]:
    """Return what prices need to know of kinds; a module has weighted ids if one of its features has."""
    deduplicates = bool(problem.use_index_dedup)  # which sends no weights of ids
    weighted = {
        (table.module_path, table.pooling != "none")
        for table in problem.tables
        if table.is_weighted and not (deduplicates and table.pooling == "none")
    }
    return [
        Kind(
            scheme=kind.scheme,
            is_pooled=kind.is_pooled,
            is_weighted=(kind.module_path, kind.is_pooled) in weighted,
            is_pipelined=problem.pipeline != "none",
            is_deduplicated=deduplicates and not kind.is_pooled,
        )
        for kind in kinds
    ]


def _network(problem: Problem, hardware: Hardware) -> Network:
    cluster = problem.cluster
    return Network(
        hardware=hardware,
        num_ranks=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        pod_size=cluster.pod_size,
        job=cluster.job,
    )
