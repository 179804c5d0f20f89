"""What the shards of a placement do and hold, computed from its geometry alone."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cost_models.analytic.sizes import id_bytes
from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import AssignmentModel, CostModel, ShardWork
from cost_models.vocabulary import HOST_TIERS, IS_HASHED, IS_REPLICATED, NUM_TIERS, Tier
from planner.access.table_columns import data_type_code, table_columns
from planner.domain.plan.placement import Placement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.memory.ledger import EXACT, LINES, TORCHREC, shard_ledger
from planner.pricing.memory.operators import CACHE_LINES, placed_cache_bytes
from planner.pricing.predictions.learned_prediction import PlacedShards
from planner.pricing.shard_work import build_work
from planner.solver.segments import by_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedWork:
    """The shards of a placement by kind: neighbours of one table with equal rows and columns do the same."""

    work: ShardWork  # of each kind
    table: Ints  # (num_kinds,)
    stored_rows: Ints  # (num_kinds,)
    reserved_bytes: Floats  # (num_kinds,) left free by the table's cache; NaN if the plan states nothing
    kind: Ints  # (num_shards,) of every shard, in order
    rank: Ints  # (num_shards,)
    is_hot: Bools  # (num_shards,) the hot rows of a table of which another shard stands for all
    lookups: Floats  # (num_shards,) of one step, of its own rows, where ``work`` has those of the heaviest row block

    @classmethod
    def of(cls, problem: Problem, placement: Placement) -> Self:
        """Group shards by kind: a plan of a million shards has some thousands."""
        tables, shards, placed = placement.tables, placement.all_shards(), placement.table_of_shards()
        is_new = np.ones(len(shards), dtype=np.bool_)
        different = (placed, shards.num_rows, shards.num_columns, shards.tier)
        is_new[1:] = np.any([np.diff(one) != 0 for one in different], axis=0)
        # Of a table split by heat, the shard of the cold rows stands for both, that of the hot ones for nothing.
        hot_rows = np.array([one.hot_rows for one in tables], dtype=np.int64)
        is_hot = (hot_rows[placed] > 0) & ~np.isin(shards.tier, HOST_TIERS)
        of_kind = placed[is_new]
        index = {table.name: i for i, table in enumerate(problem.tables)}
        table = np.array([index[one.name] for one in tables], dtype=np.int64)[of_kind]
        types = [one.data_type or problem.tables[index[one.name]].data_type.name for one in tables]
        shares = [np.nan if one.cache_load_factor is None else one.cache_load_factor for one in tables]
        reserved = [np.nan if one.cache_reserved_bytes is None else one.cache_reserved_bytes for one in tables]
        work = build_work(
            problem,
            table_columns(problem),
            table=table,
            scheme=np.array([one.sharding_type for one in tables], dtype=np.int8)[of_kind],
            kernel=np.array([one.compute_kernel for one in tables], dtype=np.int8)[of_kind],
            shard_columns=shards.num_columns[is_new],
            cache_load_factor=np.array(shares, dtype=np.float64)[of_kind],
            data_type=np.array([data_type_code(name) for name in types], dtype=np.int8)[of_kind],
            in_scm=shards.tier[is_new] == Tier.SCM,
            hot_row_share=(hot_rows / [problem.tables[index[one.name]].num_embeddings for one in tables])[of_kind],
        )
        kind = np.cumsum(is_new) - 1
        return cls(
            work=work,
            table=table,
            stored_rows=np.where(hot_rows[of_kind] > 0, work.table_rows, shards.num_rows[is_new]),
            reserved_bytes=np.array(reserved, dtype=np.float64)[of_kind],
            kind=kind,
            rank=shards.rank,
            is_hot=is_hot,
            lookups=np.where(is_hot, 0.0, _lookups(problem, work, table, kind, shards)),
        )

    def shards(self) -> PlacedShards:
        """Return the shards that do work: hot rows of a split table are in the work of its cold ones."""
        kind, rank = self.kind[~self.is_hot], self.rank[~self.is_hot]
        return PlacedShards(work=self.work, table=self.table, kind=kind, rank=rank)

    def ledger(self, problem: Problem) -> "PlacedLedger":
        """Return what every rank and shard really hold, with the caches of the operators that the runtime makes."""
        of_kind = shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, ledger=EXACT)
        caches = placed_cache_bytes(
            problem,
            self.work,
            table=self.table,
            stored_rows=self.stored_rows,
            reserved_bytes=self.reserved_bytes,
            kind=self.kind,
            rank=self.rank,
        )
        of_operators = np.ix_(~IS_HASHED[self.work.kernel], np.array([LINES.index(line) for line in CACHE_LINES]))
        of_kind.bytes[of_operators] = 0.0
        lines = self.by_rank(problem, of_kind.by_tier_and_line()).reshape(-1, NUM_TIERS, len(LINES))
        hot = of_kind.bytes[:, LINES.index("hot_rows")]
        rest = of_kind.bytes.sum(axis=1) - hot
        shard_bytes = np.where(self.is_hot, hot[self.kind], rest[self.kind])
        for line, held in caches.bytes.items():
            place = LINES.index(line)
            tier = of_kind.tier[self.kind[caches.shard], place].astype(np.int64)
            np.add.at(lines[:, :, place], (self.rank[caches.shard], tier), held)
            shard_bytes[caches.shard] += held
        return PlacedLedger(lines=lines, shard_bytes=shard_bytes)

    def weight_bytes(self, problem: Problem) -> Floats:
        """Return the weights of every shard where its kernel stores them, (num_shards,)."""
        of_kind = shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, ledger=EXACT)
        weights: Floats = of_kind.bytes[self.kind, LINES.index("weights")]
        return weights

    def lookups_by_rank(self, problem: Problem) -> tuple[Floats, Floats]:
        """Return the lookups of each rank in one step, and the bytes of the ids that reach it; (num_ranks,) each."""
        sent = np.where(IS_REPLICATED[self.work.scheme], 0.0, id_bytes(self.work.is_weighted))[self.kind]
        lookups, received = np.zeros((2, problem.world_size))
        np.add.at(lookups, self.rank, self.lookups)
        np.add.at(received, self.rank, self.lookups * sent)
        return lookups, received

    def bytes_apart(self, problem: Problem) -> Floats:
        """Return the bytes of one shard of each kind by tier as searches count them, (num_kinds, NUM_TIERS)."""
        return shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, ledger=EXACT).by_tier()

    def torchrec_bytes(self, problem: Problem) -> Floats:
        """Return the bytes of every rank by tier as TorchRec's planner estimates them, (num_ranks, NUM_TIERS)."""
        of_kind = shard_ledger(problem, self.work, table=self.table, stored_rows=self.stored_rows, ledger=TORCHREC)
        return self.by_rank(problem, of_kind.by_tier())

    def by_rank(self, problem: Problem, of_kind: Floats) -> Floats:
        """Add up over each rank's shards what one of each kind has, shape (num_ranks, number of columns)."""
        total = np.zeros((problem.world_size, of_kind.shape[1]))
        kind, rank = self.kind[~self.is_hot], self.rank[~self.is_hot]
        for column in np.flatnonzero(of_kind.any(axis=0)):
            total[:, column] = np.bincount(rank, weights=of_kind[kind, column], minlength=len(total))
        return total


