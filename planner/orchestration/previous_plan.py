"""A plan that runs already, as the solver problem has it: where its cells lie, what moving costs, where to begin."""

import math
from dataclasses import dataclass, replace

import numpy as np

from cost_models.protocol import CostModel
from planner.domain.plan.change_limits import change_limits, priced_plan
from planner.domain.plan.movement import Movement, PreviousPlan
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Evaluation
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families, with_pieces_of
from planner.options.schemes.geometry import least_piece_columns
from planner.orchestration.placement.from_placement import Pieces, cuts_of
from planner.solver.movement import world_moved_cells
from planner.solver.partitioners.resume import legal_part, with_pins
from planner.solver.problem import Assignment, MovePrice, SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.movement import cell_bytes, links_of, same_table, seconds_per_byte, transfer, transfer_seconds
from planner.verification.verify import verify

_ROUNDING_BYTES = 0.5  # of sums of what moves: bytes are whole, and a budget of none is kept by staying


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousPlanState:
    """What is known of the previous plan under the new problem."""

    previous: PreviousPlan
    placed: tuple[TablePlacement | None, ...]  # (T,) of the tables that it has in the same shape
    #: the families that have its shards, by table, and the pieces they have; its own scheme first
    cuts: tuple[tuple[tuple[int, Pieces], ...], ...]  # (T,)
    evaluation: Evaluation | None  # None where it is no longer legal
    issue: str  # why not

    @property
    def seconds(self) -> float | None:
        """Its objective; None where it is no longer legal."""
        return None if self.evaluation is None else self.evaluation.objective_seconds


def allow_previous_piece_widths(problem: Problem, previous: PreviousPlan) -> Problem:
    """Return the problem with pieces allowed that are as narrow as those of the previous plan, and no narrower.

    That concerns tables that it cut below the least width: for a table that is narrower itself and whole there, no
    other cut becomes legal.
    """
    by_name = {placed.name: placed for placed in previous.placement.tables}
    narrower = {}
    for index, table in enumerate(problem.tables):
        placed = by_name.get(table.name)
        if placed is not None and same_table(table, placed):
            narrowest = int(placed.shards.num_columns.min())
            if narrowest < least_piece_columns(table):
                narrower[index] = narrowest
    return with_pieces_of(problem, narrower)


def locate_previous_plan(
    problem: Problem, families: Families, previous: PreviousPlan, cost_model: CostModel
) -> PreviousPlanState:
    """Find the previous plan among the families, as far as it still exists, and what it costs now."""
    by_name = {placed.name: placed for placed in previous.placement.tables}
    named = [by_name.get(table.name) for table in problem.tables]
    placed = tuple(
        one if one is not None and same_table(table, one) else None
        for table, one in zip(problem.tables, named, strict=True)
    )
    running = replace(problem, use_index_dedup=previous.placement.use_index_dedup)  # whatever comes after it
    issues = verify(running, previous.placement)
    return PreviousPlanState(
        previous=previous,
        placed=placed,
        cuts=_cuts(problem, families, placed),
        evaluation=None if issues else score(running, previous.placement, cost_model),
        issue=issues[0].message if issues else "",
    )


def _cuts(
    problem: Problem, families: Families, placed: tuple[TablePlacement | None, ...]
) -> tuple[tuple[tuple[int, Pieces], ...], ...]:
    first = np.searchsorted([one.table for one in families.families], np.arange(len(placed) + 1)).tolist()
    return tuple(
        () if one is None else tuple(cuts_of(problem, families, range(first[table], first[table + 1]), one))
        for table, one in enumerate(placed)
    )


def with_move_price(
    priced: SolverProblem, problem: Problem, families: Families, previous_state: PreviousPlanState
) -> SolverProblem:
    """Return the solver problem with what moving away from the previous plan costs.

    One step is charged the seconds that the move takes where its bytes are spread evenly over the ranks, divided by
    the steps that remain.
    """
    previous = previous_state.previous
    shards = Shards.joined(placed.shards for placed in previous_state.placed if placed is not None)
    shard_table = np.repeat(
        np.arange(len(previous_state.placed)),
        [0 if placed is None else len(placed.shards) for placed in previous_state.placed],
    )
    order = np.lexsort((shards.column_offset, shards.rank, shard_table))
    is_there = np.array([placed is not None for placed in previous_state.placed], dtype=np.float64)
    in_use = np.zeros(priced.num_families, dtype=np.bool_)
    in_use[[cuts[0][0] for cuts in previous_state.cuts if cuts]] = True
    move = MovePrice(
        seconds_per_byte=seconds_per_byte(problem.cluster) / previous.remaining_steps,
        any_seconds=previous.min_relative_gain * (previous_state.seconds or 0.0),
        max_bytes=math.inf if previous.max_moved_bytes is None else previous.max_moved_bytes + _ROUNDING_BYTES,
        cell_bytes=is_there
        * np.array([cell_bytes(table, one) for table, one in zip(problem.tables, previous_state.placed, strict=True)]),
        table_rows=np.array([table.num_embeddings for table in problem.tables], dtype=np.int64),
        shard_table=shard_table[order],
        shard_rank=shards.rank[order],
        shard_rows=np.stack([shards.row_offset, shards.row_end], axis=1)[order],
        shard_columns=np.stack([shards.column_offset, shards.column_end], axis=1)[order],
        family_replicated=np.array([one.geometry.replicated for one in families.families], dtype=np.bool_),
        family_in_use=in_use,
        family_moved_cells=np.zeros(priced.num_families),
    )
    moved_cells = world_moved_cells(replace(priced, move=move))
    return replace(priced, move=replace(move, family_moved_cells=moved_cells))


