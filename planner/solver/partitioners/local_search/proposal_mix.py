"""What a search proposes how often, and the nominal work of a proposal.

A deal of three sites costs twice as much with every two pieces more that they hold: from a few microseconds to some
hundreds. Where sites hold few pieces a deal is hardly dearer than a swap and reaches much more, so that the
share of deals follows from what they cost.
"""

import numpy as np

from cost_models.arrays import Ints
from planner.solver.partitioners.kernels.anneal import ProposalRates
from planner.solver.partitioners.kernels.cost.site_choice import ALL_RANKS
from planner.solver.partitioners.kernels.moves.three_rank_redistribution import MAX_REDISTRIBUTED
from planner.solver.partitioners.local_search.search_data import View

#: Part of the proposals that deal two ranks: while only pieces move, those take as long as all others together.
PAIR_REDISTRIBUTION_RATE = 5e-4
#: Slowest load / tau from which three ranks are dealt instead of two: before, too many deals look alike.
_SHARP = 150.0
#: Parts of the proposals, each of what those before it leave: deals of three sites with as many pieces as are
#: dealt at once; all deals of three at most; cuts with a deal of what they touch, of which most are seen to be hopeless
#: at once; pieces that are driven out, where one phase counts.
_THREE_RANK_RATE, _MAX_THREE_RANK_RATE, _AFTER_CUT_RATE, _EJECTION_RATE = 1e-2, 0.1, 0.4, 2e-2
#: Nominal work of a deal of three: at least, and for every way to fill one half of what is dealt.
_LEAST_SECONDS, _WAY_SECONDS = 9e-6, 6e-7
#: Nominal work of a cut with a deal: at least, and in parts of a deal of three.
_CUT_SECONDS, _OF_A_REDISTRIBUTION = 4e-6, 0.023
_EJECTION_SECONDS = 3e-7  # nominal work of driving a piece out, for every rank: sums are counted anew on the way
_WITHOUT_REDISTRIBUTIONS = 0.8  # what other proposals take of the work that is counted where two ranks are dealt
#: Times the nominal work, where tables are cut anew: so much and more for each rank that a piece looks at.
_CUTTING, _CUTTING_PER_RANK = 1.0, 0.003
_ON_HOSTS = 0.3  # times the nominal work more, of what lies on all ranks of a host
_MOVING = 1.5  # times the nominal work, where moving costs something: looks at plans count what moves cell by cell


def proposal_seconds(items: int) -> float:
    """Return the nominal work of a proposal; with many tables the memory that it reads is far away."""
    return 1.5e-6 * (1 + items / 5000)


def redistribution_seconds(pieces: float) -> float:
    """Return the nominal work of a deal of three sites that hold so many pieces together."""
    return float(_LEAST_SECONDS + _WAY_SECONDS * 2 ** (min(pieces, MAX_REDISTRIBUTED) / 2))


def proposal_rates(view: View, site_count: Ints, smoothness: float, *, pair: float, cuts: bool) -> ProposalRates:
    """Return how often ranks and hosts are dealt anew.

    ``site_count``, shape (R + H,), are the pieces that lie on every rank and on every host.
    """
    ranks = len(view.data.rank_class)
    on_hosts = float(np.sum(site_count[ranks:])) / max(int(np.sum(site_count)), 1)
    if smoothness < _SHARP or ranks < 3:
        return ProposalRates(pair=pair, three_rank=0.0, after_cuts=0.0, on_hosts=on_hosts, ejection=0.0)
    mean_seconds = _three_rank_seconds(view, site_count, on_hosts)
    three_rank = min(_THREE_RANK_RATE * redistribution_seconds(MAX_REDISTRIBUTED) / mean_seconds, _MAX_THREE_RANK_RATE)
    return ProposalRates(
        pair=0.0,
        three_rank=three_rank,
        after_cuts=_AFTER_CUT_RATE * _redistribution_chance(view) if cuts else 0.0,
        on_hosts=on_hosts,
        ejection=_EJECTION_RATE if len(view.data.weight) == 1 else 0.0,
    )


def _redistribution_chance(view: View) -> float:
    """Return how likely three ranks are equally fast, as those must be that are dealt; 0 where nothing is ever cut."""
    alike = np.bincount(view.data.rank_class) / len(view.data.rank_class)
    return float(np.sum(alike**3)) if np.any(view.data.family_max_pieces > 1) else 0.0


def work_seconds(view: View, site_count: Ints, rates: ProposalRates, *, cuts: bool) -> float:
    """Return the nominal work of a proposal, on average."""
    data = view.data
    each = proposal_seconds(len(data.item_columns)) * (1 + _ON_HOSTS * rates.on_hosts)
    if cuts:
        each *= _CUTTING + _CUTTING_PER_RANK * min(len(data.rank_class), ALL_RANKS)
    if view.priced.move is not None:
        each *= _MOVING
    if rates.three_rank > 0:
        redistribution = _three_rank_seconds(view, site_count, rates.on_hosts)
        each *= _WITHOUT_REDISTRIBUTIONS * (1 - rates.after_cuts)
        each += rates.after_cuts * (_CUT_SECONDS + _OF_A_REDISTRIBUTION * redistribution)
        each += rates.three_rank * redistribution + rates.ejection * (1 - rates.after_cuts) * _EJECTION_SECONDS * len(
            data.rank_class
        )
    return each


def _three_rank_seconds(view: View, site_count: Ints, on_hosts: float) -> float:
    """Return the nominal work of a deal of three sites, as a mean over those that are dealt."""
    ranks = len(view.data.rank_class)
    on_a_rank, on_a_host = float(np.mean(site_count[:ranks])), float(np.mean(site_count[ranks:]))
    return (1 - on_hosts) * redistribution_seconds(3 * on_a_rank) + on_hosts * redistribution_seconds(3 * on_a_host)