def _lookups(problem: Problem, work: ShardWork, table: Ints, kind: Ints, shards: Shards) -> Floats:
    """Return the lookups of each shard; ``work`` and ``table`` are of kinds."""
    lookups, columns = work.lookups[kind], table_columns(problem)
    blocks, unique = columns.row_blocks, columns.deduplicated
    if RUNTIMES[problem.runtime].has_modulo_rows:
        return lookups
    is_cut = (work.row_shards > 1) & blocks.is_uneven[table]
    for one, some in by_owner(table[kind], np.flatnonzero(is_cut[kind])):
        rows = (one, shards.row_offset[some], shards.row_end[some])
        if unique is not None and unique.is_deduplicated[one]:
            share = unique.row_blocks.distinct_of(*rows)
        else:
            share = blocks.lookups_of(*rows)
        lookups[some] = work.batch_ids[kind[some]] * work.num_ranks * share
    return lookups


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLedger:
    """What a placement takes of every rank's memory."""

    lines: Floats  # (num_ranks, NUM_TIERS, len(LINES))
    shard_bytes: Floats  # (num_shards,) of every shard in all tiers together

    def by_tier(self) -> Floats:
        """Return the bytes of every rank, shape (num_ranks, NUM_TIERS)."""
        held: Floats = self.lines.sum(axis=2)
        return held


def linearise_around(problem: Problem, placement: Placement, cost_model: CostModel) -> CostModel:
    """Return the additive model that agrees best near a placement: the model itself where it is additive."""
    if not isinstance(cost_model, AssignmentModel):
        return cost_model
    placed = PlacedWork.of(problem, placement).shards()
    return cost_model.around(placed.work.take(placed.kind), placed.rank, problem.cluster.hardware)
