"""Runs a study here: its points in a few processes, and a log in a folder from which the study goes on."""

import json
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from api.cli.errors import system_errors
from api.cli.files import PlanForm, write_plan
from api.client.plan_file import write_atomically
from api.execution.processes.scenarios import run_scenarios
from api.execution.processes.solve import SolveAnswer, SolveJob, plan_in_full
from api.execution.solves.slot import SolverSlot
from api.services.studies.comparing import job_of, outcome_of
from api.services.studies.rules import outcomes
from api.services.studies.rules.base import CANCELLED, FAILED, Point, PointOutcome, Study
from api.services.studies.rules.comparison import Comparison
from api.services.studies.rules.figures import Machines
from api.specs.parse import parse_spec
from api.specs.references.resolve import Library
from cost_models.errors import CostModelError
from planner.domain.formats.canonical_json import canonical_bytes, digest_of
from planner.errors import InvalidProblem, PlannerError, UnsupportedRequest
from planner.output.documents.compact_plan import CompactPlanDocument

_LOG = "study.jsonl"
_PLANS = "plans"
_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")
_GRACE_SECONDS = 120.0

#: Hears of every point that has ended: the point, what became of it, and whether that is new.
OnPoint = Callable[[Point, PointOutcome, bool], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """A point that has ended."""

    labels: Mapping[str, str]
    outcome: PointOutcome


class StudyFolder:
    """The log of a study and its plans."""

    def __init__(self, folder: Path) -> None:
        """Read what there is. Raises ``BadInput`` if the folder cannot be used."""
        self.folder, self._path = folder, folder / _LOG
        self._known: dict[str, tuple[str, PointOutcome]] = {}
        self._lock = threading.Lock()
        with system_errors(f"cannot use {folder}"):
            (folder / _PLANS).mkdir(parents=True, exist_ok=True)
            text = self._path.read_text(encoding="utf-8", errors="replace") if self._path.exists() else ""
        # The next line must not be written at the end of one that was cut off.
        self._before = "\n" if text and not text.endswith("\n") else ""
        for line in text.splitlines():
            try:
                read = json.loads(line)
                self._known[read["key"]] = (read["spec_digest"], outcomes.of_json(read["outcome"]))
            except (ValueError, TypeError, KeyError):
                continue  # a line that was cut off, or of another version: that point is planned again

    def done(self, key: str, spec_digest: str) -> PointOutcome | None:
        """Return what became of a point of this very spec, if another attempt would not change it."""
        known = self._known.get(key)
        if known is None or known[0] != spec_digest or known[1].state in (FAILED, CANCELLED):
            return None
        plan = known[1].plan_digest
        return known[1] if plan is None or self.plan_path(plan).exists() else None

    def add(self, key: str, spec_digest: str, outcome: PointOutcome) -> None:
        """Write down what became of a point, durably, after its plan."""
        line = json.dumps({"key": key, "spec_digest": spec_digest, "outcome": outcomes.to_json(outcome)})
        with self._lock, system_errors(f"cannot write {self._path}"), self._path.open("a", encoding="utf-8") as file:
            file.write(self._before + line + "\n")
            file.flush()
            os.fsync(file.fileno())
            self._before = ""

    def plan_path(self, plan_digest: str) -> Path:
        return self.folder / _PLANS / f"{_UNSAFE.sub('-', plan_digest)}.json"

    def find_plan(self, plan_digest: str) -> bytes | None:
        """Return a plan of the study."""
        path = self.plan_path(plan_digest)
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        self._write(self.folder / name, content)

    def write_plan(self, plan_digest: str, content: bytes) -> None:
        """Write a plan that was made elsewhere."""
        self._write(self.plan_path(plan_digest), content)

    def _write(self, path: Path, content: bytes) -> None:
        with system_errors(f"cannot write {path}"):
            write_atomically(path, [content])


def run_study(
    study: Study,
    folder: StudyFolder,
    *,
    library: Library,
    num_processes: int,
    form: PlanForm,
    on_point: OnPoint,
) -> dict[str, Ended]:
    """Run a study to its end, and return its points in the order in which they were asked for."""
    found: dict[str, Ended] = {}
    slots = [SolverSlot(None) for _ in range(num_processes)]
    free = list(slots)
    with tempfile.TemporaryDirectory(prefix="shardplan-") as scratch, ThreadPoolExecutor(num_processes) as threads:

        def planned(point: Point) -> tuple[PointOutcome, bool]:
            slot = free.pop()
            try:
                return _planned(point, folder, library, slot, Path(scratch), form)
            finally:
                free.append(slot)

        try:
            while points := study.next_points({key: one.outcome for key, one in found.items()}):
                futures = {threads.submit(planned, point): point for point in points}
                ended = _collected(futures, on_point)
                found.update((point.key, Ended(point.labels, ended[point.key])) for point in points)
        finally:
            for slot in slots:
                slot.discard()
    return found


def _collected(
    futures: Mapping["Future[tuple[PointOutcome, bool]]", Point], on_point: OnPoint
) -> dict[str, PointOutcome]:
    """Wait for the points of a round."""
    ended = {}
    left = set(futures)
    try:
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            for future in done:
                outcome, is_new = future.result()
                ended[futures[future].key] = outcome
                on_point(futures[future], outcome, is_new)
    except BaseException:
        for future in left:
            future.cancel()
        raise
    return ended


def _planned(
    point: Point, folder: StudyFolder, library: Library, slot: SolverSlot, scratch: Path, form: PlanForm
) -> tuple[PointOutcome, bool]:
    """Plan a point, unless that was done before; what is wrong with it stops no other."""
    if point.comparison is not None:
        return _compared(point.key, point.comparison, folder, library, slot)
    if point.spec is None or point.machines is None:
        return outcomes.impossible(point.issue), True
    raw = canonical_bytes(point.spec)
    spec_digest = digest_of(raw)
    done = folder.done(point.key, spec_digest)
    if done is not None:
        return _with_prices(done, point.machines, folder), False
    try:
        request = parse_spec(raw, library)
        job = SolveJob(
            spec_bytes=canonical_bytes(request.spec),
            spec_digest=request.spec_digest,
            assumptions=[{key: str(value) for key, value in asdict(one).items()} for one in request.assumptions],
            incumbent_file=scratch / f"{digest_of(point.key.encode())}.plan",
            plan=plan_in_full,
        )
        limit = request.limits.time_limit_seconds
        outcome = _outcome(slot.solve(job, limit + _GRACE_SECONDS).result(), point, folder, form)
    except (InvalidProblem, UnsupportedRequest) as error:
        issues: Sequence[Any] = error.issues if isinstance(error, InvalidProblem) else ()
        outcome = outcomes.outcome_of_issues(issues) if issues else outcomes.impossible(str(error))
    except (PlannerError, CostModelError, TimeoutError, RuntimeError) as error:
        outcome = outcomes.failed(str(error))
    folder.add(point.key, spec_digest, outcome)
    return outcome, True


def _compared(
    key: str, comparison: Comparison, folder: StudyFolder, library: Library, slot: SolverSlot
) -> tuple[PointOutcome, bool]:
    """Compare plans, unless that was done before."""
    digest = digest_of(canonical_bytes(asdict(comparison)))
    done = folder.done(key, digest)
    if done is not None:
        return done, False
    try:
        job, limit_seconds = job_of(comparison, library, folder.find_plan)
        outcome = outcome_of(slot.schedule(run_scenarios, job, limit_seconds).result())
    except (InvalidProblem, UnsupportedRequest) as error:
        outcome = outcomes.impossible(str(error))
    except (PlannerError, CostModelError, LookupError, TimeoutError, RuntimeError) as error:
        outcome = outcomes.failed(str(error))
    folder.add(key, digest, outcome)
    return outcome, True


def _with_prices(done: PointOutcome, machines: Machines, folder: StudyFolder) -> PointOutcome:
    """Return what became of a point before with the prices of now."""
    plan = None if done.plan_digest is None else folder.find_plan(done.plan_digest)
    return done if plan is None else outcomes.outcome_of_plan(json.loads(plan), machines)


def _outcome(answer: SolveAnswer, point: Point, folder: StudyFolder, form: PlanForm) -> PointOutcome:
    """Return what became of a point whose solve has ended, and write its plan."""
    assert point.machines is not None
    if answer.best is not None:
        plan = cast("CompactPlanDocument", json.loads(answer.best.document))
        write_plan(plan, str(folder.plan_path(plan["plan_digest"])), form)
        return outcomes.outcome_of_plan(plan, point.machines)
    if answer.error is not None:
        return outcomes.failed(answer.error["message"], answer.error["hint"])
    if answer.is_out_of_memory:
        return outcomes.failed("the solver needed more memory than there is")
    return outcomes.outcome_without_plan(answer.reason, answer.limit, answer.detail, answer.shortfalls)
