"""Every partitioner by the name used in specs."""

from collections.abc import Callable
from pkgutil import resolve_name

from planner.solver.partitioners.base import Partitioner

#: The class of each name. A class is imported when one is made: solvers and compilers take a second to load, and a
#: server that only reads specs needs the names alone.
_PLACES = {
    "portfolio": "portfolio:Portfolio",
    "greedy": "greedy:Greedy",
    "ldm": "ldm.ldm:Ldm",
    "local_search": "local_search.local_search:LocalSearch",
    "lns": "portfolio:Portfolio",  # large neighbourhood search is gone (decision 0049); stored specs still name it
    "cp_sat": "exact.cp_sat:CpSat",
    "mathopt": "exact.mathopt:MathOpt",
}


def partitioner_names() -> tuple[str, ...]:
    """All names, the default first."""
    return tuple(_PLACES)


def make_partitioner(name: str) -> Partitioner:
    """Return a partitioner; raises ``KeyError`` for an unknown name."""
    make: Callable[[], Partitioner] = resolve_name(f"planner.solver.partitioners.{_PLACES[name]}")
    return make()
