"""What a search proposes how often, and the nominal work of a proposal.

Moves are drawn from one table (:mod:`planner.solver.partitioners.kernels.moves.move_table`). The everyday moves have
fixed weights in it; rarer ones have rates that follow from the problem and the stage.

A redistribution of three sites takes twice as long with every two pieces more that they hold: from a few microseconds
to some hundreds. If many ways to share the pieces out are nearly as good, as with equal tables, a redistribution takes
ten times as long again. If sites hold few pieces, a redistribution costs hardly more than a swap and reaches much more.
So the share of redistributions follows from their cost: the sets of pieces that they looked at are counted.
"""

from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.anneal import SCOPES
from planner.solver.partitioners.kernels.cost.site_choice import ALL_RANKS
from planner.solver.partitioners.kernels.moves.move_table import MOVES, Move
from planner.solver.partitioners.kernels.moves.three_rank_redistribution import MAX_REDISTRIBUTED
from planner.solver.partitioners.kernels.state.state import HOST, RANK
from planner.solver.partitioners.local_search.search_data import View

#: Part of the proposals that deal two ranks: while only pieces move, those take as long as all others together.
PAIR_REDISTRIBUTION_RATE = MOVES[Move.REDISTRIBUTE_TWO].most_rate
#: Slowest load / tau from which three ranks are dealt instead of two: before, too many deals look alike.
_SHARP = 150.0
_THREE_RANK_RATE = 1e-2  # of deals of three sites with as many pieces as are dealt at once
#: Work of tables that are placed again, in parts of the work of all other proposals where tables may be cut.
_REPLACING = 0.5
#: Nominal work of placing a table again, for each piece and for each rank that one may go to.
_PIECE_SECONDS, _PLACE_SECONDS = 1.1e-6, 8e-8
#: Nominal work that is expected of a redistribution of three sites: at least, and for every way to fill one half of its
#: pieces. Nominal work of a set of pieces that one looked at: within 10% of what chunks of six models took.
_LEAST_SECONDS, _WAY_SECONDS, _LOOK_SECONDS = 9e-6, 6e-7, 1.05e-7
#: Nominal work of a cut with a deal: at least, and in parts of a deal of three.
_CUT_SECONDS, _OF_A_REDISTRIBUTION = 4e-6, 0.023
_EJECTION_SECONDS = 3e-7  # nominal work of driving a piece out, for every rank: sums are counted again on the way
_WITHOUT_REDISTRIBUTIONS = 0.8  # what other proposals take of the work that is counted where two ranks are dealt
#: Times the nominal work, where tables are cut again: so much and more for each rank that a piece looks at.
_CUTTING, _CUTTING_PER_RANK = 1.0, 0.003
_ON_HOSTS = 0.3  # times the nominal work more, of what lies on all ranks of a host
_MOVING = 1.5  # times the nominal work, where moving costs something: looks at plans count what moves cell by cell


class ProposalRates(NamedTuple):
    """Rates of the moves that have no fixed weight, from 0 to 1; each is a part of what those before it leave."""

    pair: float = 0.0  # redistributions of two sites
    three_rank: float = 0.0  # redistributions of three sites
    after_cuts: float = 0.0  # cuts with a redistribution
    ejection: float = 0.0  # pieces that are driven off a rank
    homing: float = 0.0  # tables that go back to where the previous plan has them
    replacement: float = 0.0  # tables that are placed again under another option
    on_hosts: float = 0.0  # of moves among ranks or hosts, those among hosts
    cuts: bool = False  # whether the everyday moves are those of stages that cut tables


def move_shares(rates: ProposalRates) -> Floats:
    """Return the part of all proposals that is of each move, shape (moves,), by the number of the move."""
    shares, left = np.zeros(len(Move)), 1.0
    rate_of = {
        Move.REDISTRIBUTE_TWO: rates.pair,
        Move.REDISTRIBUTE_THREE: rates.three_rank,
        Move.CUT_AND_REDISTRIBUTE: rates.after_cuts,
        Move.EJECT_PIECE: rates.ejection,
        Move.SEND_HOME: rates.homing,
        Move.REPLACE_ITEM: rates.replacement,
    }
    for move in reversed(MOVES):  # each takes its part of what the rows below leave
        if move in rate_of:
            shares[move] = left * rate_of[move]
            left -= shares[move]
    weights = np.zeros(len(Move))
    for move, facts in MOVES.items():
        weights[move] = facts.weight_with_cuts if rates.cuts else facts.weight_without_cuts
    return shares + left * weights / np.sum(weights)


def cumulative_mix(rates: ProposalRates) -> Floats:
    """Return the probability that a proposal is of a row or of one before it, shape (moves * SCOPES,).

    Rows are moves by number, each among ranks and then among hosts. The last probability is 1.
    """
    by_scope = np.zeros((len(Move), SCOPES))
    by_scope[:, RANK] = move_shares(rates)
    for move, facts in MOVES.items():
        if facts.on_hosts:
            by_scope[move, HOST] = by_scope[move, RANK] * rates.on_hosts
            by_scope[move, RANK] -= by_scope[move, HOST]
    mix: Floats = np.cumsum(by_scope)
    mix[np.flatnonzero(by_scope)[-1] :] = 1.0
    return mix


def proposal_seconds(items: int) -> float:
    """Return the nominal work of a proposal; with many tables the memory that it reads is far away."""
    return 1.5e-6 * (1 + items / 5000)


