"""Local search's loop: propose a random move, keep it or undo it.

A move that makes the smooth cost grow is kept where the growth stays under a bar that is drawn first:
Metropolis' rule the other way round, so that most hopeless moves are seen to be so before they are priced.
"""

import numpy as np

from cost_models.arrays import Floats
from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.moves.cut import merge_pieces, shift_columns, split_piece
from planner.solver.partitioners.kernels.moves.ejection_chain import start_ejection_chain
from planner.solver.partitioners.kernels.moves.item import replace_item, send_home
from planner.solver.partitioners.kernels.moves.move_table import Move
from planner.solver.partitioners.kernels.moves.piece import move_piece, swap_pieces
from planner.solver.partitioners.kernels.moves.redistribution_proposals import (
    cut_and_redistribute,
    redistribute_three_sites,
    redistribute_two_sites,
)
from planner.solver.partitioners.kernels.moves.sampling import pick_item
from planner.solver.partitioners.kernels.state.rng import random_unit
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.local_search.search_data import Data

SCOPES = 2  #: of a move: RANK and HOST


@compiled
def draw(state: State, mix: Floats) -> int:
    """Return a random row of a mix: the number of a move times ``SCOPES``, plus its scope."""
    chance, row = random_unit(state), 0
    while chance >= mix[row]:
        row += 1
    return row


@compiled
def propose(data: Data, state: State, move: int, scope: int, before: float, bar: float) -> bool:
    """Try a move among ranks or hosts; ``False`` where it cannot be made, or adds more than the bar to the cost."""
    if move == Move.SWAP_PIECES:
        return swap_pieces(data, state, scope, before, bar)
    if move == Move.MOVE_PIECE:
        return move_piece(data, state, scope, before, bar)
    if move == Move.SHIFT_COLUMNS:
        return shift_columns(data, state, pick_item(data, state), before, bar)
    if move == Move.SPLIT_PIECE:
        return split_piece(data, state, pick_item(data, state), before, bar)
    if move == Move.MERGE_PIECES:
        return merge_pieces(data, state, pick_item(data, state), before, bar)
    if move == Move.CUT_AND_REDISTRIBUTE:
        return cut_and_redistribute(data, state, before, bar)
    if move == Move.REPLACE_ITEM:
        return replace_item(data, state, before, bar)
    if move == Move.SEND_HOME:
        return send_home(data, state, before, bar)
    if move == Move.EJECT_PIECE:
        return start_ejection_chain(data, state, before, bar)
    if move == Move.REDISTRIBUTE_THREE:
        return redistribute_three_sites(data, state, scope, before, bar)
    return redistribute_two_sites(data, state, scope, before, bar)


@compiled
def anneal(
    data: Data,
    state: State,
    proposals: int,
    temperature: float,
    smoothness: float,
    penalty: float,
    mix: Floats,
    most_looked: float,
) -> int:
    """Try a number of moves at one temperature; return how many were tried.

    ``mix`` has the probability of each move and scope, added up (``proposal_mix.cumulative_mix``). Moves end early
    once redistributions have looked at more than ``most_looked`` sets of pieces, by ``state.looked``.
    """
    refresh(data, state, smoothness, penalty)
    value = cost(data, state)
    reprice(data, state)
    for tried in range(proposals):
        if state.looked[0] > most_looked:
            return tried
        row, bar = draw(state, mix), -temperature * np.log(1.0 - random_unit(state))
        if propose(data, state, row // SCOPES, row % SCOPES, value, bar):
            value = cost(data, state)
            reprice(data, state)
    return proposals
