"""A plan on its way: what the server reads of it, and a solver process that loses no time before it."""

from pathlib import Path

import pytest

from api.execution.processes import solve as solver_process
from api.execution.processes.solve import Incumbent, SolveJob, run_solve
from api.specs.parse import parse_spec
from planner.pipeline import plan
from planner.solver.partitioners.kernels.cache import is_warm
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.specs import TINY, raw, tiny


def job_of(spec: object, folder: Path) -> SolveJob:
    """The job of a spec that was accepted."""
    request = parse_spec(raw(spec))
    return SolveJob(
        spec_bytes=raw(request.spec),
        spec_digest=request.spec_digest,
        assumptions=(),
        incumbent_file=folder / "a.plan",
        plan=plan,
    )


def solved(folder: Path) -> tuple[Incumbent, bytes]:
    """The best plan of an answer, and the file of the last plan on its way."""
    job = job_of(TINY, folder)
    best = run_solve(job).best
    assert best is not None
    return best, (folder / "a.plan").read_bytes()


def test_a_file_holds_what_the_plan_says(tmp_path: Path) -> None:
    best, content = solved(tmp_path)
    preserved = Incumbent.of_file(content)
    assert preserved == Incumbent.of(preserved.document)
    assert Incumbent.of_file(best.to_file()) == best == Incumbent.of(best.document)


def test_ordered_objectives_decide_whatever_was_found_on_the_way(tmp_path: Path) -> None:
    """The emptiest rank comes first, so that the step is longer than that of the plan that was streamed."""
    changes = {"model__tables__0__num_embeddings": 3_000_000, "solver__partitioner": "portfolio"}
    ordered = [{"name": "fullest_rank"}, {"name": "step_time"}]
    with Live.of(tmp_path) as live:
        free = live.solve(tiny(**changes))["result"]
        solve = live.solve(tiny(**changes, objectives=ordered))
        plan = live.get(f"/v1/plans/{solve['result']['plan_digest']}").json()
    assert solve["result"]["objective"]["seconds"] > free["objective"]["seconds"] * 1.01
    assert [one["name"] for one in plan["objectives"]] == ["fullest_rank", "step_time"]
    assert "objective" in solve["result"]["termination"]["detail"]


def test_the_server_need_not_read_the_plan(tmp_path: Path) -> None:
    _, content = solved(tmp_path)
    head, _, document = content.partition(b"\n")
    unreadable = Incumbent.of_file(head + b"\n" + b"{" * len(document))
    assert unreadable.seconds == Incumbent.of(document).seconds


def test_a_solver_process_has_the_machine_code_before_its_first_job(tmp_path: Path) -> None:
    if not is_warm():
        pytest.skip(
            "the searches of this version were not compiled yet: python -m planner.solver.partitioners.kernels.warm_up"
        )
    with Live.of(tmp_path, plan=planners.plan_with_machine_code) as live:
        assert live.solve(TINY)["state"] == "succeeded"


def test_memory_that_ends_while_the_spec_is_read_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(solver_process, "parse_stored_spec", full)
    assert run_solve(job_of(TINY, tmp_path)).is_out_of_memory
