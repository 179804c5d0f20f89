r"""Packing: how many large pieces the room of a rank takes.

A program that mixes choices and spreads loads freely may give each rank one and a half of two equal pieces. Let the
pieces of a rank take b seconds of a phase together at most. Two kinds of sizes add up to 1 at most on a rank [1]_:

- of *parts*, for any number k: a piece of p seconds has the size (ceil((k + 1) p / b) - 1) / k, which is below
  (k + 1) p / b in whole parts;
- of a *least piece* of t seconds: m(s) = floor(s / t) of them fit into s seconds. A piece of p > b / 2, of which a rank
  has one at most, has the size 1 - m(b - p) / m(b), a piece from t to b / 2 the size 1 / m(b), a smaller one 0.

On all R ranks they add up to R at most, which is one more row of the program, with the form of a tier of memory. A
choice has at least the size that no cut of it goes below.

.. [1] Fekete and Schepers, "New classes of fast lower bounds for bin packing problems", Math. Programming 91 (2001).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.bounds.relaxation import Relaxation

#: Different pieces of a phase that are looked at, the longest ones; those that differ by less are alike.
_MOST_PIECES, _ALIKE = 12, 1e-8
_MOST_PARTS = 6  # of a room, and least pieces in one
_MOST_ROWS = 4  # that are added for one room at a time
_MORE = 1 + 1e-9  # of numbers that fit, so that rounding makes no piece larger than it is
_BELOW = 1 - 1e-10  # of a least piece, for the piece that it is made of to count whatever is rounded
_MOST_SIZES = 2**20  # in memory at a time: 20,000 pieces in all rooms would take gigabytes
_ROOMS_AT_ONCE = 64  # of those among which the widest crowded one is looked for
_BROKEN = 1e-6  # parts of a rank by which a row is broken


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingRow:
    """One such row: ``taken @ x <= num_ranks`` for the shares x of all choices."""

    phase: int
    room_seconds: float  # b
    parts: int  # k; 0 for a row of a least piece
    least_seconds: float  # t; 0 for a row of parts
    taken: Floats  # (C,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowding:
    """Up to which room of a phase a solution has more large pieces than ranks take."""

    phase: int
    room_seconds: float
    gain_seconds: float  # of the objective, from what the solution leaves to pieces up to this room


def widest_crowded(model: Relaxation, share: Floats, left: Floats, rooms: Floats) -> Crowding | None:
    """Return the phase whose widest crowded room exceeds most what a solution leaves to pieces, (Q,); else ``None``.

    It is narrower than the room that each phase has, (Q,).
    """
    best: Crowding | None = None
    for phase in np.flatnonzero(model.weight > 0).tolist():
        found = _widest(model, share, phase, float(left[phase]), float(rooms[phase]))
        gain = float(model.weight[phase]) * (found - float(left[phase]))
        if gain > 0 and (best is None or gain > best.gain_seconds):
            best = Crowding(phase=phase, room_seconds=found, gain_seconds=gain)
    return best


def broken_rows(model: Relaxation, share: Floats, rooms: Floats, known: Sequence[PackingRow]) -> list[PackingRow]:
    """Return rows that a solution breaks, for rooms of phases, (Q,), infinite where there is no limit."""
    has = {(row.phase, row.room_seconds, row.parts, row.least_seconds) for row in known}
    found: list[tuple[int, float, int, float]] = []
    for phase in np.flatnonzero(np.isfinite(rooms)).tolist():
        room = float(rooms[phase])
        seconds, copies = _pieces(model, share, phase)
        parts, least = _ways(seconds[seconds * _MOST_PARTS > room] * _BELOW)
        excess = taken_in_rooms(seconds, copies, np.full(len(parts), room), parts, least) - _num_ranks(model)
        for worst in np.argsort(-excess, kind="stable")[:_MOST_ROWS].tolist():
            if excess[worst] > _BROKEN and (phase, room, int(parts[worst]), float(least[worst])) not in has:
                found.append((phase, room, int(parts[worst]), float(least[worst])))
    return [row for row in _rows(model, found) if share @ row.taken > _num_ranks(model) + _BROKEN]


def with_rows(model: Relaxation, rows: Sequence[PackingRow]) -> Relaxation:
    """Return a model with rows as more tiers of its memory."""
    if not rows:
        return model
    taken = np.stack([row.taken for row in rows], axis=1)
    return replace(
        model,
        total_bytes=np.hstack([model.total_bytes, taken]),
        cluster_bytes=np.append(model.cluster_bytes, np.full(len(rows), _num_ranks(model))),
    )


def sizes(seconds: Floats, rooms: Floats, parts: Ints, least: Floats) -> Floats:
    """Return the sizes of S pieces in N rooms, each with its number of parts or its least piece, (N, S)."""
    room, k, t = rooms[:, None], np.maximum(parts, 1)[:, None], np.where(parts > 0, rooms, least)[:, None]
    of_parts = np.maximum(np.ceil((k + 1) * seconds / (room * _MORE)) - 1, 0.0) / k
    fit = np.maximum(np.floor(room / t * _MORE), 1)
    further = np.floor(np.maximum(room - seconds, 0.0) / t * _MORE)
    of_least = np.where(seconds * 2 > room * _MORE, 1 - np.minimum(further / fit, 1.0), 1 / fit) * (seconds >= t)
    found: Floats = np.where(parts[:, None] > 0, of_parts, of_least)
    return found


def taken_in_rooms(seconds: Floats, copies: Floats, rooms: Floats, parts: Ints, least: Floats) -> Floats:
    """Return the sizes of all copies of S pieces together in each of N rooms, (N,); some rooms at a time.

    Pieces that have the size 0 in all rooms are left out.
    """
    taken = np.empty(len(rooms))
    is_counted = seconds >= np.min(np.where(parts > 0, rooms / (parts + 1), least), initial=np.inf) * _BELOW
    seconds, copies = seconds[is_counted], copies[is_counted]
    step = max(_MOST_SIZES // max(len(seconds), 1), 1)
    for start in range(0, len(rooms), step):
        some = slice(start, start + step)
        taken[some] = sizes(seconds, rooms[some], parts[some], least[some]) @ copies
    return taken


def _ways(least: Floats) -> tuple[Ints, Floats]:
    """Return numbers of parts and least pieces of rows, of which one is 0 in each."""
    parts = np.arange(1, _MOST_PARTS + 1)
    return np.append(parts, np.zeros(len(least), dtype=np.int64)), np.append(np.zeros(len(parts)), least)


def _rows(model: Relaxation, found: Sequence[tuple[int, float, int, float]]) -> list[PackingRow]:
    """Return rows of phases, rooms, parts and least pieces; all at once, since choices are gone through only once."""
    if not found:
        return []
    pieces = model.of_pieces
    assert pieces is not None
    of_shapes = [
        sizes(pieces.seconds(phase), np.array([room]), np.array([parts]), np.array([least]))[0]
        for phase, room, parts, least in found
    ]
    taken = pieces.choices.in_all(np.stack(of_shapes, axis=1) * pieces.shape_ranks[:, None])
    return [
        PackingRow(phase=phase, room_seconds=room, parts=parts, least_seconds=least, taken=np.maximum(of_row, 0.0))
        for (phase, room, parts, least), of_row in zip(found, taken.T, strict=True)
    ]


def _widest(model: Relaxation, share: Floats, phase: int, above: float, below: float) -> float:
    """Return the widest room of a phase in which a solution breaks a row; 0 for none between two limits.

    Sizes change where a number of parts is that of a piece, and where the least piece fits once more, with a larger
    piece or without one.
    """
    seconds, copies = _pieces(model, share, phase)
    longest, times = seconds[:_MOST_PIECES], np.arange(1, _MOST_PARTS + 1)
    sums = np.append(longest, 0.0)[:, None, None] + longest[None, :, None] * times  # (larger, least, times)
    cut = longest[:, None, None] * (times[:, None] + 1) / times  # (pieces, parts, parts of the piece)
    rooms = np.append(sums, cut) * (1 - _ALIKE)
    least = np.append(np.broadcast_to(longest[None, :, None], sums.shape) * _BELOW, np.zeros(cut.size))
    parts = np.append(np.zeros(sums.size, dtype=np.int64), np.broadcast_to(times[:, None], cut.shape))
    some = (rooms > above) & (rooms < below * (1 - _ALIKE)) & ((parts > 0) | (rooms < least * (_MOST_PARTS + 1)))
    widest_first = np.flatnonzero(some)[np.argsort(-rooms[some], kind="stable")]
    for start in range(0, len(widest_first), _ROOMS_AT_ONCE):
        at = widest_first[start : start + _ROOMS_AT_ONCE]
        crowded = taken_in_rooms(seconds, copies, rooms[at], parts[at], least[at]) > _num_ranks(model) + _BROKEN
        if np.any(crowded):
            return float(rooms[at[np.argmax(crowded)]])
    return 0.0


def _pieces(model: Relaxation, share: Floats, phase: int) -> tuple[Floats, Floats]:
    """Return the different seconds of a solution's pieces, longest first, and on how many ranks they are.

    All cuts are taken for even ones.
    """
    assert model.of_pieces is not None
    copies, seconds = share * model.pieces * model.of_pieces.choice_ranks, model.big[:, phase]
    some = np.flatnonzero((copies > 0) & (seconds > 0))
    some = some[np.argsort(-seconds[some], kind="stable")]
    seconds, copies = seconds[some], copies[some]
    if not len(some):
        return seconds, copies
    first = np.flatnonzero(np.append(True, seconds[1:] < seconds[:-1] * (1 - _ALIKE)))
    # The least of those that are alike stands for them.
    return seconds[np.append(first[1:], len(seconds)) - 1], np.add.reduceat(copies, first)


def _num_ranks(model: Relaxation) -> float:
    assert model.of_pieces is not None
    return float(model.of_pieces.num_ranks)
