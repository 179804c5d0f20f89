"""Solves that misbehave one after the other: each ends by itself, and leaves nothing behind."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.execution.test_engine import plan_is_valid
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import wait_until

_LIMIT_SECONDS, _GRACE_SECONDS = 1.0, 1.0
#: How each misbehaves: why a solve without a plan failed, and what stopped one that has a plan.
WAYS = {
    "crash": ("solver-killed", "killed"),
    "spin": ("time-limit", "time"),
    "leave": ("solver-killed", "killed"),
    "die": ("solver-killed", "killed"),
    "eat": ("out-of-memory", "memory"),
    "stop": ("time-limit", "time"),
    "abort": ("solver-killed", "killed"),
    "quit": ("solver-defect", "defect"),
}
#: What ends by itself, long before its limit.
_ENDS = {"crash", "leave", "die", "eat", "abort", "quit"}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    leave_in(tmp_path)
    with Live.of(
        tmp_path, plan=planners.misbehave, solver_grace_seconds=_GRACE_SECONDS, solver_memory_bytes=1024**3
    ) as live:
        yield live


def family() -> dict[int, str]:
    """Processes that descend from this one, with their states."""
    parents, states = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            states[int(entry.name)], parent = rest.split()[:2]
            parents[int(entry.name)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: states[pid] for pid in found - {os.getpid()}}


def num_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@thorough
def test_what_misbehaves_ends_and_leaves_nothing_behind(live: Live) -> None:
    # The first one may compile the searches.
    assert live.solve(tiny(model__tables__0__name="well", solver__time_limit_seconds=60), wait=60)["result"]
    before = len(family()), num_files()
    for when in ("later", "never"):
        for way, (code, limit) in WAYS.items():
            spec = tiny(
                name=f"{way} {when}",
                model__tables__0__name=way,
                model__tables__1__name=when,
                solver__time_limit_seconds=600 if way in _ENDS else _LIMIT_SECONDS,
            )
            solve = live.solve(spec, wait=60)
            if when == "later":
                assert (solve["state"], solve["result"]["termination"]["limit"]) == ("succeeded", limit), way
                assert plan_is_valid(live, solve, spec)
            else:
                assert (solve["state"], solve["error"]["code"]) == ("failed", code), way
    after = tiny(name="after", model__tables__0__name="well", solver__time_limit_seconds=60)
    assert live.solve(after, wait=60)["state"] == "succeeded"
    wait_until(lambda: "Z" not in family().values() and len(family()) <= before[0])
    assert num_files() <= before[1] + 4  # a connection of the store may have been opened meanwhile
