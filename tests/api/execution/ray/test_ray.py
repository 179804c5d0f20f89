"""Solves on a Ray cluster: the same ends and plans as on this machine, whatever happens to the cluster."""

import importlib.util
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.errors import ServerTrouble
from api.cli.service.process import start_errors
from api.execution.base import EngineUnavailable, NotNow
from api.execution.ray.slot import RaySlot, place_of
from api.execution.ray.solve import RayPlace, check_cluster
from tests.api.execution.test_engine import plan_is_valid, wait_for_pid, wait_for_progress
from tests.support.service import planners
from tests.support.service.live import Live, settings_for
from tests.support.service.ray_cluster import RayCluster
from tests.support.service.server import free_port
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'shardplan[ray]'"
)
#: Processes of the cluster do not yield, but all else on a busy machine may be slow.
PATIENT = {"solver_grace_seconds": 30.0, "runner": "ray"}


@pytest.fixture(scope="module")
def cluster(root: Path) -> Iterator[RayCluster]:
    cluster = RayCluster(root)
    yield cluster
    cluster.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    leave_in(tmp_path)
    return tmp_path


def is_gone(pid: int, seconds: float = PATIENCE_SECONDS) -> bool:
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@thorough
@needs_ray
def test_a_solve_runs_there_and_ends_with_a_verified_plan(cluster: RayCluster, folder: Path) -> None:
    with Live.of(folder, ray_address=cluster.address, **PATIENT) as live:
        spec = tiny()
        solve = live.solve(spec, wait=60)
        assert solve["state"] == "succeeded", solve["error"]
        assert plan_is_valid(live, solve, spec)
        assert live.solve(tiny(name="next"), wait=60)["state"] == "succeeded"
    found = RaySlot(RayPlace(address=cluster.address))
    assert "1 nodes and 2 CPUs" in found.check()
    found.discard()


@thorough
@needs_ray
def test_an_improvement_comes_while_it_runs_and_a_cancel_keeps_it_and_kills(cluster: RayCluster, folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=600)
    with Live.of(folder, plan=planners.plan_then_hang, ray_address=cluster.address, **PATIENT) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        wait_for_progress(live, solve_id)
        pid = wait_for_pid(cluster.folder)
        assert live.post(f"/v1/solves/{solve_id}:cancel").status_code == 202
        solve = live.get(f"/v1/solves/{solve_id}?wait=30").json()
        assert (solve["state"], solve["result"]["termination"]["limit"]) == ("cancelled", "cancelled")
        assert plan_is_valid(live, solve, spec)
        assert is_gone(pid)


@needs_ray
@thorough
def test_a_solve_that_overruns_is_stopped_there_and_keeps_its_best_plan(cluster: RayCluster, folder: Path) -> None:
    options = {**PATIENT, "solver_grace_seconds": 3.0}
    spec = tiny(solver__time_limit_seconds=2)
    with Live.of(folder, plan=planners.plan_then_hang, ray_address=cluster.address, **options) as live:
        solve = live.solve(spec, wait=60)
        assert (solve["state"], solve["result"]["termination"]["limit"]) == ("succeeded", "time")
        assert plan_is_valid(live, solve, spec)
        assert is_gone(wait_for_pid(cluster.folder))


@thorough
@needs_ray
def test_a_process_that_is_killed_there_is_tried_again_and_then_given_up(cluster: RayCluster, folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=600)
    with Live.of(folder, plan=planners.plan_then_hang, ray_address=cluster.address, **PATIENT) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        first = wait_for_pid(cluster.folder)
        os.kill(first, signal.SIGKILL)
        second = wait_for_pid(cluster.folder)
        assert second != first
        assert live.get(f"/v1/solves/{solve_id}").json()["state"] == "running"
        os.kill(second, signal.SIGKILL)
        solve = live.get(f"/v1/solves/{solve_id}?wait=60").json()
        assert (solve["state"], solve["result"]["termination"]["limit"]) == ("succeeded", "killed")
        assert plan_is_valid(live, solve, spec)


@needs_ray
@thorough
def test_a_server_that_stops_takes_its_solves_along(cluster: RayCluster, folder: Path) -> None:
    with Live.of(folder, plan=planners.plan_then_hang, ray_address=cluster.address, **PATIENT) as live:
        live.post("/v1/solves", tiny(solver__time_limit_seconds=600))
        pid = wait_for_pid(cluster.folder)
        assert Path(f"/proc/{pid}").exists()
    assert is_gone(pid)


@needs_ray
@thorough
def test_a_solve_outlives_its_cluster(root: Path, folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=600)
    cluster = RayCluster(root)
    try:
        with Live.of(folder, plan=planners.plan_then_hang, ray_address=cluster.address, **PATIENT) as live:
            solve_id = live.post("/v1/solves", spec).json()["id"]
            found = wait_for_progress(live, solve_id)["progress"]
            wait_for_pid(cluster.folder)
            cluster.stop()
            time.sleep(3)
            assert live.get("/readyz").status_code == 200
            assert live.get(f"/v1/solves/{solve_id}").json()["state"] == "running"
            cluster.start()
            # it runs again once the cluster is back, and keeps what it had found
            wait_until(lambda: (cluster.folder / "pid").exists())
            live.post(f"/v1/solves/{solve_id}:cancel")
            solve = live.get(f"/v1/solves/{solve_id}?wait=60").json()
            assert solve["state"] == "cancelled"
            assert solve["progress"]["incumbent_seconds"] <= found["incumbent_seconds"]
            assert plan_is_valid(live, solve, spec)
    finally:
        cluster.close()


@needs_ray
def test_a_cluster_that_no_one_reaches_is_reported_at_the_start(folder: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = settings_for(folder, runner="ray", ray_address=address)
    with (
        pytest.raises(ServerTrouble, match=f"cannot reach the Ray cluster at {address}"),
        start_errors(settings),
        Live.of(folder, runner="ray", ray_address=address),
    ):
        pass


def test_an_address_is_needed(folder: Path) -> None:
    with pytest.raises(EngineUnavailable, match="SHARDPLAN_RAY_ADDRESS"):
        place_of(settings_for(folder, runner="ray"))


@pytest.mark.parametrize("address", ["auto", "ray://head:10001", "head", "127.0.0.1:x", "127.0.0.1:99999"])
def test_addresses_that_are_none_say_how_to_write_one(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ray:
        @staticmethod
        def is_initialized() -> bool:
            return False

    monkeypatch.setitem(__import__("sys").modules, "ray", Ray)
    with pytest.raises(NotNow, match="is written like"):
        check_cluster(RayPlace(address=address))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(NotNow, match="shardplan\\[ray\\]"):
        check_cluster(RayPlace(address="127.0.0.1:1"))