def warm_start_from(priced: SolverProblem, previous_state: PreviousPlanState) -> Assignment:
    """Return the pieces of the previous plan that this solver problem has: of some tables all, of others none."""
    index_of = {source: index for index, source in enumerate(priced.family_source.tolist())}
    shape_of = {
        key: shape
        for shape, key in enumerate(zip(priced.shape_family.tolist(), priced.shape_columns.tolist(), strict=True))
    }
    chosen: list[tuple[int, int]] = []
    for cuts in previous_state.cuts:
        for source, pieces in cuts:
            family = index_of.get(source, -1)
            shapes = [shape_of.get((family, columns), -1) for columns, _ in pieces]
            if min(shapes) >= 0:
                chosen.extend(zip(shapes, (site for _, site in pieces), strict=True))
                break
    found = np.array(chosen, dtype=np.int64).reshape(-1, 2)
    return Assignment(piece_shape=found[:, 0].copy(), piece_site=found[:, 1].copy())


def with_home_sites(priced: SolverProblem, before: Assignment) -> SolverProblem:
    """Return the solver problem with the tables of ``before`` where they are; those that may not stay are left out."""
    assert priced.move is not None
    part = legal_part(priced, with_pins(priced, before))
    return replace(priced, move=replace(priced.move, home_shape=part.piece_shape, home_site=part.piece_site))


def movement_of(
    problem: Problem,
    previous_state: PreviousPlanState,
    placement: Placement,
    evaluation: Evaluation,
    charged_seconds: float,
) -> Movement:
    """Say what moves to a placement, how long it takes, and after how many steps it has paid for itself."""
    previous, cluster = previous_state.previous, problem.cluster
    moves = transfer(problem.tables, previous.placement, placement)
    world = max(cluster.world_size, previous.placement.world_size)
    sent, received = np.zeros(world), np.zeros(world)
    for pair in moves.pairs:
        sent[pair.source] += pair.bytes
        received[pair.target] += pair.bytes
    moved = Movement(
        previous_digest=previous.digest,
        moved_bytes=moves.moved_bytes,
        kept_bytes=moves.unmoved_bytes,
        new_bytes=moves.new_bytes,
        pairs=moves.pairs,
        sent_bytes=tuple(sent.tolist()),
        received_bytes=tuple(received.tolist()),
        seconds=transfer_seconds(moves.pairs, cluster),
        link_evidence=links_of(cluster).evidence,
        previous_seconds=previous_state.seconds,
        previous_issue=previous_state.issue,
        saved_seconds_per_step=None,
        break_even_steps=None,
        charged_seconds=charged_seconds,
        remaining_steps=previous.remaining_steps,
        max_moved_bytes=previous.max_moved_bytes,
    )
    if previous_state.evaluation is None:
        return moved
    return reprice_movement(moved, (previous.placement, previous_state.evaluation), (placement, evaluation))


def reprice_movement(
    movement: Movement, before: tuple[Placement, Evaluation], after: tuple[Placement, Evaluation]
) -> Movement:
    """Return what moves with the objectives of both plans under a cost model."""
    previous_seconds = before[1].objective_seconds
    saved = previous_seconds - after[1].objective_seconds
    priced = [priced_plan(evaluation, placement) for placement, evaluation in (after, before)]
    limits = None if priced[0] is None or priced[1] is None else change_limits(priced[0], priced[1])
    return replace(
        movement,
        previous_seconds=previous_seconds,
        saved_seconds_per_step=saved,
        saved_lower_seconds=None if limits is None else limits[0],
        saved_upper_seconds=None if limits is None else limits[1],
        break_even_steps=math.ceil(movement.seconds / saved) if saved > 0 and movement.seconds is not None else None,
    )
