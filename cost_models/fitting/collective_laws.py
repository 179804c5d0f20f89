"""Fits laws of collectives to measured rows: candidate terms, non-negative least relative deviations, intervals.

Inside a domain (:mod:`cost_models.hardware.laws.domain_law`) all terms are candidates that the rows can distinguish,
and a coefficient of zero leaves a term out. Rows of a second library may join: links and their scaling with ranks are
the same, and what the other runtime adds to a start is fitted as a term of its own that the law then lacks.

Over hosts (:mod:`cost_models.hardware.laws.hosts_law`) the rows have two regimes, bound by network cards or by the
links inside a host; the number of ranks per host at which the second begins is tried out.

Their intervals: :mod:`cost_models.fitting.law_intervals`.
"""

import math
from dataclasses import replace

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.fitting.collective_rows import CollectiveRows, joined_rows
from cost_models.fitting.law_intervals import intervals_of
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.hardware.laws.domain_law import RANK_FACTORS, Basis, DomainLaw, Term
from cost_models.hardware.laws.hosts_law import ROUNDS, HostsLaw, Ramp
from cost_models.hardware.laws.intervals import SizeInterval
from cost_models.vocabulary import Evidence

#: Where protocols (LL, LL128, Simple), channels and slices of NCCL change their ways, two octaves apart and finer where
#: most changes lie.
BENDS = tuple(2.0**power for power in (13, 15, 19, 21, 23, 25, 27, 29))
HOST_BENDS = tuple(2.0**power for power in (13, 16, 19, 22, 25))
#: All-to-alls of ranks that are no power of two lose up to so many bytes' worth.
PADDING_BENDS = (2.0**25, 2.0**29)
#: Pieces bend where a buffer of eight ranks would.
_PIECE_RANKS = 8.0
#: Groups on one host; beyond them ranks are those of a rack.
_HOST_RANKS = 8.0
#: What ranks add that do not share the links of the first ones.
_FURTHER = ("beyond_pair", "beyond_socket")
#: Rows of groups that the own library did not measure count so often in a joint fit: they alone show how ranks scale.
LARGER_GROUPS = 3
#: Messages over hosts up to here show a start in addition to their bandwidth.
SHOWS_START_BYTES = 2.0**29
#: A start that another machine lent may be off by this factor.
LENT_START = 2.0
#: Share of the time of the largest messages that their bandwidth must be.
LEAST_MOVING = 0.05
#: A regime of links inside hosts must lower the mean deviation by this share to be taken.
WORTH_A_CAP = 0.1
#: So must what a third rank changes, where two groups were measured: half of 51% on PCIe cards.
WORTH_A_FACTOR = 0.5


def fit_domain_law(
    rows: CollectiveRows, operation: str, *, library: str, source: str, others: CollectiveRows | None = None
) -> DomainLaw:
    """Fit the law of one operation in a domain to rows of a library, jointly with those of ``others`` if given.

    Raises
    ------
    ValueError
        The rows do not show a bandwidth.
    """
    num_own = len(rows.seconds)
    both = rows
    if others is not None:
        larger = others.of(others.num_ranks > rows.num_ranks.max())
        both = joined_rows([rows, others, *[larger] * (LARGER_GROUPS - 1)])
    is_other = np.arange(len(both.seconds)) >= num_own
    ranks = np.unique(both.num_ranks)
    terms = _candidates(both, operation, alone=others is None)
    matrix = np.stack([term.column(both.message_bytes, both.num_ranks) for term in terms], axis=1)
    is_further = np.array([term.times in _FURTHER for term in terms])
    if len(ranks) == 2 and not _lowers_deviations(matrix, both.seconds, is_further):
        terms = [term for term in terms if term.times not in _FURTHER]
        matrix = matrix[:, ~is_further]
    if others is not None:
        tray = Term("once", math.inf, "one_tray", 0.0).column(both.message_bytes, both.num_ranks)
        matrix = np.concatenate([matrix, np.stack([is_other * 1.0, is_other * tray], axis=1)], axis=1)
    solution = fit_non_negative(matrix, both.seconds)
    is_rate = np.array([term.of != "once" and math.isinf(term.up_to_bytes) for term in terms])
    _check_bandwidth(both, matrix[:, : len(terms)] @ (solution[: len(terms)] * is_rate), operation)
    positive = tuple(
        term._replace(seconds=float(value)) for term, value in zip(terms, solution, strict=False) if value > 0
    )
    own = ~is_other
    return DomainLaw(
        operation=operation,
        terms=positive,
        basis=Basis(
            library=library,
            ranks=tuple(int(n) for n in ranks),
            least_bytes=float(both.message_bytes.min()),
            most_bytes=float(both.message_bytes.max()),
            num_rows=num_own + (0 if others is None else len(others.seconds)),
            evidence=Evidence.MEASURED,
            source=source,
        ),
        intervals=intervals_of(matrix, both, tested=own, groups=both.num_ranks),
    )


