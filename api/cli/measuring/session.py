"""A run: which part of its time goes to what, launch after launch, until the time is up."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from api.cli.measuring.allocator import keep_freed_memory
from api.cli.measuring.embeddings import best_implementation
from api.cli.measuring.lookup_design import LookupLaunch, LookupLimits, lookup_launch
from api.cli.measuring.lookups import measure_lookups
from api.cli.measuring.machine import Machine
from api.cli.measuring.rank_design import CollectiveLaunch, CopyLaunch, collective_launch, copy_launch
from api.cli.measuring.ranks import Ranks, RanksLost, joined_ranks
from api.cli.measuring.rows import Row, RowFile
from api.cli.measuring.stopwatch import Stopwatch
from cost_models.measurements.schema import Kind

#: Of the budget, for collectives and copies together, where lookups are measured, too.
_RANKS_SHARE = 0.25
#: Ranks need that long to begin; shorter runs measure lookups alone.
_LEAST_SECONDS_FOR_RANKS = 40.0
_LAUNCHES_PER_TURN = 3
#: The largest launches grow with the budget, so that no single one takes much of it.
_LOOKUPS_PER_SECOND = {"cpu": 4_096, "cuda": 131_072}
_MOST_LOOKUPS = {"cpu": 2.0**22, "cuda": 2.0**24}
_MOST_WEIGHT_BYTES = {"cpu": 512 * 1024**2, "cuda": 16 * 1024**3}

#: Launches that take turns on a CPU: no more than this, than a part of the budget is enough for, and than a part of the
#: memory holds.
_MOST_TOGETHER, _BLOCK_SHARE, _SECONDS_OF_LAUNCH, _WEIGHTS_SHARE = 120, 0.1, 0.6, 0.5

#: Hears after each launch, and while several take turns after each visit to one: what is measured, and which share of
#: the time is gone.
Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run measures, how long, and with which seed."""

    kinds: frozenset[Kind]
    budget_seconds: float
    seed: int
    began: float  # of time.monotonic()

    def gone(self) -> float:
        """Return the share of the budget that is gone."""
        return (time.monotonic() - self.began) / self.budget_seconds


def limits(plan: Plan, machine: Machine) -> LookupLimits:
    """Return what one launch may hold and do on this machine in a run of this length."""
    kind = "cuda" if machine.is_cuda else "cpu"
    lookups = max(plan.budget_seconds * _LOOKUPS_PER_SECOND[kind], 4_096.0)
    return LookupLimits(
        lookups=min(lookups, _MOST_LOOKUPS[kind]),
        weight_bytes=min(_MOST_WEIGHT_BYTES[kind], machine.memory_bytes / 6),
    )


def num_rows_of(kind: Kind, index: int, plan: Plan, machine: Machine) -> int:
    """Return how many rows launch ``index`` of a kind has."""
    if kind == "lookup":
        return len(lookup_launch(index, plan.seed, limits(plan, machine)).tables)
    if kind == "collective":
        return machine.num_ranks
    return copy_launch(index, plan.seed, machine.num_ranks, machine.is_cuda).contending


def work_of_ranks(plan: Plan, machine: Machine) -> tuple[frozenset[Kind], list[str]]:
    """Return what all ranks measure together, and what of the plan they cannot, in words for people."""
    kinds, notes = plan.kinds - {"lookup"}, []
    if machine.num_ranks == 1 and "collective" in kinds:
        kinds -= {"collective"}
        notes.append("one rank alone exchanges nothing: no collectives")
    if kinds and "lookup" in plan.kinds and plan.budget_seconds < _LEAST_SECONDS_FOR_RANKS:
        kinds = frozenset()
        notes.append(f"a budget under {_LEAST_SECONDS_FOR_RANKS:.0f} s is for lookups alone: no collectives, no copies")
    return kinds, notes


def follow(plan: Plan, machine: Machine) -> None:
    """Take part in what rank 0 measures; of the other ranks of a job.

    Raises
    ------
    RanksLost
        Where the ranks do not come together, or one of them ends.
    """
    if work_of_ranks(plan, machine)[0]:
        with joined_ranks(machine) as ranks:
            ranks.follow()


