"""What a search proposes how often, and the nominal work of a proposal.

A redistribution of three sites takes twice as long with every two pieces more that they hold: from a few microseconds
to some hundreds. If many ways to share the pieces out are nearly as good, as with equal tables, a redistribution takes
ten times as long again. If sites hold few pieces, a redistribution costs hardly more than a swap and reaches much more.
So the share of redistributions follows from their cost: the sets of pieces that they looked at are counted.
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
#: Tables that are placed again under another option, where tables may be cut: at most, of these proposals, and in parts
#: of the work of all others.
_MAX_REPLACEMENT_RATE, _REPLACING = 0.1, 0.5
#: Nominal work of that for each piece, and for each rank that one may go to.
_PIECE_SECONDS, _PLACE_SECONDS = 1.1e-6, 8e-8
#: Nominal work that is expected of a redistribution of three sites: at least, and for every way to fill one half of its
#: pieces. Nominal work of a set of pieces that one looked at: within 10% of what chunks of six models took.
_LEAST_SECONDS, _WAY_SECONDS, _LOOK_SECONDS = 9e-6, 6e-7, 1.05e-7
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
    """Return how often ranks and hosts are dealt anew.

    ``site_count``, shape (R + H,), are the pieces that lie on every rank and on every host; ``relative_work`` is the
    counted work of redistributions in parts of the expected work.
    """
    ranks = len(view.data.rank_class)
    on_hosts = float(np.sum(site_count[ranks:])) / max(int(np.sum(site_count)), 1)
    items = len(view.data.item_columns)
    replacement = (
        min(_MAX_REPLACEMENT_RATE, _REPLACING * proposal_seconds(items) / _replacement_seconds(view)) if cuts else 0.0
    )
    if smoothness < _SHARP or ranks < 3:
        return ProposalRates(
            pair=pair, three_rank=0.0, after_cuts=0.0, on_hosts=on_hosts, ejection=0.0, replacement=replacement
        )
    usual_seconds = redistribution_seconds(MAX_REDISTRIBUTED)
    mean_seconds = relative_work * _three_rank_seconds(view, site_count, on_hosts)
    three_rank = min(_THREE_RANK_RATE * usual_seconds / mean_seconds, _MAX_THREE_RANK_RATE)
    after_cut = min(_after_cut_seconds(usual_seconds) / _after_cut_seconds(mean_seconds), 1.0)
    return ProposalRates(
        pair=0.0,
        three_rank=three_rank,
        after_cuts=_AFTER_CUT_RATE * after_cut * _redistribution_chance(view) if cuts else 0.0,
        on_hosts=on_hosts,
        ejection=_EJECTION_RATE if len(view.data.weight) == 1 else 0.0,
        replacement=replacement,
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