def fit_hosts_law(
    rows: CollectiveRows, operation: str, *, library: str, source: str, starts: HostsLaw | None = None
) -> HostsLaw:
    """Fit the law of one operation over hosts; rows of large messages alone take their start from another law.

    Raises
    ------
    ValueError
        The rows do not show a bandwidth.
    """
    per_host = np.unique(rows.ranks_per_host)
    start = np.zeros_like(rows.seconds)
    if starts is not None:
        start = np.array(
            [starts.whole_start_seconds(*one) for one in zip(rows.num_hosts, rows.ranks_per_host, strict=True)]
        )
    moved = np.maximum(rows.seconds - start, 0.1 * rows.seconds)
    best: tuple[float, Floats, Floats] | None = None
    for most_by_card in per_host[::-1].tolist():
        matrix = _host_columns(rows, operation, most_by_card)
        if starts is not None:
            matrix[:, :2] = 0.0
        solution = fit_non_negative(matrix, moved)
        card, cap = solution[-2:]
        larger = per_host[per_host > most_by_card]
        _check_bandwidth(rows, matrix[:, -2:] @ solution[-2:], operation)
        if card <= 0 or (len(larger) and cap * larger[0] <= card):
            continue  # a host that lets through more than its cards carry bounds nothing
        deviation = float(np.mean(np.abs((matrix @ solution + start) / rows.seconds - 1)))
        if best is None or deviation < (1 - WORTH_A_CAP) * best[0]:
            best = deviation, solution, matrix
    if best is None:
        raise ValueError(f"{operation} over hosts: the messages are too small to show a bandwidth")
    _, solution, matrix = best
    ramps = _host_bends(rows)
    card, cap = solution[-2:]
    intervals = intervals_of(
        matrix, replace(rows, seconds=moved), tested=np.ones(len(moved), np.bool_), groups=rows.num_hosts
    )
    if starts is not None:
        lent = SizeInterval(0.0, 1 / LENT_START, LENT_START)
        measured = replace(intervals.sizes[-1], from_bytes=SHOWS_START_BYTES)
        intervals = replace(intervals, sizes=(lent, measured))
    hosts = np.unique(rows.num_hosts)
    return HostsLaw(
        operation=operation,
        start_seconds=float(solution[0]) if starts is None else starts.start_seconds,
        hop_seconds=float(solution[1]) if starts is None else starts.hop_seconds,
        ramps=tuple(Ramp(k, float(c)) for k, c in zip(ramps, solution[2:-2], strict=True) if c > 0),
        nic_bytes_per_second=float(1 / card),
        host_bytes_per_second=float(1 / cap) if cap > 0 else math.inf,
        hosts=tuple(int(n) for n in hosts),
        basis=Basis(
            library=library,
            ranks=tuple(int(n) for n in np.unique(rows.num_ranks)),
            least_bytes=float(rows.message_bytes.min()),
            most_bytes=float(rows.message_bytes.max()),
            num_rows=len(rows.seconds),
            # No part of a start that another machine lent was measured here.
            evidence=Evidence.MEASURED if starts is None else Evidence.ESTIMATED,
            source=source if starts is None else f"{source}; start of other machines: {starts.basis.source}",
        ),
        intervals=intervals,
    )


def _lowers_deviations(matrix: Floats, seconds: Floats, columns: Bools) -> bool:
    """Whether some columns lower the mean deviation of a fit by so much that rows of two groups show them."""
    without, whole = (
        float(np.mean(np.abs(some @ fit_non_negative(some, seconds) / seconds - 1)))
        for some in (matrix[:, ~columns], matrix)
    )
    return whole < (1 - WORTH_A_FACTOR) * without


