"""The moves of the search: the number of each in compiled code, how much it weighs, and when it is made.

``planner.solver.partitioners.local_search.proposal_mix`` turns this table and the rates of the rarer moves into the
probabilities that a proposal draws from.
"""

from dataclasses import dataclass
from enum import IntEnum


class Move(IntEnum):
    """Kinds of moves; a draw looks through them in this order, so that the most frequent ones come first."""

    SWAP_PIECES = 0
    MOVE_PIECE = 1
    SHIFT_COLUMNS = 2
    SPLIT_PIECE = 3
    MERGE_PIECES = 4
    CUT_AND_REDISTRIBUTE = 5
    REPLACE_ITEM = 6
    SEND_HOME = 7
    EJECT_PIECE = 8
    REDISTRIBUTE_THREE = 9
    REDISTRIBUTE_TWO = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFacts:
    """What is fixed about a move."""

    does: str  # in words
    when: str  # it is made, in words
    #: Weights of an everyday move, whose sum is 100: in stages that cut tables, and in stages where pieces only move.
    weight_with_cuts: float = 0.0
    weight_without_cuts: float = 0.0
    #: The most that a rarer move takes of the proposals which rarer moves before it leave, from 0 to 1; how often it is
    #: made follows from the work that it takes (``proposal_mix.proposal_rates``).
    most_rate: float = 0.0
    #: Whether the pieces that lie on whole hosts are moved among hosts in the same way.
    on_hosts: bool = False


MOVES = {
    Move.MOVE_PIECE: MoveFacts(
        does="puts a piece on another rank or host",
        when="always",
        weight_with_cuts=32,
        weight_without_cuts=47,
        on_hosts=True,
    ),
    Move.SWAP_PIECES: MoveFacts(
        does="exchanges two pieces of two ranks or hosts",
        when="always",
        weight_with_cuts=36,
        weight_without_cuts=53,
        on_hosts=True,
    ),
    Move.SHIFT_COLUMNS: MoveFacts(
        does="makes a piece of a table wider and another narrower",
        when="tables may be cut",
        weight_with_cuts=15,
    ),
    Move.SPLIT_PIECE: MoveFacts(
        does="cuts a piece in two, of which one goes elsewhere",
        when="tables may be cut",
        weight_with_cuts=9,
    ),
    Move.MERGE_PIECES: MoveFacts(
        does="joins two pieces of a table on the site of one of them",
        when="tables may be cut",
        weight_with_cuts=8,
    ),
    Move.REPLACE_ITEM: MoveFacts(
        does="takes a table off and places it under a random listed option, each piece where it adds least",
        when="tables may be cut",
        most_rate=0.1,
    ),
    Move.SEND_HOME: MoveFacts(
        does="puts a table back where the previous plan has it",
        when="moves from a previous plan have a price or a limit",
        most_rate=0.05,
    ),
    Move.EJECT_PIECE: MoveFacts(
        does="drives a piece off a pressed rank, and hands the excess on over a chain of exchanges",
        when="the search is sharp, and one phase counts",
        most_rate=0.02,
    ),
    Move.CUT_AND_REDISTRIBUTE: MoveFacts(
        does="cuts a table at random, then shares out the pieces of the sites it touches and of a third",
        when="the search is sharp, tables may be cut, and ranks are equally fast",
        most_rate=0.4,
    ),
    Move.REDISTRIBUTE_THREE: MoveFacts(
        does="shares out the pieces of three ranks or hosts, up to 18",
        when="the search is sharp, on three ranks or more",
        on_hosts=True,
        most_rate=0.1,
    ),
    Move.REDISTRIBUTE_TWO: MoveFacts(
        does="shares out the pieces of two ranks or hosts, up to 13, in the best of all ways",
        when="the search is not sharp yet, or there are two ranks",
        on_hosts=True,
        most_rate=5e-4,
    ),
}
