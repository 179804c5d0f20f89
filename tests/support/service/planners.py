"""Stand-ins for the planner that misbehave; solver processes find them by module and name.

Each leaves its process id in the folder named by ``tests.support.service.stand_ins``.
"""

import gc
import os
import signal
import sys
import time
from dataclasses import replace

from numba.core.dispatcher import Dispatcher

from cost_models.errors import MissingHardwareNumber
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.errors import SolverDefect
from planner.pipeline import plan
from tests.support.service.stand_ins import given_folder


def _leave_pid() -> None:
    folder, process_id = given_folder(), os.getpid()
    part = folder / f"pid.{process_id}.part"  # Several processes may get here at once
    part.write_text(str(process_id))
    part.rename(folder / "pid")


def plan_then_hang(problem: Problem, **options: object) -> object:
    """Finds a plan, and never stops looking."""
    options["on_result"](plan(problem, **{**options, "on_result": None}))
    _leave_pid()
    time.sleep(3600)
    raise AssertionError("nobody stopped this")


def hang(_problem: Problem, **_options: object) -> object:
    """Finds nothing, and never stops looking."""
    _leave_pid()
    time.sleep(3600)
    raise AssertionError("nobody stopped this")


def die_on_boom(problem: Problem, **options: object) -> object:
    """Dies over a table named boom, plans everything else."""
    if any(table.name == "boom" for table in problem.tables):
        os.kill(os.getpid(), signal.SIGSEGV)
    return plan(problem, **options)


def raise_defect(_problem: Problem, **_options: object) -> object:
    """Has a defect."""
    raise RuntimeError("this text must not leave the log")


def refuse(_problem: Problem, **_options: object) -> object:
    """Misses a number."""
    raise MissingHardwareNumber("custom", "hbm_bytes_per_second", "gathering rows")


def plan_then_eat_memory(problem: Problem, **options: object) -> object:
    """Finds a plan, and allocates without end."""
    options["on_result"](plan(problem, **{**options, "on_result": None}))
    return eat_memory(problem, **options)


def plan_then_defect(problem: Problem, **options: object) -> object:
    """Finds a plan, and returns what the checks reject."""
    options["on_result"](plan(problem, **{**options, "on_result": None}))
    raise SolverDefect("the second plan is wrong")


def find_nothing(_problem: Problem, **_options: object) -> object:
    """Ends in time without a plan."""
    return PlanResult(plan=None, reason="NO_SOLUTION_FOUND", limit="time", detail="", lower_bound_seconds=0.0)


def eat_memory(_problem: Problem, **_options: object) -> object:
    """Allocates without end."""
    hoard = []
    while True:
        hoard.append(bytearray(64 * 1024**2))


def plan_with_machine_code(problem: Problem, **options: object) -> object:
    """Plans where the searches are loaded already."""
    gc.unfreeze()  # what is frozen is in no list
    functions = [item for item in gc.get_objects() if isinstance(item, Dispatcher)]
    assert any(function.signatures for function in functions)
    return plan(problem, **options)


def plan_on_request(problem: Problem, **options: object) -> object:
    """Plans once a file ``go`` lies in the folder."""
    _leave_pid()
    while not (given_folder() / "go").exists():
        time.sleep(0.02)
    return plan(problem, **options)


def plan_with_bounds(problem: Problem, **options: object) -> object:
    """Finds its plan at once, and then a better bound for it."""
    result = plan(problem, **{**options, "on_result": None})
    for share in (0.25, 0.5):
        worse = replace(result.plan, lower_bound_seconds=share * result.plan.lower_bound_seconds)
        options["on_result"](replace(result, plan=worse))
        time.sleep(0.5)
    return result


def plan_after_a_faster_one(problem: Problem, **options: object) -> object:
    """Streams a plan that seems twice as fast as the one that it ends with."""
    result = plan(problem, **{**options, "on_result": None})
    faster = replace(result.plan.evaluation, objective_seconds=0.5 * result.plan.evaluation.objective_seconds)
    options["on_result"](replace(result, plan=replace(result.plan, evaluation=faster)))
    return result


def misbehave(problem: Problem, **options: object) -> object:
    """Does what its first table is called, after it has found a plan where the second one says so."""
    way, when = (table.name for table in problem.tables)
    if when == "later":
        options["on_result"](plan(problem, **{**options, "on_result": None}))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    match way:
        case "well":
            return plan(problem, **options)
        case "leave":
            os._exit(0)
        case "quit":
            sys.exit(0)
        case "abort":
            os.abort()
        case "eat":
            return eat_memory(problem)
        case "spin":
            while True:
                pass
        case "crash" | "stop" | "die":
            os.kill(os.getpid(), {"crash": signal.SIGSEGV, "stop": signal.SIGSTOP, "die": signal.SIGKILL}[way])
    raise AssertionError("nothing of the kind happened")


def plan_by_and_by(problem: Problem, **options: object) -> object:
    """Finds its plan once a file ``go`` lies in the folder, and a better bound for it every tenth of a second."""
    result = plan_on_request(problem, **{**options, "on_result": None})
    for step in range(1, 20):
        worse = replace(result.plan, lower_bound_seconds=step / 20 * result.plan.lower_bound_seconds)
        options["on_result"](replace(result, plan=worse))
        time.sleep(0.1)
    return result
