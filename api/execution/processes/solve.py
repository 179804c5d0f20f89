"""What runs in a solver process: one solve after another, each of which may be killed.

Every improved plan is put into a file at once, whole or not at all (written next to it and
renamed), so that a killed process loses nothing and disturbs no other: there is no queue
or lock that it could die holding.
"""

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from api.execution.processes.child import start_process
from api.specs.parse import parse_stored_spec
from api.specs.references.cost_model import OneModel
from api.specs.references.resolve import Library
from api.specs.request import SolveInputs
from cost_models.errors import CostModelError
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.plan.plan import Assumption, Plan, PlanResult
from planner.domain.problem.problem import Problem
from planner.errors import PlannerError
from planner.output.exporters.generic import to_document
from planner.solver.partitioners.kernels.cache import compiling_alone, is_warm
from planner.solver.partitioners.registry import make_partitioner, partitioner_names

_NOT_REPEATABLE = ("time", "cancelled")  # limits that depend on the clock or on a caller

#: ``plan_in_full``, or a stand-in for tests.
PlanFunction = Callable[..., PlanResult]


def plan_in_full(problem: Problem, **options: Any) -> PlanResult:
    """Plan a problem, and compare the plan with others.

    The planner is loaded where solves run: a server that hands them out needs it not.
    """
    from planner.orchestration.baselines.compare import with_baselines
    from planner.pipeline import plan

    result = plan(problem, **options)
    if result.plan is None:
        return result
    return replace(result, plan=with_baselines(result.plan, problem, options["cost_model"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveJob:
    """One solve, as it is handed to a solver process."""

    spec_bytes: bytes  # canonical bytes of the normalised spec, which was checked when it was accepted
    spec_digest: str
    assumptions: Sequence[dict[str, str]]  # what was assumed when the spec was first read
    incumbent_file: Path  # where the best plan so far goes
    plan: PlanFunction
    learned_model: bytes | None = None  # the document of the one that the spec names
    seconds_left: float | None = None  # to the deadline of its request; the spec's limit is none beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """A verified plan, as it travels between processes."""

    document: bytes  # canonical bytes, in compact form; those of earlier releases in long form
    digest: str
    objective: dict[str, Any]  # as in the plan document
    partitioner: str
    movement: dict[str, Any] | None = None  # as in the plan document
    #: whether the plan is what ordered objectives led to, which have no say in plans on the way there
    is_ordered: bool = False
    head: dict[str, object] = field(default_factory=dict)  # what lists show of the plan document, by its keys

    @classmethod
    def of(cls, document: bytes) -> "Incumbent":
        """Return what the canonical bytes of a plan document say."""
        return cls.of_plan(json.loads(document), document)

    @classmethod
    def of_plan(cls, plan: Mapping[str, Any], document: bytes) -> "Incumbent":
        """Return what a plan document says, whose canonical bytes are known."""
        return cls(
            document=document,
            digest=plan["plan_digest"],
            objective=plan["objective"],
            partitioner=plan["provenance"]["partitioner"],
            movement=plan.get("movement"),
            is_ordered=bool(plan.get("objectives")),
            head={
                **{key: plan[key] for key in ("plan_digest", "name", "world_size", "objective")},
                "provenance": {key: plan["provenance"][key] for key in ("hardware_profile", "cost_model")},
                **({"replica_groups": plan["replica_groups"]} if "replica_groups" in plan else {}),
            },
        )

    @classmethod
    def of_file(cls, content: bytes) -> "Incumbent":
        """Return what ``to_file`` wrote."""
        head, _, document = content.partition(b"\n")
        return cls(document=document, **json.loads(head))

    def to_file(self) -> bytes:
        """Return a line of what the server wants to know at once, then the plan, whose megabytes it need not read."""
        head = {
            name: getattr(self, name)
            for name in ("digest", "objective", "partitioner", "movement", "is_ordered", "head")
        }
        return canonical_bytes(head) + b"\n" + self.document

    @property
    def seconds(self) -> float:
        """What the search minimises: the objective, and the price of moving where there is one."""
        seconds: float = self.objective["seconds"]
        return seconds if self.movement is None else seconds + self.movement["charged_seconds_per_step"]

    @property
    def bound_seconds(self) -> float:
        """What no plan can be better than, as far as it is known."""
        seconds: float = self.objective["lower_bound_seconds"]
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveAnswer:
    """What a solve came to."""

    reason: str = ""  # OPTIMAL, FEASIBLE, INFEASIBLE or NO_SOLUTION_FOUND
    limit: str | None = None
    detail: str = ""
    lower_bound_seconds: float = 0.0
    shortfalls: tuple[dict[str, object], ...] = ()
    diagnosis: dict[str, object] | None = None
    best: Incumbent | None = None
    #: whether an equal request gives an equal plan: nothing that the clock decides may then stand in for ``best``
    is_repeatable: bool = False
    #: code, message and hint of what planning raised
    error: dict[str, str] | None = None
    is_out_of_memory: bool = False


def load_solvers() -> None:
    """Load the solvers, and the searches' machine code where it is compiled: two or three seconds."""
    import_module("planner.pipeline")
    for name in partitioner_names():
        make_partitioner(name)
    if is_warm():
        _load_machine_code()


@cache
def _load_machine_code() -> None:
    """Load the searches' machine code, once in this process and its forks; compile it if that was not done ahead."""
    with compiling_alone():
        import_module("planner.solver.partitioners.kernels.warm_up").warm()


def start_solver(memory_bytes: int | None) -> None:
    start_process(memory_bytes)
    with contextlib.suppress(Exception):  # whatever is missing then, a solve says so
        _load_machine_code()


def run_solve(job: SolveJob) -> SolveAnswer:
    """Plan one spec, and leave every improvement in the job's file."""
    return solve(job, lambda incumbent: leave(job, incumbent.to_file()))


def leave(job: SolveJob, content: bytes) -> None:
    """Replace a job's file with an improvement in one step; if the disk is full, the plan comes with the answer."""
    part = job.incumbent_file.with_suffix(".part")
    with contextlib.suppress(OSError):
        part.write_bytes(content)
        os.replace(part, job.incumbent_file)


def solve(job: SolveJob, found: Callable[[Incumbent], None]) -> SolveAnswer:
    """Plan one spec, and report every improvement."""

    def keep(result: PlanResult) -> None:
        if result.plan is not None:
            found(_incumbent(result.plan, inputs, job.spec_digest))

    try:
        model = None if job.learned_model is None else OneModel(job.learned_model)
        inputs = parse_stored_spec(job.spec_bytes, Library(find_model=model))
        result = planned(inputs, tuple(Assumption(**item) for item in job.assumptions), keep, job.plan)
    except (PlannerError, CostModelError) as error:
        return SolveAnswer(error={"code": error.code, "message": str(error), "hint": getattr(error, "hint", "")})
    except MemoryError:
        return SolveAnswer(is_out_of_memory=True)
    answer = answer_of(result, None if result.plan is None else _incumbent(result.plan, inputs, job.spec_digest))
    return replace(answer, is_repeatable=inputs.limits.reproducible and result.limit not in _NOT_REPEATABLE)


def planned(
    inputs: SolveInputs,
    assumptions: tuple[Assumption, ...],
    on_result: Callable[[PlanResult], None] | None = None,
    plan: PlanFunction = plan_in_full,
) -> PlanResult:
    return plan(
        inputs.problem,
        cost_model=inputs.cost_model,
        partitioner=inputs.partitioner,
        limits=inputs.limits,
        assumptions=assumptions,
        previous=inputs.previous,
        warm_start=inputs.warm_start,
        on_result=on_result,
    )


def answer_of(result: PlanResult, best: Incumbent | None) -> SolveAnswer:
    return SolveAnswer(
        reason=str(result.reason),
        limit=result.limit,
        detail=result.detail,
        lower_bound_seconds=result.lower_bound_seconds,
        shortfalls=tuple(asdict(shortfall) for shortfall in result.shortfalls),
        diagnosis=None if result.diagnosis is None else asdict(result.diagnosis),
        best=best,
    )


def facts_of(inputs: SolveInputs, spec_digest: str) -> dict[str, str]:
    """Return what a plan document says of the request that it answers."""
    return {
        "name": inputs.name,
        "spec_digest": spec_digest,
        "hardware_profile": inputs.hardware_profile,
    }


def _incumbent(plan: Plan, inputs: SolveInputs, spec_digest: str) -> Incumbent:
    document = to_document(plan, **facts_of(inputs, spec_digest))
    return Incumbent.of_plan(document, canonical_bytes(document))