def _check_bandwidth(rows: CollectiveRows, moving: Floats, operation: str) -> None:
    """Refuse rows of which even the largest messages spend next to no time on their bandwidth."""
    largest = rows.message_bytes == rows.message_bytes.max()
    share = float(np.max(moving[largest] / rows.seconds[largest]))
    if share < LEAST_MOVING:
        raise ValueError(
            f"{operation}: messages up to {rows.message_bytes.max():,.0f} bytes are too small to show a bandwidth,"
            f" which is {share:.1%} of their time"
        )


def _candidates(rows: CollectiveRows, operation: str, *, alone: bool) -> list[Term]:
    """Return the terms that the sizes and groups of these rows can distinguish, with coefficients of zero."""
    ranks = np.unique(rows.num_ranks)
    is_rack = ranks[-1] > _HOST_RANKS
    is_padded = bool(np.any(RANK_FACTORS["padding"](ranks) > 0))
    once = ["one", "rounds", "hops"][: len(ranks)]
    if is_rack:
        # Rings have neighbours; every pair of ranks talks in an all-to-all alone.
        once += ["pairs"] if operation == "all_to_all" else []
        once += ["one_tray"] if alone and np.any(ranks <= 4) else []
    terms = [Term("once", math.inf, factor, 0.0) for factor in once]
    # Racks are measured in few groups, and serve many times their ranks.
    more = [] if is_rack or not alone else [name for name in _FURTHER if np.any(RANK_FACTORS[name](ranks) > 0)]
    # Two groups hardly separate what a third rank changes from the part that leaves a rank: its rate alone, if at all.
    whole = ["one", "share", *(more if len(ranks) > 2 else [])]
    least, most = rows.message_bytes.min(), rows.message_bytes.max()
    # Two octaves beyond a bend show the rate after it.
    for bend in (one for one in BENDS if least < one <= most / 4):
        terms += [Term("bytes", bend, factor, 0.0) for factor in whole]
        if least < bend / _PIECE_RANKS * ranks[-1]:  # else every piece is beyond the bend, and the ramp a start
            terms += [Term("piece", bend / _PIECE_RANKS, factor, 0.0) for factor in ("one", "rounds")]
    terms += [Term("bytes", math.inf, "share", 0.0), Term("piece", math.inf, "share", 0.0)]
    terms += [Term("bytes", math.inf, factor, 0.0) for factor in (more if len(ranks) > 2 else more[:1])]
    if is_padded:
        terms += [Term("bytes", bend, "padding", 0.0) for bend in (*PADDING_BENDS, math.inf)]
    # Of one group size factors of the ranks cannot be distinguished.
    return terms if len(ranks) > 1 else [term for term in terms if term.times in ("one", "share")]


def _host_bends(rows: CollectiveRows) -> list[float]:
    # A message of half the bend at least: below it a ramp is a constant.
    return [bend for bend in HOST_BENDS if 2 * rows.message_bytes.min() <= bend < rows.message_bytes.max()]


def _host_columns(rows: CollectiveRows, operation: str, most_by_card: float) -> Floats:
    """Columns of start, hop, ramps, network card and limit of a host, in this order."""
    m, n, per_host, hosts = rows.message_bytes, rows.num_ranks, rows.ranks_per_host, rows.num_hosts
    spreads = operation == "all_to_all"
    hops = (hosts - 1) * per_host if spreads else n
    # Starts show in small messages only. One number of hops is no different from a constant: trees of all-reduces
    # are near a constant, the others near their hops.
    several = len(np.unique(hops[m <= SHOWS_START_BYTES])) > 1
    one = np.full_like(m, float(several or operation == "all_reduce"))
    hop = hops * float(several or operation != "all_reduce")
    of_host = m * (hosts - 1) / hosts * per_host if spreads else ROUNDS[operation] * m * (n - 1) / n
    by_card = per_host <= most_by_card
    card, cap = np.where(by_card, of_host / per_host, 0.0), np.where(by_card, 0.0, of_host)
    ramps = (np.minimum(m, bend) for bend in _host_bends(rows))
    return np.stack([one, hop, *ramps, card, cap], axis=1)