def proposals_per_item(work_seconds: float, items: int) -> float:
    """Return how many proposals per item some nominal work pays for."""
    return work_seconds / proposal_seconds(items) / items


def redistribution_seconds(pieces: float) -> float:
    """Return the nominal work that is expected of a redistribution of three sites that hold so many pieces together."""
    return float(_LEAST_SECONDS + _WAY_SECONDS * 2 ** (min(pieces, MAX_REDISTRIBUTED) / 2))


def looked_seconds(looked: float) -> float:
    """Return the nominal work of redistributions that looked at so many sets of pieces."""
    return _LOOK_SECONDS * looked


def looks_of(seconds: float) -> float:
    """Return how many sets of pieces redistributions look at in so much nominal work."""
    return seconds / _LOOK_SECONDS


def proposal_rates(
    view: View, site_count: Ints, smoothness: float, *, pair: float, cuts: bool, relative_work: float = 1.0
) -> ProposalRates:
    """Return how often the moves without a fixed weight are proposed.

    ``site_count``, shape (R + H,), are the pieces that lie on every rank and on every host; ``relative_work`` is the
    counted work of redistributions in parts of the expected work.
    """
    ranks = len(view.data.rank_class)
    on_hosts = float(np.sum(site_count[ranks:])) / max(int(np.sum(site_count)), 1)
    items = len(view.data.item_columns)
    replacement = (
        min(MOVES[Move.REPLACE_ITEM].most_rate, _REPLACING * proposal_seconds(items) / _replacement_seconds(view))
        if cuts
        else 0.0
    )
    homing = 0.0 if view.priced.move is None else MOVES[Move.SEND_HOME].most_rate
    if smoothness < _SHARP or ranks < 3:
        return ProposalRates(pair=pair, homing=homing, replacement=replacement, on_hosts=on_hosts, cuts=cuts)
    usual_seconds = redistribution_seconds(MAX_REDISTRIBUTED)
    mean_seconds = relative_work * _three_rank_seconds(view, site_count, on_hosts)
    three_rank = min(_THREE_RANK_RATE * usual_seconds / mean_seconds, MOVES[Move.REDISTRIBUTE_THREE].most_rate)
    after_cut = min(_after_cut_seconds(usual_seconds) / _after_cut_seconds(mean_seconds), 1.0)
    return ProposalRates(
        three_rank=three_rank,
        after_cuts=MOVES[Move.CUT_AND_REDISTRIBUTE].most_rate * after_cut * _redistribution_chance(view)
        if cuts
        else 0.0,
        ejection=MOVES[Move.EJECT_PIECE].most_rate if len(view.data.weight) == 1 else 0.0,
        homing=homing,
        replacement=replacement,
        on_hosts=on_hosts,
        cuts=cuts,
    )


def _redistribution_chance(view: View) -> float:
    """Return how likely three ranks are equally fast, as those must be that are dealt; 0 where nothing is ever cut."""
    alike = np.bincount(view.data.rank_class) / len(view.data.rank_class)
    return float(np.sum(alike**3)) if np.any(view.data.family_max_pieces > 1) else 0.0


def work_seconds(view: View, rates: ProposalRates, *, cuts: bool) -> float:
    """Return the nominal work of a proposal, on average, without that of redistributions of three sites."""
    data = view.data
    each = proposal_seconds(len(data.item_columns)) * (1 + _ON_HOSTS * rates.on_hosts)
    if cuts:
        each *= _CUTTING + _CUTTING_PER_RANK * min(len(data.rank_class), ALL_RANKS)
    if view.priced.move is not None:
        each *= _MOVING
    each += rates.replacement * (_replacement_seconds(view) - each)
    if rates.three_rank > 0:
        each *= _WITHOUT_REDISTRIBUTIONS * (1 - rates.after_cuts)
        each += rates.after_cuts * _CUT_SECONDS
        each += rates.ejection * (1 - rates.after_cuts) * _EJECTION_SECONDS * len(data.rank_class)
    return each


def expected_redistribution_seconds(view: View, site_count: Ints, rates: ProposalRates) -> float:
    """Return the nominal work of redistributions of three sites that is expected of a proposal, on average."""
    share = rates.three_rank + rates.after_cuts * _OF_A_REDISTRIBUTION
    return share * _three_rank_seconds(view, site_count, rates.on_hosts) if share else 0.0


def _replacement_seconds(view: View) -> float:
    """Return the nominal work of placing a table again, as a mean over its options."""
    places = min(len(view.data.rank_class), ALL_RANKS)
    return float(np.mean(view.option_pieces)) * (_PIECE_SECONDS + _PLACE_SECONDS * places)


def _after_cut_seconds(redistribution: float) -> float:
    return _CUT_SECONDS + _OF_A_REDISTRIBUTION * redistribution


def _three_rank_seconds(view: View, site_count: Ints, on_hosts: float) -> float:
    """Return the nominal work of a deal of three sites, as a mean over those that are dealt."""
    ranks = len(view.data.rank_class)
    on_a_rank, on_a_host = float(np.mean(site_count[:ranks])), float(np.mean(site_count[ranks:]))
    return (1 - on_hosts) * redistribution_seconds(3 * on_a_rank) + on_hosts * redistribution_seconds(3 * on_a_host)
