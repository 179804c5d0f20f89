"""Who gets which hosts of a fleet: a knapsack over whole hosts and equal parts of hosts.

Jobs take whole hosts, or a part of each of some hosts; all parts are alike. With ``W`` of ``N`` hosts given away, jobs
with parts fit if each has at most ``N - W`` hosts and all parts together are at most those of ``N - W`` hosts: dealt
out host by host, one part of each after the other, no job comes to a host twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

#: Worth of an allocation: targets met by priority, the highest first, then weighted shares of rates.
Worth = tuple[tuple[int, ...], float]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Generic[Value]):
    """A cluster that a job may have."""

    num_hosts: int
    is_whole: bool  # whole hosts, or a part of each
    met: tuple[int, ...]  # 1 at the priority of the job if its target is met, else 0
    rate: float  # what its rate counts
    value: Value


@dataclass(frozen=True, slots=True)
class _State(Generic[Value]):
    """What some jobs take."""

    worth: Worth
    chosen: tuple[Candidate[Value] | None, ...]

    @property
    def rank(self) -> tuple[Worth, tuple[bool, ...]]:
        """What states are compared by: of equal worth, the one that gives to jobs that stand first."""
        return self.worth, tuple(one is not None for one in self.chosen)


def allocated(
    candidates: Sequence[Sequence[Candidate[Value]]], *, num_hosts: int, parts_per_host: int, num_priorities: int
) -> tuple[list[Candidate[Value] | None], Worth]:
    """Return the candidate that each job takes, and their worth, the greatest there is; ties go to the first jobs."""
    widest = {0, *(one.num_hosts for of_job in candidates for one in of_job if not one.is_whole)}
    best: _State[Value] | None = None
    for limit in sorted(widest):  # the most hosts of a job with parts
        within = [[one for one in of_job if one.is_whole or one.num_hosts <= limit] for of_job in candidates]
        for state in _states(within, num_hosts, limit, parts_per_host, num_priorities):
            if best is None or state.rank > best.rank:
                best = state
    assert best is not None  # at least the allocation of no hosts
    return list(best.chosen), best.worth


def _states(
    candidates: Sequence[Sequence[Candidate[Value]]],
    num_hosts: int,
    limit: int,
    parts_per_host: int,
    num_priorities: int,
) -> Iterator[_State[Value]]:
    """Yield an allocation for each number of whole hosts and of parts, the fewest first."""
    nothing: _State[Value] = _State(((0,) * num_priorities, 0.0), ())
    states = {(0, 0): nothing}
    for of_job in candidates:
        found: dict[tuple[int, int], _State[Value]] = {}
        for (whole, parts), before in states.items():
            for candidate in (None, *of_job):
                took_whole = whole + (candidate.num_hosts if candidate is not None and candidate.is_whole else 0)
                took_parts = parts + (candidate.num_hosts if candidate is not None and not candidate.is_whole else 0)
                if not _fits(took_whole, took_parts, num_hosts, limit, parts_per_host):
                    continue
                added = before.worth if candidate is None else _added(before.worth, candidate)
                state, key = _State(added, (*before.chosen, candidate)), (took_whole, took_parts)
                if key not in found or state.rank > found[key].rank:
                    found[key] = state
        states = found
    yield from (states[key] for key in sorted(states))


def _fits(whole: int, parts: int, num_hosts: int, limit: int, parts_per_host: int) -> bool:
    left = num_hosts - whole
    return left >= 0 and (parts == 0 or (limit <= left and parts <= left * parts_per_host))


def _added(worth: Worth, candidate: Candidate[Value]) -> Worth:
    met = tuple(before + one for before, one in zip(worth[0], candidate.met, strict=True))
    return met, worth[1] + candidate.rate


def places_of(
    chosen: Sequence["Candidate[Value] | None"], *, num_hosts: int, ranks_per_part: int, ranks_per_host: int
) -> list[list[dict[str, Any]]]:
    """Return for each job its hosts and the first of its ranks on each; hosts in a row are one entry."""
    places: list[list[dict[str, Any]]] = [[] for _ in chosen]
    host = 0
    for job, candidate in enumerate(chosen):
        if candidate is not None and candidate.is_whole:
            places[job].append(_place(host, host + candidate.num_hosts - 1, 0, ranks_per_host))
            host += candidate.num_hosts
    shared, part = num_hosts - host, 0
    for job, candidate in enumerate(chosen):
        if candidate is None or candidate.is_whole:
            continue
        for _ in range(candidate.num_hosts):
            column, at = divmod(part, shared)
            last: Mapping[str, Any] | None = places[job][-1] if places[job] else None
            if last is not None and last["last_host"] == host + at - 1:
                places[job][-1]["last_host"] = host + at
            else:
                places[job].append(_place(host + at, host + at, column * ranks_per_part, ranks_per_part))
            part += 1
    return places


def _place(first_host: int, last_host: int, first_rank: int, num_ranks: int) -> dict[str, Any]:
    return {"first_host": first_host, "last_host": last_host, "first_rank": first_rank, "num_ranks": num_ranks}
