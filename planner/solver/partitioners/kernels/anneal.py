"""Local search's loop: propose a random move, keep it or undo it.

A move that makes the smooth cost grow is kept where the growth stays under a bar that is drawn first:
Metropolis' rule the other way round, so that most hopeless moves are seen to be so before they are priced.
"""

from typing import NamedTuple

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice
from planner.solver.partitioners.kernels.moves.cut import merge_pieces, shift_columns, split_piece
from planner.solver.partitioners.kernels.moves.ejection_chain import start_ejection_chain
from planner.solver.partitioners.kernels.moves.item import replace_item, send_home
from planner.solver.partitioners.kernels.moves.piece import move_piece, swap_pieces
from planner.solver.partitioners.kernels.moves.redistribution_proposals import (
    cut_and_redistribute,
    redistribute_three_sites,
    redistribute_two_sites,
)
from planner.solver.partitioners.kernels.moves.sampling import pick_item
from planner.solver.partitioners.kernels.state.rng import random_below, random_unit
from planner.solver.partitioners.kernels.state.state import HOST, RANK, State
from planner.solver.partitioners.local_search.search_data import Data

_RETURN_SHARE = 0.05  # part of the proposals, where moving costs something


class ProposalRates(NamedTuple):
    """Parts of the proposals that are of a kind, from 0 to 1; each is a part of what those before it leave."""

    pair: float
    three_rank: float
    after_cuts: float
    on_hosts: float  # of moves and swaps
    ejection: float  # pieces that are driven off a rank
    replacement: float  # tables that are placed again under another option, where tables may be cut


@compiled
def propose(data: Data, state: State, before: float, bar: float, cuts: bool, rates: ProposalRates) -> bool:
    """Try one random move; without ``cuts`` every table keeps its pieces."""
    on_hosts = random_unit(state) < rates.on_hosts
    scope = HOST if on_hosts else RANK
    if rates.pair > 0 and random_unit(state) < rates.pair:
        return redistribute_two_sites(data, state, scope, before, bar)
    if rates.three_rank > 0 and random_unit(state) < rates.three_rank:
        return redistribute_three_sites(data, state, scope, before, bar)
    if rates.after_cuts > 0 and random_unit(state) < rates.after_cuts:
        return cut_and_redistribute(data, state, before, bar)
    if rates.ejection > 0 and random_unit(state) < rates.ejection:
        return start_ejection_chain(data, state, before, bar)
    if data.columns_before.shape[0] > 0 and random_unit(state) < _RETURN_SHARE:
        return send_home(data, state, before, bar)
    if not cuts:
        if random_below(state, 100) < 47:
            return move_piece(data, state, scope, before, bar)
        return swap_pieces(data, state, scope, before, bar)
    if random_unit(state) < rates.replacement:
        return replace_item(data, state, before, bar)
    kind = random_below(state, 100)
    if kind < 32:
        return move_piece(data, state, scope, before, bar)
    if kind < 68:
        return swap_pieces(data, state, scope, before, bar)
    if kind < 83:
        return shift_columns(data, state, pick_item(data, state), before, bar)
    if kind < 92:
        return split_piece(data, state, pick_item(data, state), before, bar)
    return merge_pieces(data, state, pick_item(data, state), before, bar)


@compiled
def anneal(
    data: Data,
    state: State,
    proposals: int,
    temperature: float,
    smoothness: float,
    penalty: float,
    cuts: bool,
    rates: ProposalRates,
    most_looked: float,
) -> int:
    """Try a number of moves at one temperature, some of them redistributions; return how many were tried.

    They end early once redistributions have looked at more than ``most_looked`` sets of pieces, by ``state.looked``.
    """
    refresh(data, state, smoothness, penalty)
    value = cost(data, state)
    reprice(data, state)
    for tried in range(proposals):
        if state.looked[0] > most_looked:
            return tried
        if propose(data, state, value, -temperature * np.log(1.0 - random_unit(state)), cuts, rates):
            value = cost(data, state)
            reprice(data, state)
    return proposals
