"""Every partitioner by the name used in specs."""

from collections.abc import Callable

from planner.partitioners.base import Partitioner
from planner.partitioners.cp_sat import CpSat
from planner.partitioners.greedy import Greedy
from planner.partitioners.ldm import Ldm
from planner.partitioners.lns import Lns
from planner.partitioners.local_search import LocalSearch
from planner.partitioners.mathopt import MathOpt
from planner.partitioners.portfolio import Portfolio

PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    Portfolio.name: Portfolio,
    Greedy.name: Greedy,
    Ldm.name: Ldm,
    LocalSearch.name: LocalSearch,
    Lns.name: Lns,
    CpSat.name: CpSat,
    MathOpt.name: MathOpt,
}


def partitioner_names() -> tuple[str, ...]:
    """All names, the default first."""
    return tuple(PARTITIONERS)


def make_partitioner(name: str) -> Partitioner:
    """Return a partitioner; raises ``KeyError`` for an unknown name."""
    return PARTITIONERS[name]()
