"""``doctor``: whether this installation works, by problems whose answers are known."""

import math
import platform
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from api.cli.errors import ExitCode, echo
from api.cli.files import AsJson, print_document
from api.cli.service.settings import read_settings, settings_of
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.text.number_text import counted
from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.formats.units import GIGABYTE, format_bytes
from planner.output.explain.text.layout import wrapped

PACKAGES = ("fastapi", "pydantic", "uvicorn", "sqlalchemy", "ortools", "numpy", "pebble", "zstandard", "httpx")
LEAST_FREE_BYTES = GIGABYTE


class CheckResult(TypedDict):
    """What one check found."""

    name: str
    ok: bool
    detail: str


def doctor_command(
    data_dir: Annotated[
        str, typer.Option(metavar="DIR", help="Where the service would keep its data.")
    ] = "./shardplan-data",
    as_json: AsJson = False,
) -> None:
    """Check this installation: solver, planner, profiles, versions, databases, runner, disk."""
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("versions", _versions),
        ("solver", _solver),
        ("planner", _planner),
        ("hardware profiles", _profiles),
        ("database", lambda: _database(_existing(Path(data_dir)))),
        ("shared database", _shared_database),
        ("runner", _runner),
        ("disk", lambda: _disk(_existing(Path(data_dir)))),
    )
    results = [_run(name, check) for name, check in checks]
    failed = [result["name"] for result in results if not result["ok"]]
    print_document({"ok": not failed, "checks": results}, as_json=as_json)
    _print(results, failed)
    if failed:
        raise typer.Exit(ExitCode.TROUBLE)


class Failed(Exception):
    """A check found something wrong."""


def _run(name: str, check: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(name=name, ok=True, detail=check())
    except Exception as error:  # a broken installation fails in ways that no list has
        return CheckResult(name=name, ok=False, detail=str(error) or type(error).__name__)


def _print(results: list[CheckResult], failed: list[str]) -> None:
    """Print each result; its further lines stand under the first."""
    width = max(len(result["name"]) for result in results)
    for result in results:
        mark = "ok" if result["ok"] else "FAILED"
        label = f"{mark:<6}  {result['name']:<{width}} "
        for line in wrapped(result["detail"].split(", "), label=label):
            echo(line)
    if failed:
        echo(f"shardplan: {counted(len(failed), 'check')} failed: {', '.join(failed)}")
    else:
        echo("shardplan: this installation can do its work")


def _versions() -> str:
    try:
        found = [f"{name} {version(name)}" for name in ("shardplan", *PACKAGES)]
    except PackageNotFoundError as error:
        raise Failed(f"package {error.name} is not installed; run pip install shardplan again") from None
    return ", ".join([f"python {platform.python_version()}", *found])


def _solver() -> str:
    """Loads 7, 5, 4, 3, 3 on two ranks: 22 in all, so 11 at best, and 7 + 4 = 5 + 3 + 3 reaches it."""
    from ortools.sat.python import cp_model

    loads, best = (7, 5, 4, 3, 3), 11
    model = cp_model.CpModel()
    first = [model.new_bool_var(f"load_{i}_on_rank_0") for i in range(len(loads))]
    slowest = model.new_int_var(0, sum(loads), "slowest")
    on_first = sum(load * chosen for load, chosen in zip(loads, first, strict=True))
    model.add(slowest >= on_first)
    model.add(slowest >= sum(loads) - on_first)
    model.minimize(slowest)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = 10.0
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status != cp_model.OPTIMAL or round(solver.objective_value) != best:
        raise Failed(f"CP-SAT says {solver.status_name(status)} for a problem whose optimum is {best}")
    return f"CP-SAT proves the known optimum ({best})"


def _planner() -> str:
    """Two equal tables on two ranks, table-wise: one on each is the optimum, and both ranks are equal."""
    from api.execution.processes.solve import planned
    from api.specs.parse import parse_spec

    table = {"num_embeddings": 1000, "embedding_dim": 64, "pooling_factor": 4.0}
    constraints = {"sharding_types": ["table_wise"]}
    spec = {
        "model": {
            "batch_size_per_rank": 256,
            "tables": [{"name": name, "constraints": constraints, **table} for name in ("a", "b")],
        },
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 2},
        "solver": {"partitioner": "portfolio", "time_limit_seconds": 10},
    }
    request = parse_spec(canonical_bytes(spec))
    result = planned(request, request.assumptions)
    if result.plan is None:
        raise Failed(f"no plan for a problem that has one: {result.reason} {result.detail}")
    ranks = sorted(shard.rank for table in result.plan.placement.tables for shard in table.shards)
    if ranks != [0, 1]:
        raise Failed(f"two equal tables were placed on ranks {ranks}, not one on each")
    first, second = (sum(load.seconds.values()) for load in result.plan.evaluation.ranks)
    if not math.isclose(first, second, rel_tol=1e-9):
        raise Failed(f"two ranks with equal tables were priced differently: {first} s and {second} s")
    return f"a problem with a known optimum is planned right ({result.reason}, gap {result.plan.relative_gap:.1%})"


def _profiles() -> str:
    ids = profile_ids()
    numbers = sum(len(load_profile(profile).numbers) for profile in ids)
    return f"{len(ids)} profiles with {numbers} numbers load, {', '.join(ids)}"


def _existing(path: Path) -> Path:
    """The nearest folder of ``path`` that exists: where its file system can be asked."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())


def _database(folder: Path) -> str:
    with tempfile.TemporaryDirectory(prefix=".shardplan-doctor-", dir=folder) as scratch:
        connection = sqlite3.connect(Path(scratch) / "probe.sqlite")
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            if mode != "wal":
                raise Failed(f"SQLite cannot keep a write-ahead log in {folder} (it says {mode}); use a local disk")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("CREATE TABLE probe (content BLOB)")
            connection.execute("INSERT INTO probe VALUES (?)", (b"shardplan",))
            connection.commit()
            (content,) = connection.execute("SELECT content FROM probe").fetchone()
        finally:
            connection.close()
    if content != b"shardplan":
        raise Failed("SQLite returned other bytes than were written")
    return f"SQLite {sqlite3.sqlite_version} writes ahead in {folder}"


def _shared_database() -> str:
    """Check the database of SHARDPLAN_DATABASE_URL, if it is set."""
    from api.cli.admin.check_shared_database import check_shared_database

    url = settings_of().database_url
    if url is None:
        return "none (SHARDPLAN_DATABASE_URL is not set)"
    return check_shared_database(url.get_secret_value())


def _runner() -> str:
    """Check the Ray cluster of SHARDPLAN_RAY_ADDRESS, if solves run there."""
    settings = read_settings()
    if settings.runner == "local":
        return "solves run on this machine (SHARDPLAN_RUNNER is local)"
    from api.execution.ray.slot import RaySlot, place_of

    slot = RaySlot(place_of(settings))
    try:
        return slot.check()
    finally:
        slot.discard()


def _disk(folder: Path) -> str:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE_BYTES:
        raise Failed(f"{format_bytes(free)} free in {folder}; at least {format_bytes(LEAST_FREE_BYTES)} are needed")
    return f"{format_bytes(free)} free in {folder}"
