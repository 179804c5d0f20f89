"""Fits the curves of collectives to measured rows: physics first, learned ramps second, then intervals.

For every operation, direction and reach (one host or several):

1. pieces of straight lines over the rank's own, the mean and the largest bytes, with bends at powers of two (where
   allocators and protocols change their ways), once as they are and once times log2(ranks);
2. ramps over geometric means of byte counts, drawn at random, of which the fit takes those with a coefficient > 0;
   several rounds, each together with what the last ones used, and several such curves, whose mean is one again;
3. coefficients >= 0 by least relative deviations (:mod:`cost_models.fitting.non_negative`);
4. intervals from the ratio of measured to predicted seconds on folds of whole tasks that a fit has not seen.

If every rank always held the same, rows do not show own, mean and largest bytes apart: the largest alone counts
then, and nothing is learned beyond its line, so that an uneven exchange is priced by its busiest rank.

References
----------
Vovk, "Cross-conformal predictors", 2015 (intervals from held-out folds).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, join_rows, take_rows
from cost_models.fitting.exchange_rows import Part, exchanges
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.learned.exchange.curve import SCALARS, ExchangeCurve, ramp_bytes, scalars, skew_terms
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.measurements.schema import Measurements

COVERAGE = 0.9
NUM_FOLDS = 5
NUM_BINS = 6
#: Fewer held-out exchanges than this in a bin, and its interval would hang on single ones.
EXCHANGES_PER_BIN = 200
#: Fewer exchanges than this do not support ramps beyond straight lines.
EXCHANGES_FOR_RAMPS = 300
RAMPS_PER_ROUND = 240
RAMP_ROUNDS = 4
#: Curves whose mean is the model: each is drawn other ramps, and what one draw lacks another has.
MEMBERS = 3
#: The search for ramps looks at so many rows, and fits so many rounds each time: it needs no exact coefficients.
SEARCHED_ROWS = 60_000
SEARCH_ROUNDS = 8
#: How much a share of the bytes a drawn ramp spans at least.
NARROWEST_RAMP = 1.05
#: A fit that has not seen the smallest exchanges may find that they take no time; it is taken to say this share of the
#: fastest that was measured, or a ratio to it would be none.
LEAST_OF_FASTEST = 0.1
#: Largest over mean bytes above which ranks count as unevenly loaded.
UNEVEN = 1.01
_PHYSICAL = ("own", "mean", "largest", "second")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramps:
    """Candidate or chosen ramps, as in :class:`ExchangeCurve`."""

    weights: Floats
    low_bytes: Floats
    high_bytes: Floats
    log_ranks: Floats

    def columns(self, counts: Floats, num_ranks: Floats) -> Floats:
        """What each ramp adds per unit of its coefficient; rows of SCALARS and ranks to (num_rows, count)."""
        filled = ramp_bytes(counts, self.weights, self.low_bytes, self.high_bytes)
        return filled * np.log2(num_ranks)[:, None] ** self.log_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Measured rows of one collective, and which of them each fold holds."""

    counts: Floats  # (num_rows, len(SCALARS))
    num_ranks: Floats  # (num_rows,)
    seconds: Floats  # (num_rows,)
    fixed: Floats  # (num_rows, 5): what is fitted with ramps: a constant, the peers, the starts
    folds: list[NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """One fit of a curve, by its own draw of ramps."""

    ramps: Ramps
    fixed: Floats  # (5,)
    seconds_per_byte: Floats  # (num_ramps,)
    unseen_seconds: Floats  # (num_rows,), of fits without the fold of each row


def fit_exchange(rows: Measurements, *, seed: int) -> LearnedExchange:
    """Fit every collective of ``rows``.

    Raises
    ------
    ValueError
        A row of a collective makes no sense; the text names it.
    """
    rng = np.random.default_rng(seed)
    curves = {key: _fit_curve(found, rng) for key, found in sorted(exchanges(rows).items())}
    return LearnedExchange(curves=curves, coverage=COVERAGE)


def _fit_curve(parts: Sequence[Part], rng: np.random.Generator) -> ExchangeCurve:
    """Fit some curves, each with ramps of its own, and return their mean."""
    counts = np.concatenate([scalars(part.held_bytes).reshape(-1, len(SCALARS)) for part in parts])
    num_ranks = np.concatenate([np.full(part.held_bytes.size, part.num_ranks, np.float64) for part in parts])
    seconds = np.concatenate([part.seconds.ravel() for part in parts])
    starts = np.concatenate([skew_terms(part.start_seconds).reshape(-1, 3) for part in parts])
    tasks = np.concatenate([np.repeat(part.task, part.num_ranks) for part in parts])
    largest = SCALARS.index("largest")
    uneven = bool(np.mean(counts[:, largest]) > UNEVEN * np.mean(counts[:, SCALARS.index("mean")]))
    several = len(parts) > 1
    pieces = _pieces(counts, _PHYSICAL if uneven else ("largest",), with_log=several)
    fixed = np.stack([np.ones_like(seconds), (num_ranks - 1) * several], axis=1)
    rows = _Rows(
        counts=counts,
        num_ranks=num_ranks,
        seconds=seconds,
        fixed=np.concatenate([fixed, starts], axis=1),
        folds=list(_folds(tasks, rng)),
    )
    num_exchanges = sum(len(part.task) for part in parts)
    draws = uneven and num_exchanges >= EXCHANGES_FOR_RAMPS
    members = [_fit_member(pieces, rows, rng, draws=draws) for _ in range(MEMBERS if draws else 1)]
    solution = np.mean([member.fixed for member in members], axis=0)
    ramps = join_rows([member.ramps for member in members])
    unseen = np.mean([member.unseen_seconds for member in members], axis=0)
    predicted = np.maximum(unseen, LEAST_OF_FASTEST * seconds.min())
    bin_seconds, lower, upper = _intervals(predicted, seconds, num_ranks)
    total = np.concatenate([part.held_bytes.sum(axis=1) for part in parts])
    return ExchangeCurve(
        start_seconds=float(solution[0]),
        peer_seconds=float(solution[1]),
        weights=ramps.weights,
        low_bytes=ramps.low_bytes,
        high_bytes=ramps.high_bytes,
        log_ranks=ramps.log_ranks,
        seconds_per_byte=np.concatenate([member.seconds_per_byte for member in members]) / len(members),
        skew=solution[2:],
        rank_counts=np.array([part.num_ranks for part in parts], dtype=np.int64),
        least_bytes=float(total.min()),
        most_bytes=float(total.max()),
        bin_seconds=bin_seconds,
        lower=lower,
        upper=upper,
        num_rows=len(seconds),
    )


def _fit_member(pieces: Ramps, rows: _Rows, rng: np.random.Generator, *, draws: bool) -> _Member:
    """Choose ramps on all rows, then fit them once on all and once without each fold."""
    ramps, width = pieces, rows.fixed.shape[1]
    if draws:
        ramps = _learned(ramps, take_rows(rows, rng.permutation(len(rows.seconds))[:SEARCHED_ROWS]), rng)
    matrix = np.concatenate([rows.fixed, ramps.columns(rows.counts, rows.num_ranks)], axis=1)
    used = fit_non_negative(matrix, rows.seconds)[width:] > 0
    ramps, matrix = take_rows(ramps, used), matrix[:, np.concatenate([np.ones(width, np.bool_), used])]
    solution = fit_non_negative(matrix, rows.seconds)
    # One task alone has nothing else to be fitted on: its interval is that of the fit itself.
    unseen = matrix @ solution
    for fold in rows.folds:
        unseen[fold] = matrix[fold] @ fit_non_negative(matrix[~fold], rows.seconds[~fold], rounds=8)
    return _Member(ramps=ramps, fixed=solution[:width], seconds_per_byte=solution[width:], unseen_seconds=unseen)


def _learned(pieces: Ramps, rows: _Rows, rng: np.random.Generator) -> Ramps:
    """Add to the straight pieces those drawn ramps that a fit together with them uses."""
    fixed, num_ranks = rows.fixed, rows.num_ranks
    ramps, columns = pieces, pieces.columns(rows.counts, num_ranks)
    for _ in range(RAMP_ROUNDS):
        drawn = _draw(rows.counts, rng, with_log=bool(np.any(num_ranks != num_ranks[0])))
        columns = np.concatenate([columns, drawn.columns(rows.counts, num_ranks)], axis=1)
        ramps = join_rows([ramps, drawn])
        solution = fit_non_negative(np.concatenate([fixed, columns], axis=1), rows.seconds, rounds=SEARCH_ROUNDS)
        # Straight pieces stay candidates: a ramp that is dropped later may bring them back.
        is_used = (solution[fixed.shape[1] :] > 0) | (np.arange(len(ramps.low_bytes)) < len(pieces.low_bytes))
        ramps, columns = take_rows(ramps, is_used), columns[:, is_used]
    return ramps


def _pieces(counts: Floats, names: tuple[str, ...], *, with_log: bool) -> Ramps:
    """Straight pieces over single byte counts, between powers of two that were seen on both sides."""
    weights, low, high, logs = [], [], [], []
    for name in names:
        column = counts[:, SCALARS.index(name)]
        positive = column[column > 0]
        # The last piece goes on for ever: it starts where at least one doubling was measured of what it adds.
        powers = 2.0 ** np.arange(np.ceil(np.log2(positive.min())) + 1, np.log2(positive.max()) - 1)
        bends = np.sort(np.concatenate([powers, powers * NARROWEST_RAMP])) if len(names) > 1 else powers
        edges = np.concatenate([[0.0], bends[bends < positive.max()], [np.inf]])
        for power in (0.0, 1.0) if with_log else (0.0,):
            weights += [np.eye(len(SCALARS))[SCALARS.index(name)]] * (len(edges) - 1)
            low += list(edges[:-1])
            high += list(edges[1:])
            logs += [power] * (len(edges) - 1)
    return Ramps(
        weights=np.array(weights), low_bytes=np.array(low), high_bytes=np.array(high), log_ranks=np.array(logs)
    )


def _draw(counts: Floats, rng: np.random.Generator, *, with_log: bool) -> Ramps:
    """Ramps over geometric means with random weights, between random quantiles of what was measured."""
    weights = rng.dirichlet(np.full(len(SCALARS), 0.4), RAMPS_PER_ROUND)
    sample = np.log(np.maximum(counts[rng.permutation(len(counts))[:5000]], 1.0))
    mixed = np.exp(sample @ weights.T)
    at = np.sort(rng.uniform(size=(2, RAMPS_PER_ROUND)), axis=0)
    low = np.array([np.quantile(column, q) for column, q in zip(mixed.T, at[0], strict=True)])
    high = np.array([np.quantile(column, q) for column, q in zip(mixed.T, at[1], strict=True)])
    return Ramps(
        weights=weights,
        low_bytes=low,
        high_bytes=np.maximum(high, low * NARROWEST_RAMP),
        log_ranks=rng.integers(0, 2, RAMPS_PER_ROUND).astype(np.float64) * with_log,
    )


def _folds(tasks: NDArray[np.str_], rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
    """Rows of each fold; a task lies in one fold."""
    names, row_task = np.unique(tasks, return_inverse=True)
    num_folds = min(NUM_FOLDS, len(names))
    fold = rng.permutation(len(names)) % num_folds
    for f in range(num_folds if num_folds > 1 else 0):
        yield fold[row_task] == f


def _intervals(predicted: Floats, seconds: Floats, num_ranks: Floats) -> tuple[Floats, Floats, Floats]:
    """Bins of predicted seconds, and factors (num_rank_counts, num_bins) that hold a share COVERAGE of the rows."""
    measured = np.unique(num_ranks)
    fewest = min(int(np.sum(num_ranks == n) / n) for n in measured)
    num_bins = max(1, min(NUM_BINS, fewest // EXCHANGES_PER_BIN))
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, num_bins + 1)[1:-1]))
    bins = np.searchsorted(edges, predicted, side="right")
    lower = np.ones((len(measured), len(edges) + 1))
    upper = np.ones_like(lower)
    for i, n in enumerate(measured):
        for b in range(len(edges) + 1):
            here = (num_ranks == n) & (bins == b)
            # A bin that this rank count hardly reaches takes the ratios of all its rows.
            here = here if np.sum(here) >= EXCHANGES_PER_BIN * n else num_ranks == n
            ratio = seconds[here] / predicted[here]
            # An unseen exchange is one more than there are. Ranks of one are late together: they count as one.
            independent = max(len(ratio) / n, 1.0)
            above = min(1.0, (1 + COVERAGE) / 2 * (independent + 1) / independent)
            upper[i, b] = max(1.0, float(np.quantile(ratio, above, method="higher")))
            lower[i, b] = min(1.0, float(np.quantile(ratio, 1 - above, method="lower")))
    return edges, lower, upper