def measure(plan: Plan, machine: Machine, file: RowFile, report: Progress) -> list[str]:
    """Measure until the time is up, and return what could not be measured, in words for people."""
    of_ranks, notes = work_of_ranks(plan, machine)
    if of_ranks:
        until = _RANKS_SHARE if "lookup" in plan.kinds else 1.0
        report("starting the ranks", plan.gone())
        try:
            with joined_ranks(machine) as ranks:
                _measure_ranks(plan, of_ranks, until, machine, ranks, file, report)
        except RanksLost as error:
            notes.append(f"{error}: no more collectives and copies")
    if "lookup" in plan.kinds:
        if not machine.is_cuda and not keep_freed_memory():
            notes.append("the C library maps large outputs again each time, which takes longer than to keep them")
        _measure_lookups(plan, machine, file, report)
    if file.num_rows == 0:
        notes.append("the time was up before the first launch: give a larger --budget")
    return notes


def _measure_lookups(plan: Plan, machine: Machine, file: RowFile, report: Progress) -> None:
    torch.set_num_threads(machine.num_threads)
    device = machine.device(0)
    implementation, watch = best_implementation(), Stopwatch(device)
    bounds, began, done = limits(plan, machine), plan.gone(), 0

    def went_on() -> None:
        report(f"lookups ({implementation.name})", plan.gone())

    while not _is_last(plan, 1.0, began, done):
        launches = _together(file.done("lookup"), plan, machine, bounds)
        for rows in measure_lookups(launches, implementation, device, watch, went_on):
            file.add(rows)
        done += 1
        went_on()


def _together(first: int, plan: Plan, machine: Machine, bounds: LookupLimits) -> list[LookupLaunch]:
    """Return the next launches, as many as take turns: on an accelerator, whose pace does not change, one."""
    launches = [lookup_launch(first, plan.seed, bounds)]
    if machine.is_cuda:
        return launches
    most = min(_MOST_TOGETHER, max(int(_BLOCK_SHARE * plan.budget_seconds / _SECONDS_OF_LAUNCH), 1))
    left = machine.memory_bytes * _WEIGHTS_SHARE - _weight_bytes(launches[0])
    while len(launches) < most:
        further = lookup_launch(first + len(launches), plan.seed, bounds)
        left -= _weight_bytes(further)
        if left < 0:
            break
        launches.append(further)
    return launches


def _weight_bytes(launch: LookupLaunch) -> float:
    return sum(float(table.rows * table.columns) for table in launch.tables) * launch.element_bytes


def _measure_ranks(
    plan: Plan, kinds: frozenset[Kind], until: float, machine: Machine, ranks: Ranks, file: RowFile, report: Progress
) -> None:
    launch: CollectiveLaunch | CopyLaunch
    began, done = plan.gone(), 0
    # Once the ranks are there, one turn is measured even where their start took all the time that they had.
    while done < _LAUNCHES_PER_TURN or not _is_last(plan, until, began, done):
        # Two collectives for each copy: collectives have more axes.
        if "collective" in kinds and ("copy" not in kinds or done % _LAUNCHES_PER_TURN < 2):
            launch = collective_launch(file.done("collective"), plan.seed, machine.num_ranks)
        else:
            launch = copy_launch(file.done("copy"), plan.seed, machine.num_ranks, machine.is_cuda)
        file.add(_rows(launch, ranks.run(launch), machine))
        done += 1
        report("collectives and copies", plan.gone())


def _is_last(plan: Plan, until: float, began: float, done: int) -> bool:
    """Whether one more launch, as long as those before on average, would end too late by more than half of it."""
    gone = plan.gone()
    mean = (gone - began) / done if done else 0.0
    return gone + mean / 2 >= until


def _rows(launch: CollectiveLaunch | CopyLaunch, found: list[Row | None], machine: Machine) -> list[Row]:
    """Return a row for each rank that took part."""
    return [
        {
            "library": f"torch {torch.__version__}",
            "num_ranks": machine.num_ranks,
            "ranks_per_host": machine.ranks_per_host,
            "rank": rank,
            **launch.columns(rank, machine.backend),
            **measured,
        }
        for rank, measured in enumerate(found)
        if measured is not None
    ]
